// Uses the installed library: adds two arrays where the bytes lie and looks at the sum.
#include <samebytes/samebytes.h>

#include <cstdio>

namespace sb = samebytes;

int main() {
  sb::Engine engine;
  const sb::Array sum = sb::array({1, 2, 3}) + sb::array({10, 20, 30});
  const auto view = sum.host<float>();
  const bool right = view[0] == 11 && view[1] == 22 && view[2] == 33;
  std::printf("%s: %s\n", engine.device().name.c_str(), right ? "right" : "wrong");
  return right ? 0 : 1;
}

// Arrays: lazy values on shared memory. Ops add to a graph; value(), host() or eval() runs it, and the host then looks
// at the very bytes that the device wrote.
#include <samebytes/samebytes.h>

#undef NDEBUG
#include <cassert>
#include <cstdio>
#include <vector>
namespace sb = samebytes;

int main() {
  sb::Engine engine;  // the best device found
  std::printf("%s, memory mode %s\n", engine.device().name.c_str(), sb::name_of(engine.device().memory_mode));

  const sb::Array a = sb::array({1, 2, 3, 4, 5, 6}, {2, 3});
  const sb::Array row = sb::array({10, 20, 30});
  const sb::Array c = a * 2.0 + row;  // nothing has run; row is broadcast
  assert((c.shape() == sb::Shape{2, 3}));
  const auto view = c.host<float>();  // runs, waits, copies nothing where memory is shared
  assert(view[0] == 12 && view[5] == 42);

  const sb::Array product = sb::matmul(a, sb::transpose(a));  // a transpose is a view: strides, no bytes
  assert(product.to_vector<float>() == (std::vector<float>{14, 32, 32, 77}));
  assert(sb::sum(a).value() == 21);
  assert(sb::slice(a, 1, 1, 3).to_vector<float>() == (std::vector<float>{2, 3, 5, 6}));

  // The host fills what the device will read.
  const sb::Array filled = sb::empty({4});
  {
    const auto writing = filled.mutable_host<float>();
    for (std::size_t i = 0; i < writing.size(); ++i) writing[i] = static_cast<float>(i);
  }  // the view ends here; until then no kernel may use these bytes
  assert(sb::sum(filled).value() == 6);

  // The user's own memory becomes an array; the verdict says whether that needed a copy.
  sb::Adoption verdict;
  const sb::Array mine = sb::adopt(std::vector<float>(1024, 0.5f), {32, 32}, &verdict);
  assert(sb::mean(mine).value() == 0.5);
  std::printf("%s\n", verdict.reason.c_str());

  // Mistakes are found where they are made.
  try {
    sb::matmul(a, a);
    assert(false);
  } catch (const sb::ArgumentError& error) {
    std::printf("%s\n", error.what());
  }
}

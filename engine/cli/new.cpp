// samebytes new: a file to begin with, which builds and checks itself as it is.
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>

#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/io/files.h"

namespace samebytes::cli {
namespace {

// NAME stands for the op's name.
constexpr std::string_view kOp =
    R"TEXT(// NAME: y = x^2, element by element. Change the kernel, the gradient and the formula in main(), then
//   g++ -std=c++20 -O2 NAME.cpp -o NAME $(pkg-config --cflags --libs samebytes) && ./NAME
#include <samebytes/samebytes.h>

#include <cmath>
#include <cstdio>
#include <vector>
namespace sb = samebytes;

sb::Array NAME(const sb::Array& x) {
  static const sb::CustomOp op = {
      .name = "NAME",
      .entry = "NAME",
      // OpenCL C, for CPUs and GPUs; `real` is float or double. A work-item takes the elements from SB_BEGIN to SB_END.
      .source = R"(
        __kernel void NAME(ARRAY(const real, x), ARRAY(real, y), const int n) {
          START(x);
          START(y);
          for (long i = SB_BEGIN(n); i < SB_END(n); ++i) y[i] = x[i] * x[i];
        })",
      // From dy, the gradient of the result, the gradient of each input: here dy * 2 x.
      .gradient = [](const sb::Array& dy, std::span<const sb::Array> inputs, const sb::Array& /*y*/) {
        return std::vector<sb::Array>{dy * 2.0 * inputs[0]};
      }};
  return sb::custom_op(op, std::vector<sb::Array>{x}, x.shape());
}

// Compares with the formula, and the gradient with differences of the formula, in double.
int main() {
  const auto formula = [](double x) { return x * x; };
  sb::Engine engine;
  const sb::Array x = sb::uniform({1000}, -2, 2, sb::f64).eval();
  const std::vector<double> in = x.to_vector<double>(), y = NAME(x).to_vector<double>(),
                            dx = sb::gradients(sb::sum(NAME(x)), std::vector<sb::Array>{x})[0].to_vector<double>();
  int wrong = 0;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double h = 1e-5, slope = (formula(in[i] + h) - formula(in[i] - h)) / (2 * h);
    if (!(std::abs(y[i] - formula(in[i])) < 1e-12 && std::abs(dx[i] - slope) < 1e-6)) ++wrong;
  }
  std::printf("NAME: %d of %zu values are wrong\n", wrong, in.size());
  return wrong == 0 ? 0 : 1;
}
)TEXT";

}  // namespace

int run_new(const Options& options) {
  const std::string& name = options.fresh.name;
  const std::filesystem::path path = std::filesystem::path(options.fresh.folder) / (name + ".cpp");
  if (std::filesystem::exists(path) && !options.fresh.overwrites)
    throw UsageError(path.string() + " is there already; --force overwrites it");
  std::string text(kOp);
  constexpr std::string_view kName = "NAME";
  for (std::size_t at = 0; (at = text.find(kName, at)) != std::string::npos; at += name.size())
    text.replace(at, kName.size(), name);
  io::write_file(path.string(), text);
  fmt::print("wrote {}; its first lines say how to build it\n", path.string());
  return 0;
}

}  // namespace samebytes::cli

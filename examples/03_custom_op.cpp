// A custom op: your own OpenCL C kernel with its gradient, x * 2 + 1.
#include <samebytes/samebytes.h>

#undef NDEBUG
#include <cassert>
#include <cstdio>
namespace sb = samebytes;

sb::Array double_plus_one(const sb::Array& x) {
  static const sb::CustomOp op = {.name = "double_plus_one",
                                  .entry = "double_plus_one",
                                  .source = R"(
        __kernel void double_plus_one(ARRAY(const real, x), ARRAY(real, y), const int n) {
          START(x);
          START(y);
          for (long i = SB_BEGIN(n); i < SB_END(n); ++i) y[i] = FMA(x[i], 2, 1);
        })",
                                  .gradient = [](const sb::Array& dy, std::span<const sb::Array>, const sb::Array&) {
                                    return std::vector<sb::Array>{dy * 2.0};
                                  }};
  return sb::custom_op(op, {x}, x.shape());
}

int main() {
  sb::Engine engine;
  const sb::Array x = sb::array({0, 1, -2, 0.5f});
  const sb::Array y = double_plus_one(x);
  const sb::Array dx = sb::gradients(sb::sum(y), {x}).front();
  assert(y.to_vector<float>() == (std::vector<float>{1, 3, -3, 2}));
  assert(dx.to_vector<float>() == (std::vector<float>{2, 2, 2, 2}));
  std::printf("2 x + 1 and its gradient are right\n");

  // A kernel that does not build says where and why.
  try {
    sb::custom_op({.name = "broken", .entry = "broken", .source = "__kernel void broken("}, {x}, x.shape()).wait();
    assert(false);
  } catch (const sb::BuildError& error) {
    std::printf("%s\n", error.what());
  }
}

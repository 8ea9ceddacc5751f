// Gradients: reverse mode adds nodes to the same graph. First one that can be checked by hand, then a line fitted to
// points.
#include <samebytes/samebytes.h>

#undef NDEBUG
#include <cassert>
#include <cmath>
#include <cstdio>
namespace sb = samebytes;

int main() {
  sb::Engine engine({.seed = 1});

  const sb::Array x = sb::array({1, 2, 3});
  const sb::Array y = sb::sum(sb::square(x) * 3.0);  // dy/dx = 6 x
  const sb::Array dx = sb::gradients(y, {x}).front();
  assert(dx.to_vector<float>() == (std::vector<float>{6, 12, 18}));

  // Points on the line 3 t - 1 with a little noise.
  const sb::Array t = sb::uniform({256, 1}, -1, 1);
  const sb::Array points = t * 3.0 - 1.0 + sb::normal({256, 1}, 0, 0.01);
  sb::eval({t, points});

  const sb::Array slope =
      sb::cell(sb::zeros({1, 1}), "slope");  // cells keep their identity and are overwritten in place
  const sb::Array offset = sb::cell(sb::zeros({1}), "offset");
  double loss_value = 0;
  for (int step = 0; step < 200; ++step) {
    const sb::Array loss = sb::mean(sb::square(sb::matmul(t, slope) + offset - points));
    const auto gradient = sb::gradients(loss, {slope, offset});
    sb::eval({sb::update(slope, slope - gradient[0] * 0.3), sb::update(offset, offset - gradient[1] * 0.3)});
    if (step == 199) loss_value = loss.value();
  }
  std::printf("slope %.3f, offset %.3f, loss %.6f\n", slope.value(), offset.value(), loss_value);
  assert(std::abs(slope.value() - 3) < 0.02 && std::abs(offset.value() + 1) < 0.02);
}

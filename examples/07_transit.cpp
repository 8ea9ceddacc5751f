// Two inputs: a network with one branch for each view of a folded light curve learns to tell planets from eclipsing
// binaries and variable stars. The curves are made from physics and a seed; `samebytes train transit` is the long run.
#include <samebytes/samebytes.h>

#undef NDEBUG
#include <cassert>
#include <cstdio>
namespace sb = samebytes;

int main() {
  sb::Engine engine;
  const auto curves = sb::data::preload(sb::data::transits({.size = 640, .seed = 3, .signal_to_noise = {8, 20}}));
  sb::data::Loader training(engine, sb::data::slice(curves, 0, 512), {.batch = 32, .shuffle = true});
  sb::data::Loader test(engine, sb::data::slice(curves, 512, 128), {.batch = 128});

  sb::models::Transit net;
  sb::optim::AdamW adam(net.parameters(), {.rate = 2e-3});
  for (int epoch = 1; epoch <= 6; ++epoch) {
    sb::Mean loss;
    for (const auto& batch : training) {
      const auto [global, local, label] = batch.as<3>();
      const sb::Array batch_loss = sb::bce_with_logits(sb::reshape(net.forward(global, local), {-1}), label);
      adam.step(batch_loss);
      loss.add(batch_loss);
    }
    std::printf("epoch %d  loss %.4f\n", epoch, loss.value());
  }

  const sb::NoGrad no_grad;
  net.eval();
  for (const auto& batch : test) {
    const auto [global, local, label] = batch.as<3>();
    const auto scores = net.forward(global, local).to_vector<float>();
    const double balanced = sb::balanced_accuracy(scores, label.to_vector<float>());
    std::printf("balanced accuracy %.1f %%, area under the curve %.3f\n", 100 * balanced,
                sb::area_under_curve(scores, label.to_vector<float>()));
    assert(balanced > 0.7);
  }
}

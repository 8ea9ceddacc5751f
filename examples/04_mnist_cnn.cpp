#include <samebytes/samebytes.h>

#include <cstdio>
namespace sb = samebytes;

int main() {
  sb::Engine engine;  // the best device found; sb::Engine({.device = "gpu:0"}) to choose
  auto mnist = sb::data::mnist("data/mnist");
  sb::nn::Sequential net(sb::nn::Conv2d({.in = 1, .out = 32, .kernel = 3, .pad = 1}), sb::nn::Relu(),
                         sb::nn::MaxPool2d({.kernel = 2}), sb::nn::Conv2d({.in = 32, .out = 64, .kernel = 3, .pad = 1}),
                         sb::nn::Relu(), sb::nn::MaxPool2d({.kernel = 2}), sb::nn::Flatten(),
                         sb::nn::Linear({.in = 64 * 7 * 7, .out = 10}));
  sb::optim::AdamW adam(net.parameters(), {.rate = 1e-3f});
  sb::data::Loader batches(engine, mnist.train, {.batch = 64, .shuffle = true, .slots = 2, .workers = 1});

  for (int epoch = 1; epoch <= 3; ++epoch) {
    sb::Mean loss;
    for (const auto& [image, label] : batches) {  // plain Arrays over the slot being read
      auto batch_loss = sb::cross_entropy(net(image), label);
      adam.step(batch_loss);  // gradients and update, enqueued; returns at once
      loss.add(batch_loss);
    }
    std::printf("epoch %d  loss %.4f\n", epoch, loss.value());
  }
  sb::io::save("mnist.safetensors", net);
}

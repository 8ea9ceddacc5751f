// Fine-tuning from a file of PyTorch (safetensors, with the names of its state_dict): the layers that fit are loaded,
// the head is new and learns first. Here a network that reads digits learns to tell even from odd ones.
#include <samebytes/samebytes.h>

#undef NDEBUG
#include <cassert>
#include <cstdio>
#include <filesystem>
namespace sb = samebytes;

sb::nn::Sequential network(int classes) {
  return {sb::nn::Flatten(), sb::nn::Linear({.in = 64, .out = 128}), sb::nn::Relu(),
          sb::nn::Linear({.in = 128, .out = classes})};
}

// Stands for the file you have: safetensors.torch.save_file(net.state_dict(), path) writes the same.
void make_file(sb::data::Loader& digits, const char* path) {
  sb::nn::Sequential net = network(10);
  sb::optim::AdamW adam(net.parameters(), {.rate = 3e-3});
  for (int epoch = 0; epoch < 5; ++epoch)
    for (const auto& [image, label] : digits) adam.step(sb::cross_entropy(net(image), label));
  sb::io::save(path, net);
}

int main() {
  sb::Engine engine({.seed = 1});
  const sb::data::Split digits = sb::data::digits();
  sb::data::Loader training(engine, digits.train, {.batch = 64, .shuffle = true});
  sb::data::Loader validation(engine, digits.test, {.batch = 64});
  const char* path = "pretrained.safetensors";
  make_file(training, path);

  sb::nn::Sequential net = network(2);
  const sb::io::LoadReport report = sb::io::load(path, net, {.strict = false});
  std::filesystem::remove(path);
  std::printf("%s\n", report.to_string().c_str());

  const auto odd = [](const auto& batch) { return sb::remainder(batch["label"], 2); };
  const auto train = [&](int epochs, double rate) {
    sb::optim::AdamW adam(net.parameters(), {.rate = rate});  // of what is not frozen
    for (int epoch = 0; epoch < epochs; ++epoch)
      for (const sb::data::Batch& batch : training) adam.step(sb::cross_entropy(net(batch["image"]), odd(batch)));
  };
  net[1].freeze();
  train(3, 3e-3);  // the head alone
  net[1].freeze(false);
  train(20, 3e-3);  // then all of it

  net.eval();
  sb::Accuracy right;
  for (const sb::data::Batch& batch : validation) right.add(net(batch["image"]), odd(batch));
  std::printf("even or odd: %.1f %% right\n", 100 * right.value());
  assert(right.value() > 0.93);
}

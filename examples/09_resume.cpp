// A run that goes on: the same function trains from the start, or from wherever it was stopped, and ends with the same
// bytes. Kill the program at any moment and start it again with the same folder.
#include <samebytes/samebytes.h>
#include <unistd.h>

#undef NDEBUG
#include <cassert>
#include <cstdio>
#include <filesystem>
#include <vector>
namespace sb = samebytes;

// Trains for `epochs`, or stops after so many steps; the parameters of the last layer.
std::vector<float> train(const std::string& folder, int epochs, std::int64_t stop_after) {
  sb::Engine engine({.seed = 1});
  const auto digits = sb::data::digits();
  sb::nn::Sequential net(sb::nn::Flatten(), sb::nn::Linear({.in = 64, .out = 32}), sb::nn::Relu(), sb::nn::Dropout(0.2),
                         sb::nn::Linear({.in = 32, .out = 10}));
  sb::optim::AdamW adam(net.parameters(), {.rate = 2e-3});
  sb::data::Loader batches(engine, digits.train,
                           {.batch = 100, .shuffle = true, .transforms = {sb::data::shift({.pixels = 1})}});
  sb::Mean loss;

  sb::RunState run(engine);
  run.expect("batch", "100");
  run.add("model", net);
  run.add("optimizer", adam);
  run.add("batches", batches);
  run.add("loss", loss);
  const sb::CheckpointFolder checkpoints(folder, {.keep = 2});
  if (const auto newest = checkpoints.newest().checkpoint) {
    run.load(newest->path);
    std::printf("goes on after step %lld\n", static_cast<long long>(adam.step_count()));
  }

  while (batches.place().epoch < epochs) {  // the first pass may be the rest of an epoch
    if (batches.place().step == 0) loss.reset();
    for (const auto& [image, label] : batches) {
      auto batch_loss = sb::cross_entropy(net(image), label);
      adam.step(batch_loss);
      loss.add(batch_loss, static_cast<double>(label.size()));
      if (adam.step_count() % 10 == 0) checkpoints.save(run, adam.step_count());
      if (adam.step_count() == stop_after) return {};
    }
    std::printf("epoch %lld  loss %.6f\n", static_cast<long long>(batches.place().epoch), loss.value());
  }
  return net.parameters().back().to_vector<float>();
}

int main() {
  const auto place = std::filesystem::temp_directory_path() / ("samebytes-resume-" + std::to_string(getpid()));
  const std::vector<float> whole = train(place / "whole", 3, 0);
  train(place / "stopped", 3, 24);  // in the middle of the second epoch
  const std::vector<float> resumed = train(place / "stopped", 3, 0);
  assert(!whole.empty() && resumed == whole);
  std::filesystem::remove_all(place);
  std::printf("the same bytes\n");
}

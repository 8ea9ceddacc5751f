// A Session: what `samebytes train digits` does, with the library. Precision, a schedule, averages, validation,
// checkpoints that a killed run goes on from, a log, early stopping.
#include <samebytes/samebytes.h>

#undef NDEBUG
#include <cassert>
#include <cstdio>
#include <filesystem>
#include <memory>
namespace sb = samebytes;

int main(int argc, char** argv) {
  const std::filesystem::path folder =
      argc > 1 ? argv[1] : std::filesystem::temp_directory_path() / "samebytes-session";
  std::filesystem::create_directories(folder);
  sb::Engine engine({.seed = 1});
  const sb::data::Split digits = sb::data::digits();
  sb::data::Loader training(engine, digits.train, {.batch = 64, .shuffle = true});
  sb::data::Loader validation(engine, digits.test, {.batch = 64});
  sb::nn::Sequential net(sb::nn::Flatten(), sb::nn::Linear({.in = 64, .out = 128}), sb::nn::Relu(),
                         sb::nn::Linear({.in = 128, .out = 10}));
  const sb::train::Task task{
      .loss = [](const sb::Array& logits, const auto& batch) { return sb::cross_entropy(logits, batch[1]); },
      .metrics = {sb::train::accuracy()}};
  sb::train::SessionOptions options{
      .validation = &validation,
      .schedule = sb::optim::Schedule{.decay = sb::optim::Decay::cosine, .rate = 3e-3, .warmup = 10, .steps = 20 * 23},
      .precision = {.dtype = sb::bf16},
      .ema = sb::optim::EmaOptions{.decay = 0.99, .warmup = true},
      .early_stopping = sb::train::EarlyStopping{.monitor = "accuracy", .patience = 8, .maximize = true},
      .checkpoints = std::make_shared<sb::train::Checkpoints>(
          sb::train::CheckpointsOptions{.folder = folder / "checkpoints", .resume = "auto"}),
      .log = std::make_shared<sb::train::RunLog>(folder / "run.jsonl", folder / "tensorboard", true)};
  options.callbacks.on_epoch = [](const sb::train::EpochReport& epoch) {
    std::printf("epoch %d  loss %.4f  validation %.4f  accuracy %.2f %%\n", epoch.epoch, epoch.train_loss,
                epoch.validation->loss, 100 * *epoch.validation->find("accuracy"));
  };
  sb::train::Session session(engine, net, task, training, options);
  const sb::train::Report report = session.fit(20);
  std::printf("%lld steps, %.3g samples/s, stopped because: %s\n", static_cast<long long>(report.figures.steps),
              report.figures.samples_per_second(), sb::train::name_of(report.stopped_because));
  assert(report.validation->find("accuracy") > 0.88);
}

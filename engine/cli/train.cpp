// samebytes train: trains a workload with AdamW, tests it after every epoch, and says what it came to.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/step_log.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/samebytes.h"

namespace samebytes::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kWarmUpShare = 0.05;  // of the steps: the rate rises from nothing
constexpr std::size_t kLossesKept = 4;  // one more than the engine queues, so that reading the oldest waits for nothing

struct StepFacts {
  std::int64_t step = 0;
  int epoch = 0;
  double rate = 0;
  double milliseconds = 0;
  Array loss;
};

class Trainer {
 public:
  Trainer(const Options& options, const Workload& workload);
  int run();

 private:
  void train_epoch(int epoch);
  void train_step(int epoch, const data::Batch& batch);
  void test_epoch(int epoch);
  void read_oldest_loss();
  void draw(int epoch);
  double rate_at(std::int64_t step) const;

  const Options& options_;
  const Workload& workload_;
  data::Split split_;
  std::int64_t batch_;
  StepLog log_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<nn::Module> net_;
  std::unique_ptr<data::Loader> training_, test_;
  std::unique_ptr<optim::AdamW> optimizer_;
  std::unique_ptr<RunMeter> meter_;
  std::unique_ptr<Progress> progress_;
  int epochs_ = 0;
  std::int64_t steps_ = 0;
  std::deque<StepFacts> recent_;
  double recent_loss_ = NAN;
  Summary summary_;
};

Trainer::Trainer(const Options& options, const Workload& workload)
    : options_(options),
      workload_(workload),
      split_(workload.open(options.data)),
      batch_(options.batch.value_or(workload.defaults.batch)),
      log_(options.log) {
  const std::int64_t samples = split_.train->size();
  if (batch_ > samples)
    throw UsageError(fmt::format("--batch {} is larger than the training set, which has {} samples", batch_, samples));
  if (!options.save.empty()) io::AtomicFile probe(options.save);  // throws here rather than after the training
  engine_ = open_engine(options, options.device);
  net_ = workload.make_model();
  if (!options.load.empty()) io::load(options.load, *net_);

  const std::int64_t per_epoch = (samples + batch_ - 1) / batch_;
  epochs_ = options.epochs.value_or(workload.defaults.epochs);
  steps_ = options.steps.value_or(per_epoch * epochs_);
  epochs_ = static_cast<int>((steps_ + per_epoch - 1) / per_epoch);

  data::LoaderOptions loading = loader_options(options, batch_);
  loading.shuffle = true;
  loading.transform = workload.augment;
  training_ = std::make_unique<data::Loader>(*engine_, split_.train, loading);
  test_ = std::make_unique<data::Loader>(*engine_, split_.test, loader_options(options, std::min(batch_, split_.test->size())));
  optimizer_ = std::make_unique<optim::AdamW>(
      net_->parameters(),
      optim::AdamWOptions{.rate = static_cast<float>(rate_at(0)), .weight_decay = workload.defaults.weight_decay});
  meter_ = std::make_unique<RunMeter>(*engine_);
  progress_ = std::make_unique<Progress>(stream_for_people(options), options.quiet);
  describe(*engine_, workload, batch_, summary_);
}

double Trainer::rate_at(std::int64_t step) const {
  return optim::schedule();
}

// Reads a loss that is long done, so that the queue never runs dry for the sake of the bar.
void Trainer::read_oldest_loss() {
  if (recent_.empty()) return;
  const StepFacts& facts = recent_.front();
  const double loss = facts.loss.value();
  if (!std::isfinite(loss))
    throw Error(fmt::format("step {}: the loss is {}; --check-nan finds the op that made it", facts.step, loss));
  constexpr double kNew = 0.2;
  recent_loss_ = std::isnan(recent_loss_) ? loss : (1 - kNew) * recent_loss_ + kNew * loss;
  log_.write({{"event", "step"},
              {"step", facts.step},
              {"epoch", facts.epoch},
              {"loss", loss},
              {"rate", facts.rate},
              {"ms", facts.milliseconds}});
}

void Trainer::draw(int epoch) {
  progress_->draw({.title = fmt::format("epoch {}/{}", epoch, epochs_),
                   .done = meter_->steps(),
                   .total = steps_,
                   .samples = meter_->samples(),
                   .seconds = meter_->seconds(),
                   .loss = recent_loss_});
}

void Trainer::train_step(int epoch, const data::Batch& batch) {
  const std::int64_t step = meter_->steps() + 1;
  const double rate = rate_at(step - 1);
  try {
    optimizer_->set_rate(static_cast<float>(rate));
    const Array loss = workload_.loss((*net_)(batch.fields()[0]), batch.fields());
    optimizer_->step(loss);
    mean_.add(loss);
    meter_->step(batch.fields()[0].shape()[0]);
    recent_.push_back({step, epoch, rate, meter_->last_step_seconds() * 1e3, loss});
  } catch (const BuildError&) {
    throw;
  } catch (const Error& error) {
    throw Error(fmt::format("step {}: {}", step, error.what()));
  }
  if (recent_.size() <= kLossesKept) return;
  const bool is_due = progress_->is_due();
  if (is_due || log_.is_on()) read_oldest_loss();
  recent_.pop_front();
  if (is_due) draw(epoch);
}

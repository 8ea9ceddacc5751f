// Rules about what a run learned: the loss, the rate beside the batch, batch norms, overflows, overfitting.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "doctor/rules.h"

namespace samebytes::doctor {
namespace {

constexpr double kRateTooLarge = 5;     // times the largest fair one
constexpr double kRateTooSmall = 20;    // ... the smallest one over it
constexpr double kRateForgotten = 4;    // times the batch, at the same rate
constexpr double kLeastNormBatch = 16;  // samples that a batch norm wants
constexpr double kTinyNormBatch = 4;
constexpr std::size_t kLeastTrendSteps = 30;  // that a trend is read from
constexpr double kLeastFall = 0.02;           // a loss that falls less than this share of itself
constexpr double kRisen = 1.5;
constexpr double kOverfit = 1.05;  // last test loss over the best one
constexpr double kManySkipped = 0.05;

struct Trend {
  double first = 0, last = 0;  // mean losses
  int line = 0;                // of the last step
  double change() const { return last / first; }
};

std::optional<Trend> trend_of(const RunLog& run) {
  std::vector<double> losses;
  Trend trend;
  for (const LoggedStep& step : run.steps) {
    if (!std::isfinite(step.loss)) continue;
    losses.push_back(step.loss);
    trend.line = step.line;
  }
  if (losses.size() < kLeastTrendSteps) return {};
  const auto count = static_cast<std::size_t>(kTrendShare * static_cast<double>(losses.size()));
  for (std::size_t i = 0; i < count; ++i) {
    trend.first += losses[i] / static_cast<double>(count);
    trend.last += losses[losses.size() - 1 - i] / static_cast<double>(count);
  }
  if (trend.first <= 0) return {};
  return trend;
}

std::string rate_text(const Patient& patient) {
  return fmt::format("the rate is {} for a batch of {}; the workload's is {} for {}", number_text(patient.rate()),
                     number_text(patient.batch()), number_text(patient.run.number("workload_rate").value_or(0)),
                     number_text(patient.workload_batch()));
}

std::optional<Finding> rate_too_large(const Patient& patient) {
  const double fair = patient.largest_fair_rate(), rate = patient.rate();
  if (fair <= 0 || rate < kRateTooLarge * fair) return {};
  const std::optional<Trend> trend = trend_of(patient.run);
  const bool learns = trend && trend->change() < 1 - kLeastFall;
  Finding finding = patient.finding(learns ? Severity::advice : Severity::serious, 3, patient.run.start_line);
  finding.seen = fmt::format("{}, which scales to at most {}: {:.3g} times too large", rate_text(patient),
                             number_text(fair), rate / fair);
  finding.why = "a step that is too long for its noise leaves the valley: the loss jumps, stays high or becomes NaN";
  finding.actions = {{fmt::format("--rate {}", number_text(fair)), "what this batch can take"}};
  if (patient.batch() != patient.workload_batch())
    finding.actions.push_back({fmt::format("--rate {} --scale-rate linear --base-batch {}",
                                           number_text(patient.run.number("workload_rate").value_or(fair)),
                                           number_text(patient.workload_batch())),
                               "the workload's rate, scaled with the batch"});
  if (patient.run.number("clip_norm").value_or(0) <= 0) finding.actions.push_back({"--clip-norm 1", "bounds a step"});
  return finding;
}

std::optional<Finding> rate_too_small(const Patient& patient) {
  const double fair = patient.smallest_fair_rate(), rate = patient.rate();
  if (fair <= 0 || rate <= 0 || rate * kRateTooSmall > fair) return {};
  const std::optional<Trend> trend = trend_of(patient.run);
  const bool learns = trend && trend->change() < 1 - kLeastFall;
  Finding finding = patient.finding(learns ? Severity::advice : Severity::serious, 3, patient.run.start_line);
  finding.seen = fmt::format("{}: {:.3g} times too small", rate_text(patient), fair / rate);
  finding.why = "the weights hardly move; the run ends long before it has learned what it could";
  finding.actions = {{fmt::format("--rate {}", number_text(fair)), "the workload's, for this batch"}};
  return finding;
}

std::optional<Finding> rate_not_scaled(const Patient& patient) {
  const double times = patient.workload_batch() > 0 ? patient.batch() / patient.workload_batch() : 1;
  const double own = patient.run.number("workload_rate").value_or(0);
  if (times < kRateForgotten || own <= 0 || !patient.run.text("scale_rate").empty()) return {};
  if (patient.rate() > own * 1.01 || patient.rate() < own * 0.99) return {};
  Finding finding = patient.finding(Severity::advice, 1, patient.run.start_line);
  finding.seen = fmt::format("the batch of {} is {:.3g} times the workload's, the rate of {} is still the one for {}",
                             number_text(patient.batch()), times, number_text(patient.rate()),
                             number_text(patient.workload_batch()));
  finding.why =
      "a larger batch has fewer steps an epoch and less noise in each: at the old rate it learns less an epoch";
  const std::string base = fmt::format(" --base-batch {}", number_text(patient.workload_batch()));
  finding.actions = {{"--scale-rate linear" + base, "with a warm-up, up to 32 times"},
                     {"--scale-rate sqrt" + base, "gentler, for adam and its kin"}};
  return finding;
}

std::optional<Finding> batch_norm_starves(const Patient& patient) {
  const double norms = patient.run.number("batch_norms").value_or(0);
  const double batch = patient.run.number("micro_batch").value_or(patient.batch());
  if (norms <= 0 || batch <= 0 || batch >= kLeastNormBatch) return {};
  Finding finding =
      patient.finding(batch <= kTinyNormBatch ? Severity::serious : Severity::advice, 4, patient.run.start_line);
  finding.seen = fmt::format("{} batch norm layers see {} samples at a time", number_text(norms), number_text(batch));
  finding.why =
      "their mean and variance are noise, so training and testing see different networks; 16 samples are the least, "
      "and "
      "accumulating gradients does not help, since each part is normalised by itself";
  finding.actions = {{fmt::format("--batch {}", number_text(std::max(kLeastNormBatch, patient.workload_batch()))),
                      "statistics of enough samples"},
                     {"--precision bf16", "where memory is why the batch is small: activations in half the bytes"},
                     {"--gradient-checkpointing block", "the same, at a fifth to a third more time"},
                     {"", "a network of your own: LayerNorm or GroupNorm, which look at one sample at a time"}};
  if (patient.run.text("precision") != "f32") finding.actions.erase(finding.actions.begin() + 1);
  return finding;
}

std::optional<Finding> loss_does_not_fall(const Patient& patient) {
  const std::optional<Trend> trend = trend_of(patient.run);
  if (!trend || trend->change() < 1 - kLeastFall) return {};
  const RunLog& run = patient.run;
  const bool rises = trend->change() > kRisen;
  Finding finding = patient.finding(Severity::serious, 2, trend->line);
  finding.seen = fmt::format("the loss {}: {:.4g} over the first fifth of the steps, {:.4g} over the last",
                             rises ? "rises" : "does not fall", trend->first, trend->last);
  const double rate = patient.rate();
  const double warmup = run.number("warmup").value_or(0), steps = run.number("steps").value_or(0);
  finding.why = rises ? "the steps are too long, or the gradients of single batches are" : "nothing is learned";
  if (rises) {
    finding.actions.push_back({fmt::format("--rate {}", number_text(rate / 10)), "a tenth of this run's"});
    if (run.number("clip_norm").value_or(0) <= 0) finding.actions.push_back({"--clip-norm 1", "bounds a step"});
    return finding;
  }
  if (steps > 0 && warmup > steps / 2)
    finding.actions.push_back({fmt::format("--warmup {}", std::llround(steps / 20)),
                               fmt::format("the warm-up of {} steps is most of the run", number_text(warmup))});
  const double low = patient.smallest_fair_rate(), high = patient.largest_fair_rate();
  if (rate < low)
    finding.actions.push_back({fmt::format("--rate {}", number_text(low)), "the workload's, for this batch"});
  else if (rate > high)
    finding.actions.push_back({fmt::format("--rate {}", number_text(high)), "the workload's, for this batch"});
  else
    finding.actions.push_back({fmt::format("--rate {}", number_text(rate * 3)), "then a third: which of them falls?"});
  if (run.text("optimizer") != "adamw") finding.actions.push_back({"--optimizer adamw", "least in need of tuning"});
  if (run.number("weight_decay").value_or(0) >= 0.5)
    finding.actions.push_back({"--weight-decay 0.01", "the decay pulls as hard as the gradients"});
  finding.actions.push_back({"", "look at a few samples and their labels: shuffled labels look exactly like this"});
  return finding;
}

std::optional<Finding> overfitting(const Patient& patient) {
  std::vector<const LoggedEpoch*> tested;
  for (const LoggedEpoch& epoch : patient.run.epochs)
    if (epoch.test_loss && std::isfinite(*epoch.test_loss)) tested.push_back(&epoch);
  if (tested.size() < 3) return {};
  const LoggedEpoch& best = **std::min_element(
      tested.begin(), tested.end(), [](const auto* a, const auto* b) { return *a->test_loss < *b->test_loss; });
  const LoggedEpoch& last = *tested.back();
  if (*last.test_loss < kOverfit * *best.test_loss || last.train_loss >= best.train_loss || last.epoch < best.epoch + 2)
    return {};
  Finding finding = patient.finding(Severity::serious, 1, best.line);
  finding.seen = fmt::format(
      "the test loss was best in epoch {} ({:.4g}) and is {:.4g} in epoch {}, while the training loss fell from {:.4g} "
      "to {:.4g}",
      best.epoch, *best.test_loss, *last.test_loss, last.epoch, best.train_loss, last.train_loss);
  finding.why = "the network learns its training samples by heart";
  const double decay = patient.run.number("weight_decay").value_or(0);
  finding.actions = {{fmt::format("--epochs {}", best.epoch), "ends where it was best, with a schedule that fits"},
                     {fmt::format("--weight-decay {}", number_text(decay > 0 ? decay * 10 : 0.01)),
                      "ten times this run's; of adamw and lamb it is no part of the gradient"},
                     {"--ema 0.999", "averaged weights are smoother"},
                     {"", "more data, more augmentation (mixup, cutmix), dropout, label smoothing"}};
  if (patient.batch() >= 4 * patient.workload_batch())
    finding.actions.push_back({"--optimizer lamb", "made for batches this large"});
  return finding;
}

std::optional<Finding> skipped_steps(const Patient& patient) {
  const double skipped = patient.run.result("skipped_steps").value_or(0);
  const double steps = patient.run.result("steps").value_or(0);
  constexpr double kUsual = 16;  // while the scale falls from 2^16
  if (skipped <= kUsual || skipped <= kManySkipped * steps) return {};
  Finding finding = patient.finding(Severity::serious, 2, patient.run.summary_line);
  finding.seen = fmt::format("{} of {} steps were skipped, the loss scale ended at {}", number_text(skipped),
                             number_text(steps), number_text(patient.run.result("loss_scale").value_or(0)));
  finding.why = "gradients overflow f16 again and again; a skipped step learns nothing";
  finding.actions = {{"--precision bf16", "the range of f32: nothing overflows and nothing is scaled"},
                     {fmt::format("--rate {}", number_text(patient.rate() / 3)), "large weights make large gradients"},
                     {"--clip-norm 1", "after the scale is taken out again"}};
  return finding;
}

constexpr Rule kLearningRules[] = {
    {"batch_norm_starves", "B11 B26 B28", batch_norm_starves},
    {"rate_too_large", "B10 B28", rate_too_large},
    {"rate_too_small", "B10", rate_too_small},
    {"rate_not_scaled", "B10 D3", rate_not_scaled},
    {"loss_does_not_fall", "B28 C22 C25", loss_does_not_fall},
    {"skipped_steps", "C11 D17", skipped_steps},
    {"overfitting", "B29", overfitting},
};

}  // namespace

std::span<const Rule> learning_rules() { return kLearningRules; }

}  // namespace samebytes::doctor

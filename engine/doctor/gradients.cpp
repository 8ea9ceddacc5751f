// Rules about the norms of a run's gradients (--log-grad-norm): jumps, gradients that die away, clipping that never
// ends.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "doctor/rules.h"

namespace samebytes::doctor {
namespace {

constexpr std::size_t kLeastNorms = 20;  // that anything is said from
constexpr double kExploded = 30;         // times the median
constexpr double kVanished = 1e-3;       // of the norm at the start
constexpr double kTiny = 1e-7;           // whatever it was at the start
constexpr double kFallen = 0.9;          // of the loss at the start: it learned, and gradients fall with the loss
constexpr double kNearlyAlways = 0.9;    // of the steps
constexpr double kRarely = 0.9;          // the quantile that clipping should begin at

struct Norms {
  std::vector<const LoggedStep*> steps;  // those with a norm
  double loss_change = 1;                // last over first

  double at(double quantile, std::size_t begin, std::size_t end) const {
    std::vector<double> values;
    for (std::size_t i = begin; i < end; ++i) values.push_back(*steps[i]->grad_norm);
    const auto place = static_cast<std::size_t>(quantile * static_cast<double>(values.size() - 1));
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(place), values.end());
    return values[place];
  }
  double median() const { return at(0.5, 0, steps.size()); }
  std::size_t share() const { return static_cast<std::size_t>(kTrendShare * static_cast<double>(steps.size())); }
  double first() const { return at(0.5, 0, share()); }
  double last() const { return at(0.5, steps.size() - share(), steps.size()); }
};

std::optional<Norms> norms_of(const RunLog& run) {
  Norms norms;
  for (const LoggedStep& step : run.steps)
    if (step.grad_norm) norms.steps.push_back(&step);
  if (norms.steps.size() < kLeastNorms) return {};
  double first = 0, last = 0;
  for (std::size_t i = 0; i < norms.share(); ++i) {
    first += norms.steps[i]->loss;
    last += norms.steps[norms.steps.size() - 1 - i]->loss;
  }
  if (first > 0 && std::isfinite(last)) norms.loss_change = last / first;
  return norms;
}

double rounded(double value) {
  const double unit = std::pow(10, std::floor(std::log10(value)) - 1);
  return std::round(value / unit) * unit;
}

std::optional<Finding> gradients_explode(const Patient& patient) {
  const std::optional<Norms> norms = norms_of(patient.run);
  if (!norms) return {};
  const LoggedStep& largest =
      **std::max_element(norms->steps.begin(), norms->steps.end(),
                         [](const auto* a, const auto* b) { return *a->grad_norm < *b->grad_norm; });
  const double usual = std::min(norms->median(), norms->first());
  // The first step's may be large by itself: what follows is what counts.
  if (usual <= 0 || *largest.grad_norm < kExploded * usual || &largest == norms->steps.front()) return {};
  const bool is_clipped = patient.run.number("clip_norm").value_or(0) > 0;
  const bool hurts = patient.run.error || norms->loss_change > 1;
  Finding finding = patient.finding(hurts ? Severity::serious : Severity::advice, hurts ? 4 : 1, largest.line);
  finding.seen = fmt::format("the gradient norm is {:.3g} in step {}, {:.3g} times the usual {:.3g}",
                             *largest.grad_norm, largest.step, *largest.grad_norm / usual, usual);
  finding.why = is_clipped ? "clipping bounds the step, not what makes it: the rate, or samples unlike the others"
                           : "one such step undoes many good ones: the rate is too large, or a batch is unlike others";
  if (!is_clipped)
    finding.actions.push_back({fmt::format("--clip-norm {}", number_text(rounded(2 * usual))),
                               "twice the usual norm: cuts the rare ones alone"});
  finding.actions.push_back({fmt::format("--rate {}", number_text(patient.rate() / 3)), "a third of this run's"});
  if (patient.run.number("warmup").value_or(1) <= 0)
    finding.actions.push_back({"--warmup 100", "the first steps are the most likely to leave the valley"});
  return finding;
}

std::optional<Finding> gradients_vanish(const Patient& patient) {
  const std::optional<Norms> norms = norms_of(patient.run);
  if (!norms || norms->loss_change < kFallen) return {};
  const double first = norms->first(), last = norms->last();
  if (last > kTiny && last > kVanished * first) return {};
  Finding finding = patient.finding(Severity::serious, 4, norms->steps.back()->line);
  finding.seen = fmt::format("the gradient norm went from {:.3g} to {:.3g}, and the loss did not fall", first, last);
  finding.why =
      "nothing reaches the weights: saturated activations, dead rectifiers after a step that was too long, or a loss "
      "that cannot change";
  const double fair = patient.largest_fair_rate();
  if (fair > 0 && patient.rate() > fair)
    finding.actions.push_back({fmt::format("--rate {}", number_text(fair)), "the workload's, for this batch"});
  else
    finding.actions.push_back({fmt::format("--rate {}", number_text(patient.rate() / 10)),
                               "where it died in the first steps; begin again, dead units stay dead"});
  if (patient.run.text("optimizer") == "sgd")
    finding.actions.push_back({"--optimizer adamw", "its steps do not shrink with the gradients"});
  if (patient.run.text("precision") == "f16")
    finding.actions.push_back({"--precision bf16", "f16 rounds gradients below 6e-8 to 0"});
  finding.actions.push_back(
      {"", "normalisation between layers, residual connections, ReLU or GELU instead of sigmoid"});
  return finding;
}

std::optional<Finding> clips_nearly_always(const Patient& patient) {
  const double most = patient.run.number("clip_norm").value_or(0);
  const std::optional<Norms> norms = norms_of(patient.run);
  if (most <= 0 || !norms) return {};
  const auto clipped = std::count_if(norms->steps.begin(), norms->steps.end(),
                                     [&](const LoggedStep* step) { return *step->grad_norm > most; });
  const double share = static_cast<double>(clipped) / static_cast<double>(norms->steps.size());
  if (share < kNearlyAlways) return {};
  Finding finding = patient.finding(Severity::advice, 2, norms->steps.front()->line);
  finding.seen = fmt::format("{:.0f} % of the updates were clipped to {}; the usual norm is {:.3g}", 100 * share,
                             number_text(most), norms->median());
  finding.why =
      "every step has the same length then, so that the rate alone sets it and small gradients weigh as much "
      "as large ones";
  finding.actions = {{fmt::format("--clip-norm {}", number_text(rounded(norms->at(kRarely, 0, norms->steps.size())))),
                      "cuts the largest tenth"},
                     {"", "or keep it and look for the rate that suits it: --rate is what changes the steps"}};
  return finding;
}

constexpr Rule kGradientRules[] = {
    {"gradients_explode", "B28 D17", gradients_explode},
    {"gradients_vanish", "B28 D17", gradients_vanish},
    {"clips_nearly_always", "B28 C12", clips_nearly_always},
};

}  // namespace

std::span<const Rule> gradient_rules() { return kGradientRules; }

}  // namespace samebytes::doctor

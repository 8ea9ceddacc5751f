// Rules about what ended a run: memory, a device, NaN, a process that was killed.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "doctor/rules.h"
#include "samebytes/budget.h"
#include "samebytes/train/run_log.h"

namespace samebytes::doctor {
namespace {

constexpr double kAdvisedWarmUpShare = 0.05;
constexpr double kPressure = 0.85;  // of the memory limit

bool is_out_of_memory(const LoggedError& error) {
  if (error.kind == "OutOfMemory") return true;
  for (const char* text : {"CL_MEM_OBJECT_ALLOCATION_FAILURE", "CL_OUT_OF_HOST_MEMORY", "std::bad_alloc"})
    if (error.message.find(text) != std::string::npos) return true;
  return false;
}

std::string step_text(const LoggedError& error) {
  return error.step ? fmt::format("step {}: ", *error.step) : std::string("before the first step: ");
}

// The cheapest first: what keeps the result, then what keeps the speed.
std::vector<Action> ways_to_less_memory(const Patient& patient) {
  std::vector<Action> actions;
  const double batch = patient.batch();
  const std::string workload = patient.run.text("workload"), optimizer = patient.run.text("optimizer");
  if (batch > 1) {
    const double half = std::floor(batch / 2);
    actions.push_back({fmt::format("--micro-batch {}", number_text(half)),
                       "the same batch and the same result, computed in parts: activations of one part only"});
    actions.push_back(
        {patient.with_batch(half), "half the batch needs about half the activations; the rate goes with it"});
  }
  actions.push_back({"--gradient-checkpointing block",
                     "keeps the borders of blocks and computes their inside again: 20 to 30 % more time"});
  if (patient.run.text("precision") == "f32")
    actions.push_back({"--precision bf16", "activations and gradients in half the bytes, no loss scaler needed"});
  const bool has_release = optimizer == "sgd" || optimizer == "adam" || optimizer == "adamw";
  if (has_release && !patient.run.flag("release_gradients"))
    actions.push_back(
        {patient.run.number("clip_norm").value_or(0) > 0 ? "--release-gradients --clip-norm 0" : "--release-gradients",
         "updates each parameter as soon as its gradient is there, and frees it: 4 bytes a parameter"});
  if (optimizer == "adam" || optimizer == "adamw")
    actions.push_back({"--moments bf16", "both moments in 16 bits: 4 bytes a parameter less"});
  if (optimizer != "adafactor")
    actions.push_back({"--optimizer adafactor", "its second moment is a row and a column instead of a matrix"});
  if (workload == "gpt") actions.push_back({"--context 256", "attention and activations grow with the window"});
  actions.push_back(
      {"--memory-limit 1GB", "the planner chooses among these itself, or says the least that is possible"});
  return actions;
}

std::optional<Finding> out_of_memory(const Patient& patient) {
  const std::optional<LoggedError>& error = patient.run.error;
  if (!error || !is_out_of_memory(*error)) return {};
  Finding finding = patient.finding(Severity::failure, 3, error->line);
  finding.seen = step_text(*error) + error->message;
  if (error->need_bytes && error->limit_bytes)
    finding.seen = fmt::format("{}{} more were wanted, the limit is {}", step_text(*error),
                               bytes_text(size_of(*error->need_bytes)), bytes_text(size_of(*error->limit_bytes)));
  finding.why = "weights, gradients, optimizer state and the activations of a batch must fit at the same time";
  finding.actions = ways_to_less_memory(patient);
  return finding;
}

bool has_bad_loss(const LoggedStep& step) { return !std::isfinite(step.loss); }

std::optional<Finding> not_finite(const Patient& patient) {
  const RunLog& run = patient.run;
  const auto bad = std::find_if(run.steps.begin(), run.steps.end(), has_bad_loss);
  const bool has_error = run.error && run.error->kind == train::kNotFinite;
  if (!has_error && bad == run.steps.end()) return {};
  const std::int64_t step = has_error ? run.error->step.value_or(0) : bad->step;
  Finding finding = patient.finding(Severity::failure, 2, has_error ? run.error->line : bad->line);
  finding.seen = has_error ? fmt::format("step {}: {}", step, run.error->message)
                           : fmt::format("step {}: the loss is no number", step);
  const auto before =
      std::find_if(run.steps.rbegin(), run.steps.rend(), [](const auto& s) { return !has_bad_loss(s); });
  if (before != run.steps.rend())
    finding.seen += fmt::format("; it was {:.4g} in step {} and {:.4g} in step {}", run.steps.front().loss,
                                run.steps.front().step, before->loss, before->step);
  const auto normed =
      std::find_if(run.steps.rbegin(), run.steps.rend(), [](const auto& s) { return s.grad_norm.has_value(); });
  if (normed != run.steps.rend())
    finding.seen += fmt::format("; the gradient norm was {:.4g} in step {}", *normed->grad_norm, normed->step);
  finding.why = "one NaN or infinity reaches every weight with the next update; nothing after it is worth keeping";
  const std::string precision = run.text("precision");
  if (step == 1) {
    finding.why +=
        "; in the first step no update had happened, so it is in the data or in the weights that were loaded";
    finding.actions.push_back(
        {"--check-nan --precision f32", "names the op that made it; look at the data that it reads"});
    return finding;
  }
  const double fair = patient.largest_fair_rate(), rate = patient.rate();
  if (rate > fair)
    finding.actions.push_back({fmt::format("--rate {}", number_text(fair)),
                               fmt::format("this run's {} is {:.3g} times that", number_text(rate), rate / fair)});
  if (precision == "f16")
    finding.actions.push_back({"--precision bf16",
                               "has the range of f32, so it neither overflows nor needs a scale; in "
                               "a program, GradScalerOptions::initial_scale = 1024 is gentler"});
  if (run.number("clip_norm").value_or(0) <= 0)
    finding.actions.push_back({"--clip-norm 1", "no step is larger than this, whatever a batch holds"});
  if (rate <= fair)
    finding.actions.push_back({fmt::format("--rate {}", number_text(rate / 10)), "a tenth of this run's"});
  if (run.number("warmup").value_or(1) <= 0)
    finding.actions.push_back(
        {fmt::format("--warmup {}",
                     std::max<std::int64_t>(100, std::llround(kAdvisedWarmUpShare * run.number("steps").value_or(0)))),
         "the first steps are the largest ones, before the optimizer knows the gradients' size"});
  if (!run.flag("check_nan"))
    finding.actions.push_back({precision == "f16" ? "--check-nan --precision f32" : "--check-nan",
                               "where none of this helps: names the step and the op, several times slower"});
  return finding;
}

std::optional<Finding> device_failed(const Patient& patient) {
  const std::optional<LoggedError>& error = patient.run.error;
  if (!error || error->kind != "DeviceError" || is_out_of_memory(*error)) return {};
  Finding finding = patient.finding(Severity::failure, 2, error->line);
  finding.seen = fmt::format("{}{} (on {})", step_text(*error), error->message, patient.run.text("device"));
  finding.why = "the driver gave up, not the network: the same run often works elsewhere, or again";
  finding.actions = {{"--on-device-error retry", "goes on from the last whole state"},
                     {"--checkpoint runs/saved --checkpoint-every epoch --resume auto", "loses an epoch at most"},
                     {"--device cpu", "slower, and without this driver"},
                     {"samebytes devices", "what there is, and how each one is used"}};
  return finding;
}

std::optional<Finding> other_error(const Patient& patient) {
  const std::optional<LoggedError>& error = patient.run.error;
  if (!error || error->kind == train::kNotFinite || error->kind == "DeviceError" || is_out_of_memory(*error)) return {};
  Finding finding = patient.finding(Severity::failure, 1, error->line);
  finding.seen = step_text(*error) + error->message;
  finding.why = error->kind == "BuildError" ? "a kernel did not compile; the driver's own log stands in the message"
                                            : "the run ended here; the message says what it wanted";
  if (error->kind == "BuildError") {
    finding.actions.push_back({"--fallback", "another device runs what this one cannot"});
    finding.actions.push_back({"--device cpu", "another driver"});
  }
  if (error->kind == "IoError") finding.actions.push_back({"", "look for the file, its rights and room on the disk"});
  return finding;
}

std::optional<Finding> cut_off(const Patient& patient) {
  const RunLog& run = patient.run;
  if (run.summary_line > 0 || run.error || run.start_line == 0) return {};
  const std::int64_t step = run.steps.empty() ? 0 : run.steps.back().step;
  Finding finding = patient.finding(Severity::serious, 1, run.end_line);
  finding.seen = fmt::format("the log ends at step {} of {}, without a summary and without an error", step,
                             number_text(run.number("steps").value_or(0)));
  finding.why =
      "it still runs, or somebody ended the process: the kernel does when memory is short, and says so in `dmesg`";
  finding.actions = {
      {"--checkpoint runs/saved --checkpoint-every 100 --resume auto", "the next one goes on where it was"}};
  for (const Action& action : ways_to_less_memory(patient)) finding.actions.push_back(action);
  finding.actions.resize(std::min<std::size_t>(finding.actions.size(), 4));
  return finding;
}

std::optional<Finding> memory_pressure(const Patient& patient) {
  const double limit = patient.run.number("memory_limit_bytes").value_or(0);
  const double peak = patient.run.result("peak_bytes").value_or(0);
  if (limit <= 0 || peak < kPressure * limit) return {};
  Finding finding = patient.finding(Severity::advice, 1, patient.run.summary_line);
  finding.seen = fmt::format("the peak of {} is {:.0f} % of the limit", bytes_text(size_of(peak)), 100 * peak / limit);
  finding.why = "above 85 % a longer sample, a test or another program ends the run";
  finding.actions = ways_to_less_memory(patient);
  return finding;
}

constexpr Rule kFailureRules[] = {
    {"out_of_memory", "B27 C21 D16", out_of_memory},
    {"not_finite", "B28 D17", not_finite},
    {"device_failed", "C20", device_failed},
    {"other_error", "C20", other_error},
    {"cut_off", "C26", cut_off},
    {"memory_pressure", "C24", memory_pressure},
};

}  // namespace

std::span<const Rule> failure_rules() { return kFailureRules; }

}  // namespace samebytes::doctor

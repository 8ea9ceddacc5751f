// Rules about what a run cost: waiting for data, launches too small to fill a device, what switches speed off.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "doctor/rules.h"
#include "samebytes/budget.h"

namespace samebytes::doctor {
namespace {

constexpr double kStarving = 0.10, kStarvingBadly = 0.30;  // share of the time
constexpr double kIdle = 0.70;                             // share of the time that a launch runs
constexpr double kLargeShare = 0.20;                       // of all launches: a kernel worth a look
constexpr double kFarFromBound = 0.30;
constexpr double kMostlyArithmetic = 0.60, kMostlyMemory = 0.40;

std::string bench_words(const Patient& patient) { return patient.run.text("workload"); }

std::optional<Finding> loader_starves(const Patient& patient) {
  const double stalled = patient.stall_fraction();
  if (stalled < kStarving) return {};
  const RunLog& run = patient.run;
  const int line = run.summary_line > 0 ? run.summary_line : run.epochs.empty() ? 0 : run.epochs.back().line;
  Finding finding = patient.finding(stalled >= kStarvingBadly ? Severity::serious : Severity::advice, 2, line);
  finding.seen = fmt::format("{:.0f} % of the time the loop waited for a batch", 100 * stalled);
  finding.why = "the device is ready and has nothing to do: reading, decoding and augmenting are the slower half";
  const auto cores = whole_of(run.number("cores").value_or(1));
  const auto workers = whole_of(run.number("workers").value_or(1));
  const int more = workers == 0 ? 1 : std::min(2 * workers, std::max(cores, 1));
  if (more > workers)
    finding.actions.push_back(
        {fmt::format("--workers {}", more), fmt::format("threads that prepare batches, of {} cores", cores)});
  if (!run.number("max_slots"))  // else it takes more by itself
    finding.actions.push_back({fmt::format("--slots {}", std::max(4, whole_of(run.number("slots").value_or(2)) * 2)),
                               "more batches ready: evens out slow ones, does not make them faster"});
  finding.actions.push_back({fmt::format("samebytes profile {} --trace run.json", bench_words(patient)),
                             "shows what the loader's threads do"});
  finding.actions.push_back(
      {"", "a program of your own: data::preload, lighter transforms, or files that need no decoding"});
  return finding;
}

std::optional<Finding> checks_everything(const Patient& patient) {
  if (!patient.run.flag("check_nan") || patient.run.error) return {};
  Finding finding = patient.finding(Severity::serious, 1, patient.run.start_line);
  finding.seen = "--check-nan was on, and found nothing";
  finding.why = "every op runs by itself and all its results are read: several times slower";
  finding.actions = {{"", "leave --check-nan out; a loss that is no number is noticed without it"}};
  return finding;
}

std::optional<Finding> copies_bytes(const Patient& patient) {
  const double copied = patient.run.result("bytes_copied_per_step").value_or(0);
  if (copied <= 0) return {};
  Finding finding = patient.finding(Severity::advice, 2, patient.run.summary_line);
  finding.seen = fmt::format("{} are copied in each step, in memory mode {}", bytes_text(size_of(copied)),
                             patient.run.text("memory_mode"));
  finding.why = "the device shares no memory with the host, or was told not to";
  finding.actions = {{"samebytes devices", "which devices share memory, and why another one does not"},
                     {"", "leave SAMEBYTES_MEMORY unset, so that each device gets its best mode"}};
  return finding;
}

std::optional<Finding> slow_device(const Patient& patient) {
  const std::string device = patient.run.text("device");
  if (device.find("llvmpipe") == std::string::npos) return {};
  Finding finding = patient.finding(Severity::serious, 3, patient.run.start_line);
  finding.seen = fmt::format("it ran on {}", device);
  finding.why = "that is a graphics driver that imitates a GPU on the CPU: the CPU's own driver is many times faster";
  finding.actions = {{"--device cpu", "PoCL, where it is installed (pocl-opencl-icd)"},
                     {"samebytes devices", "what there is"}};
  return finding;
}

std::optional<Finding> few_threads(const Patient& patient) {
  const double cores = patient.run.number("cores").value_or(0), threads = patient.run.number("threads").value_or(0);
  if (threads <= 0 || threads >= cores || !patient.run.text("device").starts_with("cpu")) return {};
  Finding finding = patient.finding(Severity::advice, 2, patient.run.start_line);
  finding.seen = fmt::format("--threads {} of {} cores", number_text(threads), number_text(cores));
  finding.why = "the other cores do nothing for this run";
  finding.actions = {{"", "leave --threads out"}};
  return finding;
}

std::optional<Finding> device_idles(const Patient& patient) {
  if (patient.profile == nullptr || patient.profile->busy_share >= kIdle || patient.stall_fraction() >= kStarving)
    return {};
  const ProfileLog& profile = *patient.profile;
  Finding finding = patient.profile_finding(profile.busy_share < kIdle / 2 ? Severity::serious : Severity::advice, 2);
  finding.seen = fmt::format("the device is at work {:.0f} % of the time, with {:.0f} launches in a step of {:.3g} ms",
                             100 * profile.busy_share, profile.launches, 1e3 * profile.step_seconds);
  finding.why = "launches are too small: getting them going costs as much as they do, and no faster device helps";
  const double batch = std::max(1.0, patient.batch());
  finding.actions = {{patient.with_batch(4 * batch), "four times the work in the same number of launches"},
                     {fmt::format("samebytes sweep {} --batch {},{},{}", bench_words(patient), number_text(batch),
                                  number_text(4 * batch), number_text(16 * batch)),
                      "samples a second and steps to the same loss, for each"}};
  return finding;
}

std::optional<Finding> slow_kernel(const Patient& patient) {
  if (patient.profile == nullptr) return {};
  const auto& rows = patient.profile->by_kernel;
  const auto worst = std::find_if(rows.begin(), rows.end(), [](const ProfileRowRead& row) {
    return row.share >= kLargeShare && row.share_of_bound > 0 && row.share_of_bound < kFarFromBound;
  });
  if (worst == rows.end()) return {};
  Finding finding = patient.profile_finding(Severity::advice, 3);
  finding.seen = fmt::format("{} has {:.0f} % of the time and runs at {:.0f} % of its bound", worst->name,
                             100 * worst->share, 100 * worst->share_of_bound);
  finding.why = "the device could do it in a fraction of the time: its tiles do not fit these shapes";
  finding.actions = {{"samebytes tune", "searches tiles and splits for this device and keeps them"},
                     {"", "channels and widths that are multiples of 16"}};
  return finding;
}

bool is_arithmetic(const std::string& op) {
  for (const char* part : {"conv", "matmul", "linear", "gemm", "attention", "lstm", "gru"})
    if (op.find(part) != std::string::npos) return true;
  return false;
}

double arithmetic_share(const ProfileLog& profile) {
  double share = 0;
  for (const ProfileRowRead& row : profile.by_op)
    if (is_arithmetic(row.name)) share += row.share;
  return share;
}

std::optional<Finding> sixteen_bits_gain_nothing(const Patient& patient) {
  const std::string precision = patient.run.text("precision");
  if (precision == "f32" || precision.empty() || patient.profile == nullptr) return {};
  const double share = arithmetic_share(*patient.profile);
  if (share < kMostlyArithmetic || !patient.run.text("device").starts_with("cpu")) return {};
  Finding finding = patient.profile_finding(Severity::advice, 1);
  finding.seen =
      fmt::format("products and convolutions are {:.0f} % of the time, in {} on a CPU", 100 * share, precision);
  finding.why = "16 bits halve the bytes, not the arithmetic, and a CPU widens each value before it multiplies";
  finding.actions = {{"--precision f32", "as fast or faster here, unless memory is why 16 bits were taken"}};
  return finding;
}

std::optional<Finding> bound_by_memory(const Patient& patient) {
  if (patient.profile == nullptr || patient.run.text("precision") != "f32") return {};
  const double share = 1 - arithmetic_share(*patient.profile);
  if (share < kMostlyMemory || patient.profile->busy_share < kIdle) return {};
  Finding finding = patient.profile_finding(Severity::advice, 1);
  finding.seen =
      fmt::format("{:.0f} % of the time goes to launches that read and write and hardly compute", 100 * share);
  finding.why = "they wait for memory, so fewer bytes are less time";
  finding.actions = {{"--precision bf16", "activations in half the bytes"}};
  return finding;
}

constexpr Rule kSpeedRules[] = {
    {"loader_starves", "C16 D18", loader_starves},
    {"slow_device", "C20 D18", slow_device},
    {"checks_everything", "D18", checks_everything},
    {"copies_bytes", "E10", copies_bytes},
    {"few_threads", "D18", few_threads},
    {"device_idles", "D18 B26", device_idles},
    {"slow_kernel", "D18 D12", slow_kernel},
    {"sixteen_bits_gain_nothing", "D15", sixteen_bits_gain_nothing},
    {"bound_by_memory", "D15 D2", bound_by_memory},
};

}  // namespace

std::span<const Rule> speed_rules() { return kSpeedRules; }

}  // namespace samebytes::doctor

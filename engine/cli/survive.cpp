#include "cli/survive.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/option_table.h"
#include "cli/text.h"
#include "cli/usage_error.h"

namespace samebytes::cli {
namespace {

constexpr const char* kFoldsPart = "folds";  // a part of the state of a run that has several
constexpr int kMostDeviceErrors = 3;         // of a run, before it ends

// What the steps depend on, under the names of the options, with the values that the run came to.
void expect_options(RunState& state, const Options& options, const Workload& workload, const RunParts& parts) {
  Options used = options;
  used.batch = parts.batch;
  used.limit.automatic_batch = false;
  used.optimizer = parts.recipe.optimizer();
  used.schedule = parts.recipe.schedule();
  used.rate = parts.recipe.rate();
  used.warmup = parts.recipe.warmup();
  used.scale_rate.reset();  // it is part of the rate
  if (options.adaptive.is_on) used.scale_rate = name_of(scale_rule_of(options));
  state.expect("workload", workload.name);
  state.expect("the training set", fmt::format("{} samples", parts.training.dataset().size()));
  // Most schedules are laid out over all steps; a run of the others may be made longer,
  // but for micro-batches, the last ones of which make an update whatever the batch is.
  if (options.adaptive.is_on || (*used.schedule != "constant" && *used.schedule != "plateau"))
    state.expect("the number of steps", fmt::format("{}", parts.steps));
  for (const auto& [flag, value] : values_to_agree_on(used)) state.expect(flag, value);
}

train::CheckpointsOptions checkpoints_of(const Options& options) {
  const SurviveOptions& survive = options.survive;
  train::CheckpointsOptions result{.folder = survive.folder,
                                   .keep = survive.keep.value_or(3),
                                   .resume = survive.resume,
                                   .in_memory = survive.on_device_error.value_or("stop") != "stop",
                                   .gives_state = options.ranks.gives_state};
  if (survive.every && *survive.every != "epoch")
    std::from_chars(survive.every->data(), survive.every->data() + survive.every->size(), result.every);
  return result;
}

}  // namespace

void FoldRun::end(const Summary& summary) {
  ++fold;
  steps += summary.steps;
  if (summary.test_area_under_curve) areas.push_back(*summary.test_area_under_curve);
}

std::string FoldRun::to_text() const {
  return nlohmann::ordered_json{{"fold", fold}, {"steps", steps}, {"areas", areas}}.dump();
}

FoldRun FoldRun::from_text(const std::string& text, const std::string& checkpoint) {
  FoldRun run;
  run.fold = -1;
  try {
    const Json json = Json::parse(text);
    run = {json.at("fold").get<int>(), json.at("steps").get<std::int64_t>(),
           json.at("areas").get<std::vector<double>>()};
  } catch (const Json::exception&) {  // of another type
  }
  if (run.fold < 0 || run.steps < 0)
    throw IoError(fmt::format("{}: expected folds as fold, steps and areas, found {:.60}", checkpoint, text),
                  checkpoint);
  return run;
}

void check_survival(const Options& options) {
  const SurviveOptions& survive = options.survive;
  if (survive.folder.empty()) {
    if (survive.every && survive.on_device_error.value_or("stop") == "stop" && !options.ranks.gives_state)
      throw UsageError("--checkpoint-every needs --checkpoint DIR");
    if (survive.resume == "auto")
      throw UsageError("--resume auto needs --checkpoint DIR, the folder to look in; or name a file");
    return;
  }
  if (survive.resume.empty() && !CheckpointFolder(survive.folder).list().empty())
    throw UsageError(
        fmt::format("{} has the checkpoints of an earlier run: --resume auto goes on from the newest; to "
                    "begin anew, name another folder or remove them",
                    survive.folder));
}

Keeper::Keeper(const Options& options, train::RunLog& log)
    : options_(options), log_(log), checkpoints_(std::make_shared<train::Checkpoints>(checkpoints_of(options))) {}

void Keeper::find_fold() {
  if (const std::optional<Checkpoint>& wanted = checkpoints_->wanted())
    if (const std::optional<std::string> text = run_text(wanted->path, kFoldsPart))
      folds_ = FoldRun::from_text(*text, wanted->path);
  checkpoints_->set_first_step(folds_.steps);
}

void Keeper::end_fold(const Summary& summary) {
  folds_.end(summary);
  checkpoints_->begin_next(folds_.steps, log_.position());
}

std::optional<std::string> Keeper::begin(const Workload& workload, const RunParts& parts, train::Session& session) {
  if (!checkpoints_->is_on()) return std::nullopt;
  std::optional<train::Resumed> resumed;
  try {
    RunState& state = session.state();
    expect_options(state, options_, workload, parts);
    if (workload.folds > 1)
      state.add(
          kFoldsPart, [this] { return folds_.to_text(); },
          [this](const std::string& text) {
            folds_ = FoldRun::from_text(text, checkpoints_->wanted() ? checkpoints_->wanted()->path : "a kept state");
          });
    resumed = session.resume();
  } catch (const ArgumentError& error) {
    throw UsageError(error.what());
  }
  if (!resumed) return std::nullopt;
  if (survival_.device_errors.empty()) survival_.resumed_from = resumed->step;
  Json line{{"event", "resume"}, {"step", resumed->step}, {"from", resumed->from}, {"text", resumed->text}};
  if (workload.folds > 1) line["fold"] = folds_.fold + 1;
  log_.write(to_line(line));
  return resumed->text;
}

void Keeper::tell_log() const {
  for (const std::string& error : unsaid_)
    log_.write(to_line(
        {{"event", "device_error"}, {"action", options_.survive.on_device_error.value_or("stop")}, {"error", error}}));
}

std::vector<std::string> Keeper::troubles() {
  const std::vector<std::string>& damaged = checkpoints_->written().damaged;
  std::vector<std::string> texts;
  for (; told_ < damaged.size(); ++told_) texts.push_back("passed over: " + damaged[told_]);
  texts.insert(texts.end(), troubles_.begin(), troubles_.end());
  troubles_.clear();
  return texts;
}

void Keeper::fill(Summary& summary) const {
  if (!checkpoints_->is_on()) return;
  const train::Checkpoints::Written& written = checkpoints_->written();
  summary.survival = survival_;
  summary.survival->checkpoints = written.count;
  summary.survival->checkpoint = written.path;
  summary.survival->checkpoint_bytes = written.bytes;
  summary.survival->damaged = written.damaged;
  if (written.count > 0) summary.survival->checkpoint_ms = written.seconds * 1e3 / static_cast<double>(written.count);
}

bool Keeper::goes_on_after(const DeviceError& error, std::string& device) {
  const std::string action = options_.survive.on_device_error.value_or("stop");
  // Without a call it is not an error of a device, but the lack of one.
  if (error.call().empty()) return false;
  if (action == "stop" || survival_.device_errors.size() >= kMostDeviceErrors) {
    log_.write(to_line({{"event", "device_error"}, {"action", "stop"}, {"error", error.what()}}));
    return false;
  }
  survival_.device_errors.emplace_back(error.what());
  unsaid_.emplace_back(error.what());
  troubles_.push_back(fmt::format("device error {} of at most {}: {}; {}", survival_.device_errors.size(),
                                  kMostDeviceErrors, error.what(),
                                  action == "cpu" ? "going on on the CPU" : "trying again"));
  if (action == "cpu") device = "cpu";
  return true;
}

std::string Keeper::last_resort() const {
  const std::string& path = checkpoints_->written().path;
  return path.empty() ? "" : fmt::format("; {} is whole, --resume auto goes on from it", path);
}

}  // namespace samebytes::cli

#include "cli/survive.h"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "cli/json.h"
#include "cli/usage_error.h"

namespace samebytes::cli {
namespace {

constexpr const char* kFoldsPart = "folds";  // a part of the state of a run that has several
constexpr int kMostDeviceErrors = 3;         // of a run, before it ends

template <class T>
std::string word_of(const std::optional<T>& option) {
  return option ? fmt::format("{}", *option) : "the default";
}

// What the steps depend on, under the names of the options.
void expect_options(RunState& state, const Options& options, const Workload& workload, const RunParts& parts) {
  state.expect("workload", workload.name);
  if (options.form.size) state.expect("--size", *options.form.size);
  if (options.form.context) state.expect("--context", fmt::format("{}", *options.form.context));
  if (options.form.name) state.expect("--name", *options.form.name);
  state.expect("the training set", fmt::format("{} samples", parts.training.dataset().size()));
  state.expect("--batch", fmt::format("{}", parts.batch));
  state.expect("--accumulate", fmt::format("{}", options.step.accumulate));
  state.expect("--micro-batch", word_of(options.step.micro_batch));
  if (options.head.is_chunked()) state.expect("--head-chunks", options.head.to_text());
  state.expect("--moments", options.moments);
  state.expect("--weights", options.weights);
  state.expect("--lora-rank", word_of(options.lora.rank));
  state.expect("--lora-alpha", word_of(options.lora.alpha));
  state.expect("--lora-dropout", word_of(options.lora.dropout));
  state.expect("--lora-targets", fmt::format("{}", fmt::join(options.lora.targets, ",")));
  state.expect("--seed", fmt::format("{}", options.seed));
  state.expect("--precision", options.precision);
  state.expect("--optimizer", parts.recipe.optimizer());
  state.expect("--schedule", parts.recipe.schedule());
  state.expect("--rate", fmt::format("{}", parts.recipe.rate()));
  state.expect("--warmup", fmt::format("{}", parts.recipe.warmup()));
  state.expect("--gamma", word_of(options.gamma));
  state.expect("--every", word_of(options.every));
  state.expect("--weight-decay", word_of(options.weight_decay));
  state.expect("--momentum", word_of(options.momentum));
  state.expect("--clip-norm", word_of(options.clip_norm));
  state.expect("--ema", word_of(options.ema));
  if (options.adaptive.is_on) {
    state.expect("--adaptive-batch", "on");
    state.expect("--max-batch", word_of(options.adaptive.max_batch));
    state.expect("--scale-rate", scale_rule_of(options) == optim::ScaleRule::linear ? "linear" : "sqrt");
  }
  // Most schedules are laid out over all steps; a run of the others may be made longer,
  // but for micro-batches, the last ones of which make an update whatever the batch is.
  if (options.adaptive.is_on || (parts.recipe.schedule() != "constant" && parts.recipe.schedule() != "plateau"))
    state.expect("the number of steps", fmt::format("{}", parts.steps));
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

void check_survival(const Options& options) {
  const SurviveOptions& survive = options.survive;
  if (survive.folder.empty()) {
    if (survive.keep) throw UsageError("--keep is of --checkpoint DIR; ask for that too");
    if (survive.every && survive.on_device_error.value_or("stop") == "stop" && !options.ranks.gives_state)
      throw UsageError("--checkpoint-every is of --checkpoint DIR; ask for that too");
    if (survive.resume == "auto")
      throw UsageError("--resume auto looks in the folder of --checkpoint DIR; ask for that too, or name a file");
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
    if (const std::optional<std::string> text = run_text(wanted->path, kFoldsPart)) folds_ = FoldRun::from_text(*text);
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
          [this](const std::string& text) { folds_ = FoldRun::from_text(text); });
    resumed = session.resume();
  } catch (const ArgumentError& error) {
    throw UsageError(error.what());
  }
  if (!resumed) return std::nullopt;
  if (survival_.device_errors.empty()) survival_.resumed_from = resumed->step;
  Json line{{"event", "resume"}, {"step", resumed->step}, {"from", resumed->from}, {"text", resumed->text}};
  if (workload.folds > 1) line["fold"] = folds_.fold + 1;
  log_.write(line.dump());
  return resumed->text;
}

void Keeper::tell_log() const {
  for (const std::string& error : unsaid_)
    log_.write(
        Json{{"event", "device_error"}, {"action", options_.survive.on_device_error.value_or("stop")}, {"error", error}}
            .dump());
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
    log_.write(Json{{"event", "device_error"}, {"action", "stop"}, {"error", error.what()}}.dump());
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

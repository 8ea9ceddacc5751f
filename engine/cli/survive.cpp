#include "cli/survive.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <utility>

#include "cli/json.h"
#include "cli/usage_error.h"

namespace samebytes::cli {
namespace {

constexpr const char* kFoldsPart = "folds";  // a part of the state of a run that has several
constexpr int kMostDeviceErrors = 3;         // of a run, before it ends

struct Result {
  const char* name;
  std::optional<double> Summary::*member;
};
constexpr Result kResults[] = {{"train_loss", &Summary::train_loss},
                               {"test_loss", &Summary::test_loss},
                               {"test_accuracy", &Summary::test_accuracy},
                               {"test_balanced_accuracy", &Summary::test_balanced_accuracy},
                               {"test_area_under_curve", &Summary::test_area_under_curve}};

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

void add_parts(RunState& state, const RunParts& parts) {
  state.add("model", parts.net);
  state.add("optimizer", parts.optimizer);
  if (parts.scaler != nullptr) state.add("scaler", *parts.scaler);
  if (parts.ema != nullptr) state.add("ema", *parts.ema);
  if (parts.recipe.plateau() != nullptr) state.add("plateau", *parts.recipe.plateau());
  if (parts.adaptive != nullptr) parts.adaptive->add_to(state);
  if (parts.shared != nullptr) parts.shared->add_to(state);
  state.add("training", parts.training);
  state.add("train loss", parts.mean);
  state.add("counts", parts.counts, parts.set_counts);
}

}  // namespace

Json results_of(const Summary& summary) {
  Json json = Json::object();
  for (const Result& result : kResults)
    if (summary.*result.member) json[result.name] = *(summary.*result.member);
  return json;
}

void set_results(const Json& results, Summary& summary) {
  for (const Result& result : kResults)
    if (results.contains(result.name) && results[result.name].is_number())
      summary.*result.member = results[result.name].get<double>();
}

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

Keeper::Keeper(const Options& options, StepLog& log) : options_(options), log_(log) {
  const SurviveOptions& survive = options.survive;
  if (!survive.folder.empty())
    folder_.emplace(survive.folder, CheckpointFolderOptions{.keep = survive.keep.value_or(3)});
  keeps_in_memory_ = !folder_ && survive.on_device_error.value_or("stop") != "stop";
  if (survive.every && *survive.every != "epoch")
    std::from_chars(survive.every->data(), survive.every->data() + survive.every->size(), every_);
}

// The file to go on from, if there is any: the last one of this process, else what --resume says.
const std::optional<Checkpoint>& Keeper::wanted() {
  if (std::exchange(has_looked_, true) || options_.survive.resume.empty()) return wanted_;
  if (options_.survive.resume != "auto") return wanted_ = Checkpoint{options_.survive.resume, 0};
  CheckpointFolder::Newest newest = folder_->newest();
  for (const std::string& text : newest.damaged) {
    survival_.damaged.push_back(text);
    troubles_.push_back("passed over: " + text);
  }
  return wanted_ = newest.checkpoint;
}

void Keeper::find_fold() {
  if (!wanted()) return;
  if (const std::optional<std::string> text = run_text(wanted()->path, kFoldsPart)) folds_ = FoldRun::from_text(*text);
}

void Keeper::end_fold(const Summary& summary) {
  folds_.end(summary);
  last_.reset();
  wanted_.reset();
  has_looked_ = true;
  log_begin_ = log_.position();
}

std::optional<std::string> Keeper::begin(const Workload& workload, const RunParts& parts) {
  engine_ = &parts.engine;
  optimizer_ = &parts.optimizer;
  if (!is_on()) return std::nullopt;
  state_.emplace(parts.engine);
  std::string from;
  RunOrigin origin;
  try {
    expect_options(*state_, options_, workload, parts);
    add_parts(*state_, parts);
    state_->add(
        "log", [this] { return std::to_string(log_.position()); },
        [this](const std::string& text) { log_position_ = std::stoll(text); });
    if (workload.folds > 1)
      state_->add(
          kFoldsPart, [this] { return folds_.to_text(); },
          [this](const std::string& text) { folds_ = FoldRun::from_text(text); });
    log_position_ = log_begin_;
    if (last_) {
      from = "memory";
      origin = state_->restore(*last_);
    } else if (const std::optional<Checkpoint> checkpoint = wanted()) {
      from = checkpoint->path;
      origin = state_->load(from);
    }
  } catch (const ArgumentError& error) {
    throw UsageError(error.what());
  }
  parts.recipe.resumed(parts.optimizer);
  log_.rewind(log_position_);
  if (from.empty()) return std::nullopt;
  const std::int64_t step = parts.done();
  if (survival_.device_errors.empty()) survival_.resumed_from = step;
  const TuningReport tuning = parts.engine.tuning();
  std::string text = fmt::format("goes on after step {}, from {}", step, from);
  if (origin != RunOrigin{parts.engine.device().name, tuning.hash})
    text += fmt::format("; made on {} with tuning {}, so not bit for bit", origin.device, origin.tuning);
  Json line{{"event", "resume"}, {"step", step}, {"from", from}, {"text", text}};
  if (workload.folds > 1) line["fold"] = folds_.fold + 1;
  log_.write(line);
  return text;
}

void Keeper::tell_log() const {
  for (const std::string& error : unsaid_)
    log_.write(
        {{"event", "device_error"}, {"action", options_.survive.on_device_error.value_or("stop")}, {"error", error}});
}

void Keeper::save(std::int64_t step) {
  engine_->wait();  // also throws what failed: a state is whole or is not written
  if (options_.ranks.gives_state) {
    static_cast<void>(optimizer_->whole_state());
    return;
  }
  const auto start = std::chrono::steady_clock::now();
  if (folder_) {
    survival_.checkpoint = folder_->save(*state_, folds_.steps + step);
    survival_.checkpoint_bytes = std::filesystem::file_size(survival_.checkpoint);
    wanted_ = Checkpoint{survival_.checkpoint, folds_.steps + step};
    has_looked_ = true;
  } else {
    last_ = state_->snapshot();
    survival_.checkpoint_bytes = last_->bytes();
  }
  unsaid_.clear();
  seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  ++survival_.checkpoints;
}

void Keeper::fill(Summary& summary) const {
  if (!is_on()) return;
  summary.survival = survival_;
  if (survival_.checkpoints > 0)
    summary.survival->checkpoint_ms = seconds_ * 1e3 / static_cast<double>(survival_.checkpoints);
}

bool Keeper::goes_on_after(const DeviceError& error, std::string& device) {
  const std::string action = options_.survive.on_device_error.value_or("stop");
  // Without a call it is not an error of a device, but the lack of one.
  if (error.call().empty()) return false;
  if (action == "stop" || survival_.device_errors.size() >= kMostDeviceErrors) {
    log_.write({{"event", "device_error"}, {"action", "stop"}, {"error", error.what()}});
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
  const std::string& path = survival_.checkpoint;
  return path.empty() ? "" : fmt::format("; {} is whole, --resume auto goes on from it", path);
}

}  // namespace samebytes::cli

#include "cli/shares.h"

#include <fmt/format.h>

#include <utility>

#include "cli/usage_error.h"
#include "samebytes/distributed.h"
#include "samebytes/error.h"

namespace samebytes::cli {
namespace {

train::DataParallelOptions parallel_options(const ShareOptions& asked) {
  train::DataParallelOptions options{
      .sync_batch_norm = asked.sync_batch_norm, .shares = asked.shares, .rebalance = asked.rebalance};
  if (asked.timeout) options.least_seconds = *asked.timeout;
  return options;
}

void check_shares(const Options& options, bool has_several, bool is_training) {
  const ShareOptions& asked = options.shares;
  if (!has_several) {
    const auto refuse = [](const char* what) {
      throw UsageError(
          fmt::format("{} is for several devices, and the run has one; name several with --device or cut "
                      "one with --split-device",
                      what));
    };
    if (!asked.shares.empty()) refuse("--shares");
    if (asked.rebalance) refuse("--rebalance");
    if (asked.sync_batch_norm && distributed::launched_processes() < 2) refuse("--sync-batch-norm");
    if (asked.timeout) refuse("--device-timeout");
    return;
  }
  if (asked.rebalance && !asked.shares.empty())
    throw UsageError("--shares fixes what --rebalance changes; use one of the two");
  if (!is_training) return;
  const auto refuse = [](const char* what, const char* why) {
    throw UsageError(fmt::format("{} {}; use one device for it, or leave it out", what, why));
  };
  if (options.adaptive.is_on) refuse("--adaptive-batch", "measures the gradients of one device");
  if (options.release_gradients) refuse("--release-gradients", "updates before the gradients of all shares are there");
}

}  // namespace

SharedSteps::SharedSteps(const Options& options, Engine& engine, nn::Module& net)
    : engine_(engine), parallel_(engine, net, parallel_options(options.shares)) {
  if (!options.shares.shares.empty()) asked_ = fmt::format("{}", fmt::join(options.shares.shares, ","));
}

std::unique_ptr<SharedSteps> SharedSteps::make(const Options& options, Engine& engine, nn::Module& net,
                                               bool is_training) {
  check_shares(options, engine.device_count() > 1, is_training);
  if (engine.device_count() == 1) return nullptr;
  try {
    return std::unique_ptr<SharedSteps>(new SharedSteps(options, engine, net));
  } catch (const ArgumentError& error) {
    throw UsageError(std::string("--shares: ") + error.what());
  }
}

void SharedSteps::find(optim::Optimizer& optimizer, train::Precision& precision, data::Loader& loader,
                       std::int64_t samples, const train::LossOf& loss_of) {
  batch_ = samples;
  data::Batch batch;
  const data::LoaderPlace place = loader.place();
  parallel_.measure_shares(optimizer, batch_, [&](std::int64_t begin, std::int64_t end) {
    if (batch.samples() == 0) batch = *loader.begin();
    return precision.scaled(loss_of(batch.piece(begin, end)));
  });
  if (batch.samples() == 0) return;
  engine_.wait();
  loader.seek(place.epoch, place.step);
}

void SharedSteps::report(std::function<void(const std::string&)> say, train::RunLog& log) {
  parallel_.set_listener([say = std::move(say), &log](const train::DeviceEvent& event) {
    say(fmt::format("step {}: {}", event.step, event.text));
    log.write(nlohmann::ordered_json{
        {"event", "device"}, {"step", event.step}, {"what", name_of(event.kind)}, {"text", event.text}}
                  .dump());
  });
}

std::string SharedSteps::text() const {
  return fmt::format("shares: {}{}", parallel_.to_text(batch()),
                     parallel_.options().rebalance ? ", rebalanced as it runs: it will not repeat bit for bit" : "");
}

std::string SharedSteps::devices() const {
  std::string text;
  for (int d = 0; d < engine_.device_count(); ++d) {
    const DeviceInfo& info = engine_.device(d);
    text += fmt::format("{}{} {} with {} cores", d > 0 ? ", " : "", info.id, info.name, info.cores);
  }
  return text;
}

void SharedSteps::add_to(nlohmann::ordered_json& start_line) const {
  start_line["devices"] = nlohmann::ordered_json::array();
  for (int d = 0; d < engine_.device_count(); ++d) start_line["devices"].push_back(device_text(engine_.device(d)));
  start_line["shares"] = parallel_.shares(batch());
  start_line["sync_batch_norm"] = parallel_.options().sync_batch_norm;
  start_line["rebalance"] = parallel_.options().rebalance;
  start_line["repeats"] = !parallel_.options().rebalance;
}

void SharedSteps::add_to(RunState& state) {
  state.expect("the devices", devices());
  state.expect("--sync-batch-norm", parallel_.options().sync_batch_norm ? "on" : "off");
  state.expect("--rebalance", parallel_.options().rebalance ? "on" : "off");
  if (!asked_.empty()) state.expect("--shares", asked_);
  state.add(
      "shares", [this] { return parallel_.state(); }, [this](const std::string& text) { parallel_.load_state(text); });
}

void SharedSteps::fill(Summary& summary) const {
  const std::vector<std::int64_t> shares = parallel_.shares(batch());
  for (int d = 0; d < engine_.device_count(); ++d)
    summary.shares.push_back({.device = device_text(engine_.device(d)),
                              .share = shares[static_cast<std::size_t>(d)],
                              .samples = parallel_.samples()[static_cast<std::size_t>(d)]});
  for (const train::DeviceEvent& event : parallel_.events())
    summary.device_events.push_back(fmt::format("step {}: {}", event.step, event.text));
}

}  // namespace samebytes::cli

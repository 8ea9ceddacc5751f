// A Session's steps on the devices of one engine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/json.h"
#include "samebytes/engine.h"
#include "samebytes/run_state.h"
#include "samebytes/train/parallel/strategies.h"
#include "samebytes/train/precision.h"
#include "samebytes/train/run_log.h"

namespace samebytes::train {
namespace {

std::string text_of(const Engine& engine) {
  std::string text;
  for (int d = 0; d < engine.device_count(); ++d) {
    const DeviceInfo& info = engine.device(d);
    text += fmt::format("{}{} {} with {} cores", d > 0 ? ", " : "", info.id, info.name, info.cores);
  }
  return text;
}

const char* on_or_off(bool is_on) { return is_on ? "on" : "off"; }

}  // namespace

DevicesStrategy::DevicesStrategy(Engine& engine, nn::Module& net, const DataParallelOptions& options,
                                 SharingNames names)
    : engine_(engine), names_(std::move(names)), parallel_(engine, net, options) {}

void DevicesStrategy::measure(optim::Optimizer& optimizer, Precision& precision, data::Loader& loader,
                              std::int64_t samples, const LossOf& loss_of) {
  const EngineScope scope(engine_);
  batch_ = samples;
  data::Batch batch;
  const data::LoaderPlace place = loader.place();
  parallel_.measure_shares(optimizer, samples, [&](std::int64_t begin, std::int64_t end) {
    if (batch.samples() == 0) batch = *loader.begin();
    return precision.scaled(loss_of(batch.piece(begin, end)));
  });
  if (batch.samples() == 0) return;
  engine_.wait();
  loader.seek(place.epoch, place.step);
}

void DevicesStrategy::report_to(std::function<void(const std::string&)> say, RunLog& log) {
  parallel_.set_listener([say = std::move(say), &log](const DeviceEvent& event) {
    if (say) say(fmt::format("step {}: {}", event.step, event.text));
    log.write(detail::to_line(nlohmann::ordered_json{
        {"event", "device"}, {"step", event.step}, {"what", name_of(event.kind)}, {"text", event.text}}));
  });
}

std::int64_t DevicesStrategy::batch() const { return std::max(batch_, parallel_.largest_batch()); }

void DevicesStrategy::add_to(RunState& state) {
  const DataParallelOptions& options = parallel_.options();
  state.expect("the devices", text_of(engine_));
  state.expect(names_.sync_batch_norm, on_or_off(options.sync_batch_norm));
  state.expect(names_.rebalance, on_or_off(options.rebalance));
  if (!options.shares.empty()) state.expect(names_.shares, fmt::format("{}", fmt::join(options.shares, ",")));
  state.add(
      "shares", [this] { return parallel_.state(); }, [this](const std::string& text) { parallel_.load_state(text); });
}

}  // namespace samebytes::train

#include "samebytes/run_state.h"

#include <algorithm>
#include <cstring>
#include <deque>

#include "core/json.h"
#include "samebytes/error.h"
#include "samebytes/memory.h"
#include "train/run_impl.h"

namespace samebytes {
namespace {

using detail::Part;
using detail::PartState;
using detail::RunJson;
using detail::RunSource;

constexpr const char* kSkippedSteps = "skipped_steps";  // an optimizer has it from a scaler's first step on

// All of a run as bytes that still lie where the device has them.
struct Gathered {
  std::vector<io::TensorView> tensors;
  std::vector<detail::Borrow> views;  // as long as they are read
  std::deque<HostArray> values;
  std::string description;

  Gathered(const Engine& engine, std::span<const std::pair<std::string, std::string>> expected,
           std::span<const Part> parts) {
    RunJson json;
    json["device"] = engine.device().name;
    json["tuning"] = engine.tuning().hash;
    json["random_counter"] = engine.random_counter();
    json["expect"] = RunJson::object();
    for (const auto& [name, value] : expected) json["expect"][name] = value;
    json["parts"] = RunJson::object();
    for (const Part& part : parts) {
      PartState state = part.get();
      json["parts"][part.name] = std::move(state.numbers);
      if (!state.layouts.is_null()) json["layouts"][part.name] = std::move(state.layouts);
      for (const optim::StateArray& entry : state.arrays) {
        const Array& array = entry.array;
        std::span<const std::byte> bytes;
        if (array.size() > 0) {
          views.emplace_back(array, false, __FILE__, __LINE__);
          bytes = {static_cast<const std::byte*>(views.back().data()),
                   static_cast<std::size_t>(array.size()) * bytes_of(array.dtype())};
        }
        tensors.push_back({part.name + "/" + entry.name, array.dtype(), array.shape(), bytes});
      }
      for (auto& [name, value] : state.values) {
        values.push_back(std::move(value));
        const HostArray& kept = values.back();
        tensors.push_back({part.name + "/" + name, kept.dtype, kept.shape, kept.bytes});
      }
    }
    description = detail::to_text("run state", json);
  }
};

class SnapshotSource final : public RunSource {
 public:
  explicit SnapshotSource(const RunSnapshot& snapshot) : snapshot_(snapshot) {
    for (const auto& [name, values] : snapshot.tensors) tensors_.push_back({name, values.dtype, values.shape});
    description_ = RunJson::parse(snapshot.description);
  }
  std::string name() const override { return "snapshot"; }
  const std::vector<io::TensorInfo>& tensors() const override { return tensors_; }
  void read(std::size_t tensor, std::span<std::byte> dst) const override {
    std::memcpy(dst.data(), snapshot_.tensors[tensor].values.bytes.data(), dst.size());
  }

 private:
  const RunSnapshot& snapshot_;
  std::vector<io::TensorInfo> tensors_;
};

std::string text_of(Dtype dtype, const Shape& shape) { return std::string(name_of(dtype)) + " " + shape.to_string(); }

}  // namespace

std::size_t RunSnapshot::bytes() const {
  std::size_t total = description.size();
  for (const Tensor& tensor : tensors) total += tensor.values.bytes.size();
  return total;
}

RunState::RunState(Engine& engine) : impl_(std::make_unique<Impl>(engine)) {}
RunState::~RunState() = default;

void RunState::expect(const std::string& name, const std::string& value) {
  for (const auto& [other, unused] : impl_->expected)
    if (other == name) throw ArgumentError("run state: " + name + " is expected twice");
  impl_->expected.emplace_back(name, value);
}

void RunState::Impl::add(Part part) {
  if (part.name.empty() || part.name.find('/') != std::string::npos)
    throw ArgumentError("run state: a name is not empty and has no \"/\", got '" + part.name + "'");
  if (std::any_of(parts.begin(), parts.end(), [&](const Part& other) { return other.name == part.name; }))
    throw ArgumentError("run state: " + part.name + " was added twice");
  parts.push_back(std::move(part));
}

void RunState::Impl::check(const RunSource& source) const {
  const auto refuse = [&](const std::string& what) {
    throw ArgumentError("run state: " + source.name() + ": " + what);
  };
  const RunJson& there = source.description();
  const RunJson &words = there["expect"], &others = there["parts"];
  for (const auto& [name, value] : expected) {
    if (!words.contains(name)) refuse(name + " is " + value + " here, and not said there");
    if (words[name] != value) refuse(name + " is " + words[name].get<std::string>() + " there and " + value + " here");
  }
  for (const auto& [name, value] : words.items())
    if (std::none_of(expected.begin(), expected.end(), [&name = name](const auto& mine) { return mine.first == name; }))
      refuse(name + " is " + value.get<std::string>() + " there, and not said here");
  for (const auto& [name, numbers] : others.items())
    if (std::none_of(parts.begin(), parts.end(), [&name = name](const Part& part) { return part.name == name; }))
      refuse("it has " + name + ", this run has none");
  for (const Part& part : parts) {
    if (!others.contains(part.name)) refuse("this run has " + part.name + ", it has none");
    if (part.content != Part::same) continue;
    PartState state;
    try {
      state = part.get();
    } catch (const DeviceError&) {
      continue;  // lost in a failed launch, and about to be written anew
    }
    for (const auto& [name, number] : state.numbers.items())
      if (name != kSkippedSteps && !others[part.name].contains(name))
        refuse("it has no " + part.name + "/" + name + ", this run has");
    std::size_t count = 0;
    for (const io::TensorInfo& tensor : source.tensors()) count += tensor.name.starts_with(part.name + "/");
    for (const optim::StateArray& entry : state.arrays) {
      const std::string name = part.name + "/" + entry.name;
      const std::string mine = text_of(entry.array.dtype(), entry.array.shape());
      const auto index = source.find(name);
      if (!index) refuse("this run has " + name + " of " + mine + ", it has none");
      const io::TensorInfo& tensor = source.tensors()[*index];
      if (tensor.dtype != entry.array.dtype() || tensor.shape != entry.array.shape())
        refuse(name + " is " + text_of(tensor.dtype, tensor.shape) + " there and " + mine + " here");
    }
    if (count != state.arrays.size())
      refuse("it has " + std::to_string(count) + " arrays of " + part.name + ", this run has " +
             std::to_string(state.arrays.size()));
  }
}

RunOrigin RunState::Impl::restore(const RunSource& source) {
  const EngineScope scope(engine);
  check(source);
  for (const Part& part : parts) part.set(detail::PartReader(source, part.name));
  const RunJson& there = source.description();
  engine.set_random_counter(there["random_counter"].get<std::uint64_t>());
  return {there["device"].get<std::string>(), there["tuning"].get<std::string>()};
}

void RunState::save(const std::string& path) const {
  const EngineScope scope(impl_->engine);
  const Gathered state(impl_->engine, impl_->expected, impl_->parts);
  detail::write_run_file(path, state.tensors, state.description);
}

RunOrigin RunState::load(const std::string& path) {
  return detail::reading_json("run state", path, [&] { return impl_->restore(detail::RunFile(path)); });
}

RunSnapshot RunState::snapshot() const {
  const EngineScope scope(impl_->engine);
  const Gathered state(impl_->engine, impl_->expected, impl_->parts);
  RunSnapshot result;
  result.description = state.description;
  for (const io::TensorView& tensor : state.tensors)
    result.tensors.push_back({tensor.name, HostArray(tensor.shape, tensor.dtype)});
  for (std::size_t i = 0; i < state.tensors.size(); ++i)
    if (const auto bytes = state.tensors[i].bytes; !bytes.empty())
      std::memcpy(result.tensors[i].values.bytes.data(), bytes.data(), bytes.size());
  return result;
}

RunOrigin RunState::restore(const RunSnapshot& snapshot) { return impl_->restore(SnapshotSource(snapshot)); }

}  // namespace samebytes

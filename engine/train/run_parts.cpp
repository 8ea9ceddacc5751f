#include "train/run_parts.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_set>

#include "samebytes/data/loader.h"
#include "samebytes/data/samplers.h"
#include "samebytes/error.h"
#include "samebytes/memory.h"
#include "samebytes/nn/module.h"
#include "samebytes/optim.h"
#include "samebytes/train.h"
#include "train/run_impl.h"

namespace samebytes {
namespace detail {

RunJson json_of(double number) {
  if (std::isfinite(number)) return number;
  return std::isnan(number) ? "nan" : number > 0 ? "infinity" : "-infinity";
}

double number_of(const RunJson& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "infinity") return std::numeric_limits<double>::infinity();
  if (value == "-infinity") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

std::optional<std::size_t> RunSource::find(const std::string& tensor) const {
  for (std::size_t i = 0; i < tensors().size(); ++i)
    if (tensors()[i].name == tensor) return i;
  return std::nullopt;
}

PartReader::PartReader(const RunSource& source, std::string part)
    : source_(source), part_(std::move(part)), numbers_(source.description()["parts"][part_]) {}

void PartReader::read_into(const Array& cell, const std::string& name) const {
  const auto index = source_.find(part_ + "/" + name);
  const std::size_t bytes = static_cast<std::size_t>(cell.size()) * bytes_of(cell.dtype());
  if (!index || source_.tensors()[*index].bytes() != bytes)
    throw ArgumentError("run state: " + source_.name() + ": has no " + part_ + "/" + name + " of " +
                        std::to_string(bytes) + " bytes");
  if (bytes == 0) return;
  const Borrow view(cell, true, __FILE__, __LINE__);
  source_.read(*index, {static_cast<std::byte*>(view.data()), bytes});
}

HostArray PartReader::values(const std::string& name) const {
  const auto index = source_.find(part_ + "/" + name);
  if (!index) throw ArgumentError("run state: " + source_.name() + ": has no " + part_ + "/" + name);
  const io::TensorInfo& tensor = source_.tensors()[*index];
  HostArray result(tensor.shape, tensor.dtype);
  source_.read(*index, result.bytes);
  return result;
}

std::vector<optim::StateArray> PartReader::arrays() const {
  std::vector<optim::StateArray> result;
  for (const io::TensorInfo& tensor : source_.tensors()) {
    if (!tensor.name.starts_with(part_ + "/")) continue;
    const std::string name = tensor.name.substr(part_.size() + 1);
    result.push_back({name, empty(tensor.shape, tensor.dtype)});
    read_into(result.back().array, name);
  }
  return result;
}

namespace {

PartState state_of(const optim::StateDict& dict) {
  PartState state;
  state.arrays = dict.arrays;
  for (const optim::StateNumber& number : dict.numbers) state.numbers[number.name] = json_of(number.value);
  return state;
}

std::vector<optim::StateNumber> numbers_of(const PartReader& reader) {
  std::vector<optim::StateNumber> result;
  for (const auto& [name, value] : reader.numbers().items()) result.push_back({name, number_of(value)});
  return result;
}

// What has a state_dict() with the same arrays at any time: they are read into its own memory.
template <class T>
Part with_own_cells(const std::string& name, T& object) {
  return {name, Part::same, [&object] { return state_of(object.state_dict()); },
          [&object](const PartReader& reader) {
            const std::vector<optim::StateArray> cells = object.state_dict().arrays;
            for (const optim::StateArray& cell : cells) reader.read_into(cell.array, cell.name);
            object.load_state_dict({cells, numbers_of(reader)});
          }};
}

template <class T>
Part with_mean(const std::string& name, T& object) {
  return {name, Part::same,
          [&object] {
            const Mean::State mean = object.state();
            PartState state;
            // One by one: of a list, clang 14 loses what lay in `numbers` before.
            state.numbers["sum"] = json_of(mean.sum);
            state.numbers["lost"] = json_of(mean.lost);
            state.numbers["weight"] = json_of(mean.weight);
            state.numbers["f64"] = mean.is_f64;
            return state;
          },
          [&object](const PartReader& reader) {
            const RunJson& numbers = reader.numbers();
            object.restore({number_of(numbers["sum"]), number_of(numbers["lost"]), number_of(numbers["weight"]),
                            numbers["f64"].get<bool>()});
          }};
}

// An optimizer that keeps a share of its state: the file has the whole, so that any number of processes goes on from
// it.
Part with_shards(const std::string& name, optim::Optimizer& optimizer) {
  return {name, Part::varying,
          [&optimizer] {
            PartState state = state_of({{}, optimizer.state_dict().numbers});
            state.values = optimizer.whole_state();
            return state;
          },
          [&optimizer](const PartReader& reader) {
            const std::vector<optim::StateArray> cells = optimizer.state();
            for (const optim::StateArray& cell : cells) {
              const HostArray whole = reader.values(cell.name);
              const optim::Optimizer::Cut& cut = optimizer.cut_of(cell.array);
              if (whole.dtype != cell.array.dtype() || whole.size() != cut.size)
                throw ArgumentError("run state: " + cell.name + " is " + std::string(name_of(whole.dtype)) + " " +
                                    whole.shape.to_string() + " there, and of another size or dtype here");
              const std::size_t width = bytes_of(whole.dtype);
              const auto rank = static_cast<std::size_t>(optimizer.shard_rank());
              const std::int64_t begin = cut.bounds[rank], end = cut.bounds[rank + 1];
              if (begin == end) continue;
              const Borrow view(cell.array, true, __FILE__, __LINE__);
              std::memcpy(view.data(), whole.bytes.data() + static_cast<std::size_t>(begin) * width,
                          static_cast<std::size_t>(end - begin) * width);
            }
            optimizer.load_state_dict({cells, numbers_of(reader)});
          }};
}

// Shared parameters have several names; the first one counts.
std::vector<optim::StateArray> cells_of(const nn::Module& module, bool has_frozen) {
  std::vector<optim::StateArray> result;
  std::unordered_set<const void*> seen;
  for (const nn::NamedArray& entry : module.state())
    if ((has_frozen || !entry.is_frozen) && seen.insert(entry.array.node().get()).second)
      result.push_back({entry.name, entry.array});
  return result;
}

// How arrays lie in memory, where that is not the order of PyTorch's files: {"0.weight": [3, 0], ...}: Layout and
// flattened_channels of its NamedArray. io::convert_file() reads it.
RunJson layouts_of(const nn::Module& module, bool has_frozen) {
  RunJson layouts = RunJson::object();
  for (const nn::NamedArray& entry : module.state())
    if ((has_frozen || !entry.is_frozen) && entry.layout != nn::Layout::plain)
      layouts[entry.name] = {static_cast<int>(entry.layout), entry.flattened_channels};
  return layouts;
}

Part module_part(const std::string& name, nn::Module& module, bool has_frozen) {
  return {name, Part::same,
          [&module, has_frozen] {
            PartState state;
            state.arrays = cells_of(module, has_frozen);
            state.layouts = layouts_of(module, has_frozen);
            return state;
          },
          [&module, has_frozen](const PartReader& reader) {
            for (const optim::StateArray& cell : cells_of(module, has_frozen)) reader.read_into(cell.array, cell.name);
          }};
}

}  // namespace
}  // namespace detail

using detail::Part;
using detail::PartReader;
using detail::PartState;

void RunState::add(const std::string& name, nn::Module& module) { impl_->add(detail::module_part(name, module, true)); }
void RunState::add_trained(const std::string& name, nn::Module& module) {
  impl_->add(detail::module_part(name, module, false));
}

// Its cells by state(), which does not read the number of skipped steps: that may be lost in a failed launch.
void RunState::add(const std::string& name, optim::Optimizer& optimizer) {
  if (optimizer.is_sharded()) return impl_->add(detail::with_shards(name, optimizer));
  impl_->add({name, Part::same, [&optimizer] { return detail::state_of(optimizer.state_dict()); },
              [&optimizer](const PartReader& reader) {
                const std::vector<optim::StateArray> cells = optimizer.state();
                for (const optim::StateArray& cell : cells) reader.read_into(cell.array, cell.name);
                optimizer.load_state_dict({cells, detail::numbers_of(reader)});
              }});
}

void RunState::add(const std::string& name, optim::Ema& ema) {
  Part part = detail::with_own_cells(name, ema);
  part.get = [&ema, name, get = part.get] {
    if (ema.is_swapped()) throw ArgumentError("run state: " + name + ": the averages are swapped in; swap them back");
    return get();
  };
  impl_->add(std::move(part));
}

void RunState::add(const std::string& name, optim::Plateau& plateau) {
  impl_->add(detail::with_own_cells(name, plateau));
}

void RunState::add(const std::string& name, optim::NoiseScaleMeter& meter) {
  impl_->add(detail::with_own_cells(name, meter));
}

void RunState::add(const std::string& name, optim::AdaptiveBatch& batch) {
  impl_->add(detail::with_own_cells(name, batch));
}

void RunState::add(const std::string& name, optim::Accumulator& accumulator) {
  impl_->add({name, Part::varying, [&accumulator] { return detail::state_of(accumulator.state_dict()); },
              [&accumulator](const PartReader& reader) {
                accumulator.load_state_dict({reader.arrays(), detail::numbers_of(reader)});
              }});
}

void RunState::add(const std::string& name, optim::GradScaler& scaler) {
  impl_->add({name, Part::same,
              [&scaler] {
                const optim::GradScalerState scaling = scaler.state();
                PartState state;
                state.numbers = {{"scale", detail::json_of(scaling.scale)},
                                 {"growth_factor", scaling.growth_factor},
                                 {"backoff_factor", scaling.backoff_factor},
                                 {"growth_interval", scaling.growth_interval},
                                 {"growth_tracker", scaling.growth_tracker}};
                return state;
              },
              [&scaler](const PartReader& reader) {
                const detail::RunJson& numbers = reader.numbers();
                scaler.load_state({.scale = detail::number_of(numbers["scale"]),
                                   .growth_factor = detail::number_of(numbers["growth_factor"]),
                                   .backoff_factor = detail::number_of(numbers["backoff_factor"]),
                                   .growth_interval = numbers["growth_interval"].get<std::int64_t>(),
                                   .growth_tracker = numbers["growth_tracker"].get<std::int64_t>()});
              }});
}

void RunState::add(const std::string& name, data::Loader& loader) {
  if (loader.dataset().is_sequential())
    throw ArgumentError("run state: " + name + ": a stream cannot be read from another place, so no run resumes on it");
  impl_->add({name, Part::same,
              [&loader] {
                const data::LoaderPlace place = loader.place();
                PartState state;
                state.numbers = {{"epoch", place.epoch}, {"step", place.step}};
                return state;
              },
              [&loader](const PartReader& reader) {
                loader.seek(reader.numbers()["epoch"].get<std::int64_t>(),
                            reader.numbers()["step"].get<std::int64_t>());
              }});
}

void RunState::add(const std::string& name, data::HardExamples& sampler) {
  impl_->add({name, Part::varying,
              [&sampler] {
                const data::HardExamples::State now = sampler.state();
                PartState state;
                state.numbers["epoch"] = now.epoch;
                state.values.emplace_back("losses", HostArray({std::ssize(now.losses)}, now.losses));
                state.values.emplace_back("weights", HostArray({std::ssize(now.weights)}, now.weights));
                return state;
              },
              [&sampler](const PartReader& reader) {
                const HostArray losses = reader.values("losses"), weights = reader.values("weights");
                const std::span<const float> kept = losses.as<float>();
                const std::span<const double> laid_out = weights.as<double>();
                sampler.restore({{kept.begin(), kept.end()},
                                 reader.numbers()["epoch"].get<std::int64_t>(),
                                 {laid_out.begin(), laid_out.end()}});
              }});
}

void RunState::add(const std::string& name, Mean& mean) { impl_->add(detail::with_mean(name, mean)); }
void RunState::add(const std::string& name, Accuracy& accuracy) { impl_->add(detail::with_mean(name, accuracy)); }

void RunState::add(const std::string& name, std::int64_t& number) {
  impl_->add({name, Part::same,
              [&number] {
                PartState state;
                state.numbers["value"] = number;
                return state;
              },
              [&number](const PartReader& reader) { number = reader.numbers()["value"].get<std::int64_t>(); }});
}

void RunState::add(const std::string& name, double& number) {
  impl_->add({name, Part::same,
              [&number] {
                PartState state;
                state.numbers["value"] = detail::json_of(number);
                return state;
              },
              [&number](const PartReader& reader) { number = detail::number_of(reader.numbers()["value"]); }});
}

void RunState::add(const std::string& name, std::function<std::string()> get,
                   std::function<void(const std::string&)> set) {
  if (!get || !set) throw ArgumentError("run state: " + name + ": needs two functions");
  impl_->add(
      {name, Part::same,
       [get = std::move(get)] {
         PartState state;
         state.numbers[detail::kText] = get();
         return state;
       },
       [set = std::move(set)](const PartReader& reader) { set(reader.numbers()[detail::kText].get<std::string>()); }});
}

}  // namespace samebytes

#include "samebytes/models/weights.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <unordered_map>

#include "core/gguf_blocks.h"
#include "core/io_error.h"
#include "samebytes/autograd.h"
#include "samebytes/engine.h"
#include "samebytes/io/safetensors.h"
#include "samebytes/models/config.h"
#include "samebytes/ops.h"
#include "samebytes/weights.h"

namespace samebytes::models {
namespace {

// A tensor of a file, or an entry.
struct Found {
  std::string path;
  Shape shape;
  Dtype dtype = f32;
  std::size_t bytes = 0;
  bool is_mapped = false;
  std::function<Array()> values;
};

QuantisedType type_for(Quantise quantise, std::int64_t columns) {
  if (quantise == Quantise::q8) return QuantisedType::q8_0;
  if (quantise == Quantise::nf4) return QuantisedType::nf4;
  const bool has_large_blocks = columns % format_of(QuantisedType::q4_k).values == 0;
  return has_large_blocks ? QuantisedType::q4_k : QuantisedType::q4_0;
}

// The values of a few rows of a host array, as floats.
template <class T, class Widen>
void widen_rows(std::span<const T> from, std::vector<float>& to, std::size_t first, const Widen& widen) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] = widen(from[first + i]);
}

// Quantises a matrix, some rows at a time, so that no wide copy of it is made.
Array quantised(const Array& values, QuantisedType type) {
  constexpr std::int64_t kRows = 64;
  const std::int64_t rows = values.shape()[0], columns = values.shape()[1];
  const QuantisedFormat& format = format_of(type);
  const std::int64_t row_bytes = columns / format.values * format.bytes;
  Array blocks = empty({rows, row_bytes}, u8);
  const auto to = blocks.mutable_host<std::uint8_t>();
  if (Engine::current().options().dry_run) return blocks;
  const auto fill = [&](auto from, const auto& widen) {
    std::vector<float> wide;
    for (std::int64_t row = 0; row < rows; row += kRows) {
      wide.resize(static_cast<std::size_t>(std::min(kRows, rows - row) * columns));
      widen_rows(from, wide, static_cast<std::size_t>(row * columns), widen);
      const std::vector<std::byte> bytes = quantise(wide, columns, type);
      std::memcpy(to.span().data() + row * row_bytes, bytes.data(), bytes.size());
    }
  };
  if (values.dtype() == bf16) {
    fill(values.host<bfloat16_bits>().span(),
         [](bfloat16_bits v) { return std::bit_cast<float>(static_cast<std::uint32_t>(v.bits) << 16); });
  } else if (values.dtype() == f16) {
    fill(values.host<half_bits>().span(), [](half_bits v) { return detail::half_value(v.bits); });
  } else {
    fill(values.host<float>().span(), [](float v) { return v; });
  }
  return blocks;
}

}  // namespace

struct Weights::State {
  struct Place {
    std::size_t file, index;
  };
  std::vector<io::TensorFile> files;
  std::unordered_map<std::string, Place> tensors;
  std::map<std::string, WeightEntry> entries;  // instead of files
  std::string origin;                          // of them
  std::set<std::string> taken;
  std::optional<Dtype> dtype;
  double deviation = 0.02;
  bool is_fresh = false;
  Quantise quantise = Quantise::none;
  WeightReport report;

  const io::TensorInfo& info(const Place& at) const { return files[at.file].tensors()[at.index]; }

  Found find(const std::string& name) const {
    const auto found = tensors.find(name);
    if (found != tensors.end()) {
      const io::TensorFile& file = files[found->second.file];
      const io::TensorInfo& tensor = info(found->second);
      return {file.path(),    tensor.shape, tensor.dtype,
              tensor.bytes(), true,         [&file, index = found->second.index] { return file.map(index); }};
    }
    const auto entry = entries.find(name);
    if (entry == entries.end())
      detail::throw_io("weights", files.empty() ? origin : files.front().path(), -1, "a tensor '" + name + "'", "none");
    const WeightEntry& one = entry->second;
    return {origin, one.shape, f32, one.bytes, one.is_mapped, one.values};
  }

  void add(const std::string& path) {
    const std::size_t file = files.size();
    files.emplace_back(path);
    const auto& infos = files.back().tensors();
    for (std::size_t i = 0; i < infos.size(); ++i) {
      const auto [at, is_new] = tensors.emplace(infos[i].name, Place{file, i});
      if (!is_new)
        detail::throw_io("weights", path, -1, "names that no other file has",
                         "'" + infos[i].name + "', which " + files[at->second.file].path() + " has, too");
    }
  }
};

namespace {

constexpr const char* kWeightsReader = "weights";
constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

// Buffers that files of older versions carry and nobody needs.
bool is_known_buffer(const std::string& name) {
  for (const std::string_view end : {"rotary_emb.inv_freq", "position_ids", "num_batches_tracked", ".attn.bias",
                                     ".attn.masked_bias", "token_type_ids"})
    if (name.ends_with(end)) return true;
  return false;
}

// The axes of the file's tensor in the order that they have here, and whether that is another one.
std::vector<int> axes_of(nn::Layout layout, int rank) {
  if (layout == nn::Layout::linear_transposed && rank == 2) return {1, 0};
  if ((layout == nn::Layout::conv || layout == nn::Layout::conv_transpose) && rank > 2) {
    std::vector<int> axes;
    for (int axis = 2; axis < rank; ++axis) axes.push_back(axis);
    axes.insert(axes.end(), {1, 0});
    return axes;
  }
  return {};
}

// What the file has for a parameter of this shape, whose axes are those of the file in this order.
Shape in_file(const Shape& shape, const std::vector<int>& axes) {
  Shape result = shape;
  for (std::size_t i = 0; i < axes.size(); ++i) result[axes[i]] = shape[static_cast<int>(i)];
  return result;
}

}  // namespace

Weights::Weights(std::shared_ptr<State> state, std::string place)
    : state_(std::move(state)), place_(std::move(place)) {}

Weights Weights::open(const std::string& folder, std::optional<Dtype> dtype, Quantise quantise) {
  if (dtype && (!is_floating(*dtype) || *dtype == f64))
    throw ArgumentError("from_pretrained: dtype must be f32, f16 or bf16, got " + std::string(name_of(*dtype)));
  auto state = std::make_shared<State>();
  state->dtype = dtype;
  state->quantise = quantise;
  const std::filesystem::path base(folder);
  const std::string index = (base / kIndex).string();
  std::error_code code;
  if (std::filesystem::exists(base / kSingle, code) || !std::filesystem::exists(index, code)) {
    state->add((base / kSingle).string());
    return Weights(state, "");
  }
  const Config map = Config::read(index).part("weight_map");
  std::map<std::string, std::vector<std::string>> names;  // by file
  for (const std::string& name : map.keys()) names[map.text(name)].push_back(name);
  if (names.empty()) map.fail("weight_map", "names and files", "none");
  for (const auto& [file, those] : names) {
    const std::filesystem::path path(file);
    if (file.empty() || path.filename() != path || file == "." || file == "..")
      map.fail(those.front(), "a file of the folder", "'" + file + "'");
    state->add((base / path).string());
    for (const std::string& name : those)
      if (const auto at = state->tensors.find(name);
          at == state->tensors.end() || at->second.file + 1 != state->files.size())
        map.fail(name, "a file that has it", "'" + file + "'");
  }
  return Weights(state, "");
}

Weights Weights::of(const std::string& path, std::map<std::string, WeightEntry> entries) {
  auto state = std::make_shared<State>();
  state->origin = path;
  state->entries = std::move(entries);
  return Weights(state, "");
}

Weights Weights::fresh(double deviation) {
  auto state = std::make_shared<State>();
  state->is_fresh = true;
  state->deviation = deviation;
  return Weights(state, "");
}

Weights Weights::at(const std::string& name) const {
  return Weights(state_, name.empty() ? place_ : place_.empty() ? name : place_ + "." + name);
}

bool Weights::is_fresh() const { return state_->is_fresh; }

bool Weights::has(const std::string& name, bool otherwise) const {
  if (state_->is_fresh) return otherwise;
  const std::string full = at(name).place_;
  return state_->tensors.contains(full) || state_->entries.contains(full);
}

Shape Weights::shape_of(const std::string& name) const {
  const std::string full = at(name).place_;
  if (const auto entry = state_->entries.find(full); entry != state_->entries.end()) return entry->second.shape;
  const auto found = state_->tensors.find(full);
  return found == state_->tensors.end() ? Shape{} : state_->info(found->second).shape;
}

nn::Parameter Weights::take(const std::string& name, const Shape& shape, nn::Layout layout, Initial initial) const {
  const std::string full = at(name).place_;
  if (state_->is_fresh) {
    const Array value = initial == Initial::zeros ? zeros(shape)
                        : initial == Initial::ones
                            ? ones(shape)
                            : normal(shape, 0.0, state_->deviation, f32, next_random_key(RandomDomain::initialisation));
    return nn::Parameter(cell(value, full));
  }
  const std::vector<int> axes = axes_of(layout, shape.rank());
  const Found found = state_->find(full);
  const Shape wanted = in_file(shape, axes);
  if (found.shape != wanted || !is_floating(found.dtype) || found.shape.size() == 0)
    detail::throw_io(kWeightsReader, found.path, -1, "'" + full + "' as floating " + wanted.to_string(),
                     std::string(name_of(found.dtype)) + " " + found.shape.to_string());
  state_->taken.insert(full);
  Array values = found.values();
  const bool is_matrix = shape.rank() >= 2 && axes.empty();
  const Dtype dtype = !is_matrix || values.dtype() == f64 ? f32 : state_->dtype.value_or(values.dtype());
  const bool is_as_it_is = axes.empty() && dtype == values.dtype();
  (found.is_mapped && is_as_it_is ? state_->report.mapped_bytes : state_->report.converted_bytes) += found.bytes;
  if (is_as_it_is) return nn::Parameter(cell_over(std::move(values), full));
  Array here = axes.empty() ? values : transpose(values, axes);
  if (here.dtype() != dtype) here = astype(here, dtype);
  return nn::Parameter(cell(contiguous(here), full));
}

Matrix Weights::take_matrix(const std::string& name, const Shape& shape, nn::Layout layout) const {
  const std::string full = at(name).place_;
  if (state_->is_fresh || !axes_of(layout, shape.rank()).empty()) return {.weight = take(name, shape, layout)};
  const auto entry = state_->entries.find(full);
  const bool is_file = entry == state_->entries.end();
  const bool has_blocks = !is_file && entry->second.blocks && entry->second.shape == shape;
  const QuantisedType type = has_blocks ? *entry->second.type : type_for(state_->quantise, shape[1]);
  const bool fits = shape[1] % format_of(type).values == 0;
  if (!has_blocks && (!is_file || state_->quantise == Quantise::none || !fits))
    return {.weight = take(name, shape, layout)};
  Matrix matrix{.type = type};
  if (has_blocks) {
    state_->taken.insert(full);
    matrix.blocks = entry->second.blocks();
    state_->report.mapped_bytes += entry->second.bytes;
  } else {
    const NoGrad no_grad;
    const WeightReport before = state_->report;
    const nn::Parameter values = take(name, shape, layout);
    state_->report = before;
    matrix.blocks = quantised(values, type);
    const State::Place& source = state_->tensors.at(full);
    state_->files[source.file].drop_pages(source.index);  // nobody reads them again
  }
  state_->report.quantised_bytes += static_cast<std::size_t>(matrix.blocks.size());
  return matrix;
}

Matrix Weights::take_table(const std::string& name, const Shape& shape) const {
  const auto entry = state_->entries.find(at(name).place_);
  if (entry != state_->entries.end() && entry->second.type) return take_matrix(name, shape, nn::Layout::linear);
  return {.weight = take(name, shape)};
}

void Weights::load(nn::Module& layer) const {
  for (const nn::NamedArray& entry : layer.state()) {
    if (state_->is_fresh) continue;  // it has initial values of its own
    const nn::Parameter value = take(entry.name, entry.array.shape(), entry.layout);
    assign(entry.array, value);
  }
}

WeightReport Weights::report() const {
  WeightReport report = state_->report;
  for (const auto& [name, at] : state_->tensors)
    if (!state_->taken.contains(name) && !is_known_buffer(name)) report.unused.push_back(name);
  for (const auto& [name, entry] : state_->entries)
    if (!state_->taken.contains(name)) report.unused.push_back(name);
  std::sort(report.unused.begin(), report.unused.end());
  return report;
}

}  // namespace samebytes::models

// Cells: arrays that keep their identity and are overwritten in place, one by one or many as parts of a flat one.
#include <algorithm>
#include <unordered_set>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "graph/working_copy.h"
#include "ops/cells.h"
#include "ops/pointwise.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "samebytes/ops/update_parts.h"
#include "samebytes/weights.h"

namespace samebytes {

namespace {

constexpr std::int64_t kAlignmentBytes = 128;  // each part of a flat cell starts at a multiple of it

detail::CellState& state_of(const char* op, const Array& a) {
  if (!is_cell(a)) throw ArgumentError(std::string(op) + ": needs a cell, the array is " + detail::describe(a));
  return *a.node()->cell;
}

}  // namespace

Array cell(const Input& initial, std::string name, MemoryCategory category) {
  const detail::Category kind = category == MemoryCategory::gradients    ? detail::Category::gradient
                                : category == MemoryCategory::optimizer  ? detail::Category::optimizer
                                : category == MemoryCategory::parameters ? detail::Category::parameter
                                                                         : detail::Category::value;
  if (!initial.defined()) throw ArgumentError("cell: " + name + " needs an initial value, got an empty handle");
  const Array value = detail::copy_of(initial);
  Array result = detail::make_leaf(initial.node()->context, Shape{0}, initial.dtype(), kind);
  detail::Node& node = *result.node();
  node.shape = initial.shape();
  node.device = initial.device();
  node.cell = std::make_unique<detail::CellState>();
  node.cell->name = std::move(name);
  node.cell->initial = value.node();
  node.cell->initial->category = kind;
  return result;
}

Array cell_over(Array&& values, std::string name) {
  if (!values.defined()) throw ArgumentError("cell_over: " + name + " needs an array, got an empty handle");
  detail::Node& node = *values.node();
  const bool is_leaf = !node.op && node.has_value && !node.is_view && !node.cell && node.output < 0;
  if (!is_leaf || node.is_read_only || node.handles.load(std::memory_order_relaxed) != 1)
    throw ArgumentError("cell_over: " + name + " needs the only handle on an array with its own bytes, got " +
                        (is_leaf ? "a shared or read-only one, " : "another one, ") + detail::describe(values));
  node.cell = std::make_unique<detail::CellState>();
  node.cell->name = std::move(name);
  node.category = detail::Category::parameter;
  return std::move(values);
}

Array clone_cell(const Input& cell) {
  const auto& state = state_of("clone_cell", cell);
  const NoGrad no_grad;
  Array result = samebytes::cell(cell, state.name);
  result.node()->category = result.node()->cell->initial->category = cell.node()->category;
  result.eval();  // the old value, before anything overwrites it
  return result;
}

bool is_cell(const Array& array) { return array.defined() && array.node()->cell != nullptr; }
const std::string& cell_name(const Array& array) { return state_of("cell_name", array).name; }

Array update(const Input& cell, const Input& value) {
  const auto& state = state_of("update", cell);
  if (!value.defined() || value.shape() != cell.shape() || value.dtype() != cell.dtype())
    throw ArgumentError("update: " + state.name + " is " + detail::describe(cell) + ", the value is " +
                        detail::describe(value));
  static const detail::OpPtr op = detail::make_op<detail::Update>();
  const Array inputs[] = {cell, value};
  return detail::make_array(op, cell.shape(), cell.dtype(), inputs);
}

namespace detail {
Array Update::companion(const Node& node) const {
  const NodePtr& working = node.inputs[0].node->cell->working;
  if (!working) return {};
  const NoCasts plainly;
  return update(Array(working), astype(Array(node.inputs[1].node), working->dtype));
}
}  // namespace detail

void assign(const Input& cell, const Input& value) { update(cell, value).eval(); }

namespace {

// Packs into a flat cell if there is one.
Array packed(const char* name, std::span<const Array> arrays, std::span<const std::int64_t> offsets, std::int64_t n,
             detail::Pack::Into into, const Array& cell = {}) {
  const std::string op_name(name);
  if (arrays.empty() || arrays.size() != offsets.size())
    throw ArgumentError(op_name + ": expected one offset per array, got " + std::to_string(arrays.size()) +
                        " arrays and " + std::to_string(offsets.size()) + " offsets");
  std::int64_t end = 0;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    if (!arrays[i].defined() || arrays[i].dtype() != arrays[0].dtype())
      throw ArgumentError(op_name + ": all arrays must have one dtype, the first is " + detail::describe(arrays[0]) +
                          ", another is " + detail::describe(arrays[i]));
    if (offsets[i] < end || offsets[i] + arrays[i].size() > n)
      throw ArgumentError(op_name + ": offsets must ascend without overlap within " + std::to_string(n) +
                          " elements, got " + std::to_string(offsets[i]));
    end = offsets[i] + arrays[i].size();
  }
  std::vector<std::int64_t> sizes;
  for (const Array& a : arrays) sizes.push_back(a.size());
  std::vector<Array> inputs(arrays.begin(), arrays.end());
  if (cell.defined()) inputs.push_back(cell);
  const auto op =
      detail::make_op<detail::Pack>(std::vector<std::int64_t>(offsets.begin(), offsets.end()), n, sizes, into);
  return detail::make_array(op, Shape{n}, arrays[0].dtype(), inputs);
}

}  // namespace

Array pack(const Inputs& arrays, std::span<const std::int64_t> offsets, std::int64_t n) {
  return packed("pack", arrays, offsets, n, detail::Pack::Into::fresh);
}

Array detail::pack_to_release(std::span<const Array> arrays, std::span<const std::int64_t> offsets, std::int64_t n) {
  return packed("pack", arrays, offsets, n, detail::Pack::Into::released);
}

Array update_parts(const Input& cell, const Inputs& arrays, std::span<const std::int64_t> offsets) {
  const auto& state = state_of("update_parts", cell);
  if (cell.shape().rank() != 1 || arrays.empty() || !arrays[0].defined() || arrays[0].dtype() != cell.dtype())
    throw ArgumentError("update_parts: needs a cell of rank 1 and arrays of its dtype, " + state.name + " is " +
                        detail::describe(cell) + ", the first array is " +
                        (arrays.empty() || !arrays[0].defined() ? "an empty handle" : detail::describe(arrays[0])));
  return packed("update_parts", arrays, offsets, cell.size(), detail::Pack::Into::cell, cell);
}

namespace {

// The flat cell with the values of `cells` at these offsets of its n elements.
Array lay_into_one(std::span<const Array> cells, std::span<const std::int64_t> offsets, std::int64_t n,
                   std::string name) {
  Array values = cell(pack(cells, offsets, n), std::move(name));
  values.eval();
  detail::Node& whole = *values.node();
  const std::lock_guard lock(whole.context->mutex);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    detail::Node& part = *cells[i].node();
    part.cell->whole = values.node();
    part.storage = whole.storage;
    part.offset = offsets[i];
    whole.cell->members.push_back(cells[i].node());
  }
  return values;
}

}  // namespace

FlatCells flatten_cells(std::span<const Array> cells, std::string name) {
  if (cells.empty()) throw ArgumentError("flatten_cells: " + name + " needs at least one cell");
  std::unordered_set<const detail::Node*> seen;
  FlatCells flat;
  std::int64_t n = 0;
  // Working copies lie at the same offsets, which are multiples for their narrower elements then.
  std::vector<Array> copies;
  for (const Array& part : cells)
    if (Array copy = working_copy(part); copy.defined()) copies.push_back(std::move(copy));
  if (!copies.empty() && copies.size() != cells.size())
    throw ArgumentError("flatten_cells: " + name + " has cells with and without working copies");
  const Dtype narrowest = copies.empty() ? cells[0].dtype() : copies[0].dtype();
  const std::int64_t alignment = kAlignmentBytes / static_cast<std::int64_t>(bytes_of(narrowest));
  for (const Array& part : cells) {
    const auto& state = state_of("flatten_cells", part);
    if (!seen.insert(part.node().get()).second)
      throw ArgumentError("flatten_cells: cell " + state.name + " is named twice");
    if (part.dtype() != cells[0].dtype())
      throw ArgumentError("flatten_cells: all cells must have one dtype, " + state.name + " is " +
                          detail::describe(part));
    if (!state.whole.expired())
      throw ArgumentError("flatten_cells: " + state.name +
                          " already belongs to another flat cell (is it in two optimizers?)");
    flat.offsets.push_back(n);
    n += (part.size() + alignment - 1) / alignment * alignment;
  }
  const std::string copy_name = copies.empty() ? "" : name + " in " + std::string(name_of(narrowest));
  flat.values = lay_into_one(cells, flat.offsets, n, std::move(name));
  detail::Node& whole = *flat.values.node();
  if (!copies.empty()) {
    whole.cell->working = lay_into_one(copies, flat.offsets, n, copy_name).node();
    detail::note_agreement(whole);
  }
  // The blocks freed by the values would stay in the cache: a second copy of all parameters.
  whole.context->runtime->clear_cache();
  return flat;
}

}  // namespace samebytes

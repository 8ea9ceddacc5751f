#include "graph/working_copy.h"

#include <string>

#include "graph/autocast.h"
#include "graph/context.h"
#include "graph/op.h"
#include "graph/overwrite.h"
#include "samebytes/autocast.h"
#include "samebytes/ops.h"
#include "samebytes/weights.h"

namespace samebytes {

namespace detail {
namespace {

bool agrees(const Node& cell) { return cell.version - cell.cell->working->version == cell.cell->working_lead; }

}  // namespace

void note_agreement(const Node& cell) {
  CellState& state = *cell.cell;
  state.working_lead = cell.version - state.working->version;
}

void note_all_agree(const Node& cell) {
  note_agreement(cell);
  for (const auto& member : cell.cell->members)
    if (const NodePtr part = member.lock(); part && part->cell->working) note_agreement(*part);
}

void note_overwritten(const Node& update) {
  if (!update.is_view || update.inputs.empty()) return;
  const Node& cell = *update.inputs[0].node;
  if (cell.cell && cell.cell->working) note_all_agree(cell);
}

Array current_working_copy(const Array& cell, Dtype dtype) {
  const Node& node = *cell.node();
  if (!node.cell || !node.cell->working || node.cell->working->dtype != dtype) return {};
  const std::lock_guard lock(node.context->mutex);
  if (!agrees(node)) {
    // All parts of a flat cell are rewritten together: most likely they changed together.
    const NodePtr whole = node.cell->whole.lock();
    const Array changed(whole && whole->cell->working ? whole : cell.node());
    const NoCasts plainly;
    update(Array(changed.node()->cell->working), astype(changed, dtype)).eval();
    note_all_agree(*changed.node());
  }
  return Array(node.cell->working);
}

}  // namespace detail

void keep_working_copies(std::span<const Array> parameters, Dtype dtype) {
  if (dtype != f16 && dtype != bf16)
    throw ArgumentError("keep_working_copies: the copies must be f16 or bf16, got " + std::string(name_of(dtype)));
  for (const Array& parameter : parameters)
    if (!is_cell(parameter))
      throw ArgumentError("keep_working_copies: a parameter must be a cell, one is " + detail::describe(parameter));
  const detail::NoCasts plainly;
  std::vector<Array> copies;
  std::vector<detail::NodePtr> owners;
  for (const Array& parameter : parameters) {
    detail::CellState& state = *parameter.node()->cell;
    if (parameter.dtype() != f32 || parameter.shape().rank() < 2) continue;
    if (state.working && state.working->dtype == dtype) continue;
    if (!state.whole.expired())
      throw ArgumentError("keep_working_copies: " + state.name +
                          " already belongs to an optimizer; make the copies first");
    const Array copy = cell(astype(parameter, dtype), state.name + " in " + std::string(name_of(dtype)));
    state.working = copy.node();
    copies.push_back(copy);
    owners.push_back(parameter.node());
  }
  if (copies.empty()) return;
  eval(copies);
  for (const detail::NodePtr& owner : owners) {
    const std::lock_guard lock(owner->context->mutex);
    detail::note_agreement(*owner);
  }
}

Array working_copy(const Array& parameter) {
  return is_cell(parameter) && parameter.node()->cell->working ? Array(parameter.node()->cell->working) : Array();
}

void store_in_bf16(std::span<const Array> parameters) {
  const detail::NoCasts plainly;
  const auto is_taken = [](const Array& parameter) {
    return parameter.dtype() == f32 && parameter.shape().rank() >= 2;
  };
  for (const Array& parameter : parameters) {
    if (!is_cell(parameter))
      throw ArgumentError("store_in_bf16: a parameter must be a cell, one is " + detail::describe(parameter));
    const detail::CellState& state = *parameter.node()->cell;
    if (is_taken(parameter) && (state.working || !state.whole.expired()))
      throw ArgumentError("store_in_bf16: " + state.name +
                          (state.working ? " has a working copy already" : " already belongs to an optimizer"));
  }
  detail::ContextPtr context;
  for (const Array& parameter : parameters) {
    if (!is_taken(parameter)) continue;  // also skips duplicates
    detail::Node& node = *parameter.node();
    const Array narrow = cell(astype(parameter, bf16), node.cell->name);
    narrow.eval();
    context = node.context;
    const std::lock_guard lock(context->mutex);
    before_foreign_write(parameter.node(), __FILE__, __LINE__);  // nodes built earlier can no longer read it
    node.dtype = bf16;
    node.storage = narrow.node()->storage;
    node.offset = narrow.node()->offset;
  }
  // Blocks freed by the wide values would stay in the cache.
  if (context) context->runtime->clear_cache();
}

}  // namespace samebytes

// What a run of a plan does before and after its launches: it binds every buffer to this run's bytes and, once
// everything is enqueued, gives the nodes their storage.
#include <algorithm>

#include "graph/op.h"
#include "graph/overwrite.h"
#include "plan/launch_info.h"
#include "plan/planner.h"
#include "samebytes/error.h"

namespace samebytes::detail {
namespace {

// The cell that a node of one result overwrote; null if it did not.
NodePtr overwritten_cell(const Node& node) {
  const int input = node.op && node.results.empty() ? node.op->traits().in_place(0) : -1;
  if (input < 0) return nullptr;
  const NodePtr& target = node.inputs[static_cast<std::size_t>(input)].node;
  return target->cell ? target : nullptr;
}

// Gives the overwritten cells a new version.
void count_versions(const Plan& plan, const GraphList& list, std::uint64_t evaluation) {
  for (const int place : plan.late_cells) {
    Node& node = *list.nodes[static_cast<std::size_t>(place)];
    const int results = std::max<int>(1, static_cast<int>(node.results.size()));
    for (int k = 0; k < results; ++k) {
      const int input = node.op->traits().in_place(k);
      if (input < 0) continue;
      const NodePtr base = base_of(node.inputs[static_cast<std::size_t>(input)].node);
      if (!base->cell) continue;
      for (const NodePtr& other : overlapping(base)) {
        ++other->version;
        other->changed_at = evaluation;
      }
    }
    if (!node.results.empty()) node.state_written = true;
  }
}

// Returns what `allocate` returns. If there is no memory, the error names who needed it.
template <class Allocate, class Text>
auto with_source(const Allocate& allocate, const Text& source) {
  try {
    return allocate();
  } catch (const OutOfMemory& error) {
    throw OutOfMemory(error.what() + source(), error.need(), error.budget());
  }
}

// The launch at which most of the temporaries are alive.
std::string source_of_peak(const Plan& plan, const GraphList& list) {
  if (plan.peak_launch < 0) return {};
  const PlanLaunch& launch = plan.launches[static_cast<std::size_t>(plan.peak_launch)];
  return "; most temporaries live at " + launch.what + source_of(launch, list).text();
}

}  // namespace

RunBuffers Planner::bind_buffers(Plan& plan, const GraphList& list) {
  Runtime& runtime = *context_.runtime;
  RunBuffers at;
  at.bound.resize(plan.buffers.size());
  at.fresh.resize(plan.buffers.size());
  const bool is_exact = runtime.is_exact();
  if (is_exact) at.apart.resize(plan.buffers.size());
  const std::uint64_t peaks = runtime.memory_peaks();
  for (std::size_t s = 0; s < plan.arena_segments.size() && !is_exact; ++s)
    at.arena.push_back(with_source([&] { return &arena_segment(plan.arena_segments[s]); },
                                   [&] { return source_of_peak(plan, list); }));
  for (std::size_t b = 0; b < plan.buffers.size(); ++b) {
    PlanBuffer& buffer = plan.buffers[b];
    switch (buffer.kind) {
      case PlanBuffer::Kind::leaf: {
        const Node& leaf = *list.nodes[static_cast<std::size_t>(buffer.node)];
        at.bound[b] = {leaf.storage.get(), leaf.offset};
        break;
      }
      case PlanBuffer::Kind::own: {
        const Node& node = *list.nodes[static_cast<std::size_t>(buffer.node)];
        const Node& maker = node.output >= 0 ? *node.inputs[0].node : node;  // of several results
        const auto allocated = [&] {
          return runtime.allocate(buffer.bytes, node.category,
                                  maker.op ? std::string(maker.op->name()) : std::string("result"), node.layer.text(),
                                  buffer.device, FirstUse::device);
        };
        at.fresh[b] =
            with_source(allocated, [&] { return "; for the result " + node.shape.to_string() + source_text(node); });
        at.bound[b] = {at.fresh[b].get(), 0};
        break;
      }
      case PlanBuffer::Kind::arena:
        if (buffer.first >= 0 && is_exact) {
          at.apart[b] = runtime.allocate(buffer.bytes, Category::arena, "arena", "", buffer.device);
          at.bound[b] = {at.apart[b].get(), 0};
        } else if (buffer.first >= 0)
          at.bound[b] = {at.arena[static_cast<std::size_t>(buffer.place.segment)],
                         static_cast<std::int64_t>(buffer.place.offset / bytes_of(buffer.dtype))};
        break;
      case PlanBuffer::Kind::persistent: at.bound[b] = {buffer.storage.get(), 0}; break;
      case PlanBuffer::Kind::part:
      case PlanBuffer::Kind::empty: break;
    }
  }
  if (runtime.memory_peaks() != peaks) name_peak(plan);
  for (std::size_t b = 0; b < plan.buffers.size(); ++b)
    if (const PlanBuffer& buffer = plan.buffers[b]; buffer.kind == PlanBuffer::Kind::part) {
      const Bound& whole = at.bound[static_cast<std::size_t>(buffer.parent)];
      at.bound[b] = {whole.storage, whole.offset + buffer.offset};
    }
  return at;
}

void Planner::acquire(const Plan& plan, const RunBuffers& buffers, Submission& submission) {
  for (Storage* segment : buffers.arena) submission.acquire(*segment, true, "arena", 0, segment->bytes(), true);
  for (const StoragePtr& storage : buffers.apart)
    if (storage) submission.acquire(*storage, true, "arena", 0, storage->bytes(), true);
  for (const PlanUse& use : plan.uses) {
    const PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(use.buffer)];
    const Bound& at = buffers.bound[static_cast<std::size_t>(use.buffer)];
    const bool whole = buffer.kind == PlanBuffer::Kind::own;
    submission.acquire(*at.storage, use.writes, use.what, static_cast<std::size_t>(at.offset) * bytes_of(buffer.dtype),
                       buffer.bytes, whole);
  }
}

// Gives wanted values their storage and drops their inputs; gives cells a new version.
void Planner::commit(const Plan& plan, const GraphList& list, std::vector<StoragePtr>& fresh) {
  const Runtime& runtime = *context_.runtime;
  for (std::size_t b = 0; b < plan.buffers.size(); ++b)
    if (fresh[b]) {
      Node& node = *list.nodes[static_cast<std::size_t>(plan.buffers[b].node)];
      node.storage = std::move(fresh[b]);
      // The work may have run elsewhere; nodes built on this value do not use the spare device.
      if (runtime.space_count() > 1 && plan.buffers[b].device != runtime.spare()) node.device = plan.buffers[b].device;
    }
  count_versions(plan, list, context_.evaluations);
  for (const NodePtr& node : list.nodes) {
    if (node->has_value || node->is_view) continue;
    const std::size_t place = static_cast<std::size_t>(node->place);
    if (const NodePtr cell = overwritten_cell(*node)) {  // from now on a view of the cell's new value
      keep_origin(node);
      node->is_view = true;
      node->strides = dense_strides(node->shape);
      node->offset = 0;
      node->inputs.assign(1, Edge{cell, cell->version.load()});
      continue;
    }
    if (!list.wanted[place]) continue;
    node->has_value = node->was_made = true;
    keep_origin(node);
  }
  const bool is_due = !plan.late_cells.empty() || context_.taped.size() >= context_.next_sweep;
  if (is_due && !context_.taped.empty()) sweep_origins(context_);
}

}  // namespace samebytes::detail

#include "plan/collect.h"

#include <algorithm>
#include <unordered_set>

#include "graph/op.h"
#include "graph/overwrite.h"
#include "plan/overwrites.h"
#include "plan/readers.h"

namespace samebytes::detail {
namespace {

// A view's own edge is checked when the view is visited; an update that ran became a view of its cell at that version.
void check_version(const Node& node, const Edge& edge, int input) {
  const Node& base = *edge.node;
  if (base.is_view || base.version == edge.version) return;
  if (node.op && node.op->traits().is_state(input)) return;
  throw ArgumentError("eval: " + (node.op ? std::string(node.op->name()) : std::string("an array")) + " reads " +
                      base.name() + " as it was when the graph was built, but " + base.overwritten_by() +
                      " has overwritten it; build the graph again");
}

bool overwrites_cells(const Node& node) {
  if (!node.op) return false;
  const int results = node.results.empty() ? 1 : static_cast<int>(node.results.size());
  for (int k = 0; k < results; ++k) {
    const int input = node.op->traits().in_place(k);
    if (input >= 0 && node.inputs[static_cast<std::size_t>(input)].node->base().cell) return true;
  }
  return false;
}

class Collector {
 public:
  Collector(std::uint64_t stamp, std::vector<NodePtr>& fresh) : stamp_(stamp), fresh_(fresh) {}

  void add(const NodePtr& root) {
    stack_.push_back(root);
    while (!stack_.empty()) {
      const NodePtr node = std::move(stack_.back());
      stack_.pop_back();
      if (node->mark == stamp_) continue;
      node->mark = stamp_;
      list_.nodes.push_back(node);
      if (node->cell && !node->storage && node->shape.size() > 0) fresh_.push_back(node);
      if (node->has_value) continue;
      writes_cells_ = writes_cells_ || overwrites_cells(*node);
      int input = 0;
      for (const Edge& edge : node->inputs) {
        check_version(*node, edge, input++);
        stack_.push_back(edge.node);
      }
    }
  }
  bool writes_cells() const { return writes_cells_; }
  GraphList& list() { return list_; }

 private:
  std::uint64_t stamp_;
  std::vector<NodePtr>& fresh_;
  std::vector<NodePtr> stack_;
  GraphList list_;
  bool writes_cells_ = false;
};

// Moves the nodes that run best late, and their results, to just before the first reader.
void delay(std::vector<NodePtr>& nodes) {
  const auto is_delayed = [](const NodePtr& node) {
    return !node->has_value && node->op && node->op->traits().runs_late;
  };
  if (std::none_of(nodes.begin(), nodes.end(), is_delayed)) return;
  for (std::size_t i = nodes.size(); i-- > 0;) {
    if (!is_delayed(nodes[i])) continue;
    const Node* const late = nodes[i].get();
    const auto is_of_it = [late](const NodePtr& node) {
      return node.get() == late || (node->output >= 0 && !node->has_value && node->inputs[0].node.get() == late);
    };
    const auto first = nodes.begin() + static_cast<std::ptrdiff_t>(i);
    const auto reader = std::find_if(first, nodes.end(), [&](const NodePtr& node) {
      return !is_of_it(node) && !node->has_value &&
             std::any_of(node->inputs.begin(), node->inputs.end(), [&](const Edge& e) { return is_of_it(e.node); });
    });
    std::stable_partition(first, reader, [&](const NodePtr& node) { return !is_of_it(node); });
  }
}

// Updates, and what reads their new values, run after everything else.
void order(GraphList& list) {
  std::sort(list.nodes.begin(), list.nodes.end(), comes_before);
  delay(list.nodes);
  for (std::size_t i = 0; i < list.nodes.size(); ++i) list.nodes[i]->place = static_cast<int>(i);
  std::vector<char> late(list.nodes.size());
  bool any = false;
  for (std::size_t i = 0; i < list.nodes.size(); ++i) {
    const Node& node = *list.nodes[i];
    if (node.has_value) continue;
    late[i] = node.op && node.op->traits().updates_cell;
    for (const Edge& edge : node.inputs) late[i] = late[i] || late[static_cast<std::size_t>(edge.node->place)];
    any = any || late[i];
  }
  if (!any) return;
  std::stable_partition(list.nodes.begin(), list.nodes.end(),
                        [&](const NodePtr& n) { return !late[static_cast<std::size_t>(n->place)]; });
  for (std::size_t i = 0; i < list.nodes.size(); ++i) list.nodes[i]->place = static_cast<int>(i);
}

void hash(GraphList& list) {
  Hasher hasher;
  for (std::size_t i = 0; i < list.nodes.size(); ++i) {
    const Node& node = *list.nodes[i];
    const bool leaf = node.has_value;
    hasher.add(static_cast<std::uint64_t>(node.dtype) | static_cast<std::uint64_t>(node.shape.rank()) << 8 |
               static_cast<std::uint64_t>(node.device) << 16 | static_cast<std::uint64_t>(leaf) << 32 |
               static_cast<std::uint64_t>(node.is_view) << 33 | static_cast<std::uint64_t>(list.wanted[i] != 0) << 34 |
               static_cast<std::uint64_t>(node.cell != nullptr) << 35 |
               static_cast<std::uint64_t>(node.state_written) << 36 |
               static_cast<std::uint64_t>(node.output + 1) << 40);
    for (const std::int64_t size : node.shape) hasher.add(static_cast<std::uint64_t>(size));
    if (node.cell) {  // a flat cell may be overwritten depending on which part this one is
      const NodePtr whole = node.cell->whole.lock();
      if (whole && static_cast<std::size_t>(whole->place) < list.nodes.size() &&
          list.nodes[static_cast<std::size_t>(whole->place)] == whole) {
        hasher.add(static_cast<std::uint64_t>(whole->place));
        hasher.add(static_cast<std::uint64_t>(node.offset));
      }
    }
    if (leaf && node.storage && node.storage->space().index() > 0)  // plans assume the first context
      hasher.add(static_cast<std::uint64_t>(node.storage->space().index()));
    if (leaf) continue;
    if (node.op) hasher.add(node.op->fingerprint());
    hasher.add(static_cast<std::uint64_t>(node.inputs.size()) | static_cast<std::uint64_t>(node.scalars.size()) << 32);
    hasher.add(static_cast<std::uint64_t>(node.results.size()));
    for (const auto& [shape, dtype] : node.results) {
      hasher.add(static_cast<std::uint64_t>(dtype) | static_cast<std::uint64_t>(shape.rank()) << 8);
      for (const std::int64_t size : shape) hasher.add(static_cast<std::uint64_t>(size));
    }
    for (const Edge& edge : node.inputs) hasher.add(static_cast<std::uint64_t>(edge.node->place));
    if (node.is_view) {
      hasher.add(static_cast<std::uint64_t>(node.offset));
      for (int axis = 0; axis < node.shape.rank(); ++axis) hasher.add(static_cast<std::uint64_t>(node.strides[axis]));
    }
  }
  list.key = hasher.key();
}

}  // namespace

GraphList collect(std::span<const NodePtr> roots, std::uint64_t stamp, std::vector<NodePtr>& fresh_cells) {
  Collector collector(stamp, fresh_cells);
  for (const NodePtr& root : roots) collector.add(root);
  GraphList& list = collector.list();

  Context& context = *roots[0]->context;
  std::vector<NodePtr> kept;  // copies of cells, for views that users still hold
  if (collector.writes_cells()) {
    std::unordered_set<const Node*> targets;
    for (const NodePtr& node : list.nodes) {
      if (node->has_value || !overwrites_cells(*node)) continue;
      for (int k = 0; k < std::max<int>(1, static_cast<int>(node->results.size())); ++k) {
        const int input = node->op->traits().in_place(k);
        if (input < 0) continue;
        const NodePtr base = base_of(node->inputs[static_cast<std::size_t>(input)].node);
        if (!base->cell) continue;
        for (const NodePtr& cell : overlapping(base)) targets.insert(cell.get());
      }
    }
    const Readers readers = readers_of(context, targets);
    kept = detach_views(readers.views);
    for (const NodePtr& copy : kept) collector.add(copy);
    for (const NodePtr& reader : readers.waiting) collector.add(reader);
  }
  if (!fresh_cells.empty()) return std::move(list);

  order(list);
  check_single_updates(list.nodes);
  take_snapshots(list.nodes);
  list.wanted.assign(list.nodes.size(), 0);
  list.is_root.assign(list.nodes.size(), 0);
  for (const NodePtr& root : roots) list.is_root[static_cast<std::size_t>(root->place)] = 1;
  for (const NodePtr& copy : kept) list.is_root[static_cast<std::size_t>(copy->place)] = 1;
  for (const NodePtr& node : list.nodes) {
    const std::size_t place = static_cast<std::size_t>(node->place);
    if (node->has_value || (node->handles.load(std::memory_order_relaxed) == 0 && !list.is_root[place])) continue;
    list.wanted[static_cast<std::size_t>(node->base().place)] = 1;
  }
  for (const NodePtr& node : list.nodes)
    if (node->has_value) list.wanted[static_cast<std::size_t>(node->place)] = 0;
  hash(list);
  return std::move(list);
}

}  // namespace samebytes::detail

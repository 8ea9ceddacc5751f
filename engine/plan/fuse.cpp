#include "plan/fuse.h"

#include "graph/op.h"
#include "plan/overwrites.h"

namespace samebytes::detail {
namespace {

bool is_pointwise(const Node& node) {
  return !node.has_value && node.op && !node.is_view && node.shape.size() > 0 && node.op->traits().is_pointwise();
}

bool computes_in_f64(const Node& node) {
  if (node.dtype == Dtype::f64) return true;
  for (const Edge& edge : node.inputs)
    if (edge.node->dtype == Dtype::f64) return true;
  return false;
}

}  // namespace

int FuseResult::runs_at(const GraphList& list, int place) const {
  if (moved_to[place] >= 0) return moved_to[place];
  if (const int g = group[place]; g >= 0) return members[g].back();
  const Node& node = *list.nodes[place];
  return node.output >= 0 ? runs_at(list, node.inputs[0].node->place) : place;
}

FuseResult fuse(const GraphList& list, const EpilogueResult& epilogues, bool enabled) {
  const int n = static_cast<int>(list.nodes.size());
  FuseResult result;
  result.moved_to = epilogues.moved_to;
  result.group.assign(static_cast<std::size_t>(n), -1);
  result.is_output.assign(static_cast<std::size_t>(n), 0);
  std::vector<std::vector<int>> consumers(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i)
    if (!list.nodes[i]->has_value)
      for (const Edge& edge : list.nodes[i]->inputs) consumers[edge.node->place].push_back(i);

  struct Group {
    const Node* first;  // shape, device and compute type of all members
    bool f64;
    bool updates;
    std::vector<int> members;
  };
  std::vector<Group> groups;
  const Overwrites overwrites(list.nodes);
  // The place where a node that overwrites is launched; the groups of all later nodes are known.
  const auto overwrites_at = [&](int place) {
    const int group = result.group[static_cast<std::size_t>(place)];
    return group < 0 ? place : groups[static_cast<std::size_t>(group)].members.front();
  };
  // Whether a node's inputs are still valid where a group runs: the group runs before they are overwritten, or reads
  // and overwrites them in one kernel, element by element.
  const auto reads_in_time = [&](const Node& node, int home) {
    bool in_time = true;
    overwrites.each(node, [&](std::size_t input, int place) {
      if (place == node.place) return;  // its own overwrite: take_snapshots has handled it
      const bool is_before = groups[static_cast<std::size_t>(home)].members.front() < overwrites_at(place);
      const bool is_within =
          result.group[static_cast<std::size_t>(place)] == home &&
          list.nodes[static_cast<std::size_t>(place)]->op->traits().is_pointwise_update() &&
          Overwrites::is_same_element(*list.nodes[static_cast<std::size_t>(place)], *node.inputs[input].node);
      in_time = in_time && (is_before || is_within);
    });
    return in_time;
  };
  for (int i = n - 1; i >= 0; --i) {
    const Node& node = *list.nodes[i];
    if (!is_pointwise(node) || epilogues.absorbed[static_cast<std::size_t>(i)]) continue;
    const bool f64 = computes_in_f64(node);
    const bool is_update = node.op->traits().updates_cell;
    const auto fits = [&](const Group& group) {
      return group.first->shape == node.shape && group.first->device == node.device && group.f64 == f64 &&
             group.members.size() < kMostMembers;
    };
    int home = -1;
    if (enabled && !consumers[i].empty() && !is_update) {  // all consumers are in one group
      home = result.group[consumers[i][0]];
      for (const int consumer : consumers[i])
        if (result.group[consumer] != home || home < 0) home = -1;
      if (home >= 0 && !(fits(groups[home]) && reads_in_time(node, home))) home = -1;
    } else if (enabled && is_update && consumers[i].empty()) {  // updates that are evaluated together
      for (std::size_t g = 0; g < groups.size() && home < 0; ++g)
        if (groups[g].updates && fits(groups[g]) && reads_in_time(node, static_cast<int>(g)))
          home = static_cast<int>(g);
    }
    if (home < 0) {
      home = static_cast<int>(groups.size());
      groups.push_back({&node, f64, is_update, {}});
    }
    groups[home].members.push_back(i);
    result.group[i] = home;
    bool leaves = list.wanted[i] || consumers[i].empty();
    for (const int consumer : consumers[i]) leaves = leaves || result.group[consumer] != home;
    result.is_output[i] = leaves;
  }
  for (Group& group : groups) {
    result.members.emplace_back(group.members.rbegin(), group.members.rend());
    result.nodes_fused += group.members.size() - 1;
  }
  return result;
}

}  // namespace samebytes::detail

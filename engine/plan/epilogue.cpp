#include "plan/epilogue.h"

#include "graph/op.h"

namespace samebytes::detail {
namespace {

class Appender {
 public:
  explicit Appender(const GraphList& list) : list_(list), readers_(list.nodes.size()), overwrites_(list.nodes.size()) {
    for (std::size_t i = 0; i < list.nodes.size(); ++i) {
      const Node& node = *list.nodes[i];
      overwrites_[i] = i == 0 ? 0 : overwrites_[i - 1];
      if (node.has_value) continue;
      for (const Edge& edge : node.inputs) readers_[static_cast<std::size_t>(edge.node->place)].push_back(node.place);
      if (!node.is_view && node.output < 0 && node.op) overwrites_[i] += writes_in_place(node);
    }
    result_.of.resize(list.nodes.size());
    result_.producer.assign(list.nodes.size(), -1);
    result_.absorbed.assign(list.nodes.size(), 0);
    result_.moved_to.assign(list.nodes.size(), -1);
  }

  // The last producer of a sum appends it, so the loop runs backwards.
  EpilogueResult run() {
    for (int place = static_cast<int>(list_.nodes.size()) - 1; place >= 0; --place) append_to(place);
    return std::move(result_);
  }

 private:
  const Node& node(int place) const { return *list_.nodes[static_cast<std::size_t>(place)]; }
  const std::vector<int>& readers(int place) const { return readers_[static_cast<std::size_t>(place)]; }

  static bool writes_in_place(const Node& n) {
    const int results = n.results.empty() ? 1 : static_cast<int>(n.results.size());
    for (int k = 0; k < results; ++k)
      if (n.op->traits().in_place(k) >= 0) return true;
    return false;
  }

  // The one node that reads all of this value, perhaps reshaped; -1 if there are several, or the user wants the value.
  int sole_reader(int place) const {
    if (list_.wanted[static_cast<std::size_t>(place)]) return -1;
    const std::int64_t size = node(place).shape.size();
    for (int at = place;;) {
      if (readers(at).size() != 1) return -1;
      at = readers(at)[0];
      const Node& reader = node(at);
      if (!reader.is_view) return at;
      if (reader.offset != 0 || reader.shape.size() != size || !reader.is_dense()) return -1;
    }
  }

  // A launch that runs later must find its inputs unchanged.
  bool may_move(int from, int to) const {
    return overwrites_[static_cast<std::size_t>(to)] == overwrites_[static_cast<std::size_t>(from)];
  }

  // The other operand that `reader` needs beside the value at `place`; -1 if a kernel cannot read it as dense rows. A
  // pointwise array that only this node reads costs less inside the node's own chain.
  int other_of(const Node& reader, int other) const {
    const Node& residual = *reader.inputs[static_cast<std::size_t>(other)].node;
    if (residual.shape != reader.shape || residual.dtype != reader.dtype || !residual.is_dense()) return -1;
    const Node& base = residual.base();
    const bool is_leaf = base.has_value || !base.op || list_.wanted[static_cast<std::size_t>(base.place)];
    const bool is_chain = !is_leaf && base.op->traits().is_pointwise_value() &&
                          result_.producer[static_cast<std::size_t>(base.place)] < 0;
    return is_chain && sole_reader(base.place) == reader.place ? -1 : residual.place;
  }

  // The input of `reader` that is not the value at `place`; requires that only one input reads this value.
  int other_input(const Node& reader, int place) const {
    return node(reader.inputs[0].node->place).base().place == place ? 1 : 0;
  }

  void append_to(int place) {
    const Node& n = node(place);
    if (n.has_value || n.is_view || n.output >= 0 || !n.results.empty() || n.shape.size() == 0 ||
        !n.op->traits().takes_epilogue)
      return;
    AppendedEpilogue appended;
    std::vector<int> taken;
    for (int at = place; !appended.is_closed();) {
      const int next = sole_reader(at);
      if (next < 0 || result_.absorbed[static_cast<std::size_t>(next)] || !may_move(place, next)) break;
      const Node& reader = node(next);
      if (!reader.op || reader.dtype != n.dtype || reader.device != n.device) break;
      const EpilogueStep step = reader.op->traits().epilogue_step;
      if (step == EpilogueStep::relu) {
        appended.relu = true;
      } else if (step == EpilogueStep::hard_swish && n.op->traits().takes_activation) {
        appended.hard_swish = true;
      } else if (step == EpilogueStep::relu6 && n.op->traits().takes_activation) {
        appended.relu6 = true;
      } else if (step == EpilogueStep::sum && appended.residual < 0 && reader.shape.size() == n.shape.size()) {
        appended.residual = other_of(reader, other_input(reader, at));
        if (appended.residual < 0) break;
      } else if (step == EpilogueStep::gate && n.op->traits().takes_gate && other_input(reader, at) == 1 &&
                 reader.shape.size() == n.shape.size()) {
        appended.gate = other_of(reader, 1);
        if (appended.gate < 0) break;
      } else {
        break;
      }
      taken.push_back(next);
      at = next;
    }
    if (taken.empty()) return;
    appended.result = taken.back();
    result_.moved_to[static_cast<std::size_t>(place)] = appended.result;
    for (const int absorbed : taken) {
      result_.absorbed[static_cast<std::size_t>(absorbed)] = 1;
      result_.moved_to[static_cast<std::size_t>(absorbed)] = appended.result;
    }
    result_.nodes_fused += taken.size();
    result_.producer[static_cast<std::size_t>(appended.result)] = place;
    result_.of[static_cast<std::size_t>(place)] = appended;
  }

  const GraphList& list_;
  std::vector<std::vector<int>> readers_;  // by place
  std::vector<int> overwrites_;            // by place: how many nodes up to here overwrite what others read
  EpilogueResult result_;
};

}  // namespace

EpilogueResult append_epilogues(const GraphList& list, bool enabled) {
  if (enabled) return Appender(list).run();
  EpilogueResult none;
  none.of.resize(list.nodes.size());
  none.producer.assign(list.nodes.size(), -1);
  none.absorbed.assign(list.nodes.size(), 0);
  none.moved_to.assign(list.nodes.size(), -1);
  return none;
}

}  // namespace samebytes::detail

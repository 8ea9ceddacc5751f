#include "plan/rematerialise.h"

#include <algorithm>
#include <array>

#include "graph/op.h"
#include "plan/expression.h"
#include "plan/fuse.h"
#include "plan/pack_parts.h"

namespace samebytes::detail {
namespace {

constexpr std::size_t kMostRecomputed = 16;  // nodes of one recomputation
constexpr std::size_t kSmallShare = 16;      // a value this many times larger may extend the life of an operand
constexpr int kForever = std::numeric_limits<int>::max();

// Costs are in bytes of memory traffic. Other costs of a launch are converted to the bytes that memory moves in the
// same time: 231 GFLOP/s, 37 GB/s and 4 us per launch on two cores of a Zen 4 (samebytes bench, November 2026).
constexpr double kFlopsPerByte = 6;
constexpr double kLaunchBytes = 150e3;
constexpr double kFunctionFlops = 64;  // exp, tanh and the like

class Rematerialiser {
 public:
  Rematerialiser(const GraphList& list, FuseResult& fusion, const RematerialiseLimits& limits)
      : list_(list), fusion_(fusion), limits_(limits), values_(list.nodes.size()) {}

  RematerialiseReport run() {
    for (const NodePtr& n : list_.nodes)
      if (n->device != list_.nodes[0]->device) return {};  // with several devices, places are no order in time
    collect();
    in_registers();
    RematerialiseReport report;
    profile();
    report.peak_before = *std::max_element(living_.begin(), living_.end());
    report.cost = by_launches();
    report.peak_after = *std::max_element(living_.begin(), living_.end());
    std::sort(fusion_.again.begin(), fusion_.again.end(), [](const auto& a, const auto& b) {
      return a.before != b.before ? a.before < b.before : a.value < b.value;
    });
    return report;
  }

  std::vector<StoredValue> stored() const {
    std::vector<StoredValue> result;
    for (int i = 0; i < count(); ++i) {
      const Value& v = values_[i];
      if (v.packed_until >= 0) result.push_back({i, v.bytes, v.made, std::max(v.made, v.packed_until), true});
      if (!v.is_temporary || (node(i).op && node(i).op->traits().pack)) continue;  // a pack has its parts
      if (v.dropped_after >= 0) result.push_back({i, v.bytes, v.made, v.dropped_after});
      result.push_back({i, v.bytes, v.dropped_after >= 0 ? v.again_at : v.made, v.last()});
    }
    return result;
  }

 private:
  struct Reader {
    int when;     // the place at which it runs
    int group;    // -1: an op with launches of its own
    bool direct;  // not through a view
  };
  // What a place's buffer holds and for how long.
  struct Value {
    std::size_t bytes = 0;
    int made = 0;
    int overwritten = kForever;  // its bytes hold something else from here on
    bool is_temporary = false;   // lies in the arena
    bool is_candidate = false;
    int packed_until = -1;                  // of a part of a flat gradient in the arena: its last place there
    int dropped_after = -1, again_at = -1;  // absent between these places
    std::vector<Reader> readers;
    int last() const {
      int last = made;
      for (const Reader& r : readers) last = std::max(last, r.when);
      return last;
    }
  };
  struct Recipe {
    std::vector<int> members;           // ascending places, the value last
    std::vector<const Node*> operands;  // from outside
    double flops = 0;                   // per element
    bool is_cheap = true;
  };

  const Node& node(int place) const { return *list_.nodes[place]; }
  int count() const { return static_cast<int>(list_.nodes.size()); }
  static int base(const Node& n) { return n.base().place; }

  void collect() {
    int first_update = kForever;
    for (int i = 0; i < count(); ++i) {
      const Node& n = node(i);
      if (n.is_view) continue;
      Value& v = values_[i];
      v.bytes = static_cast<std::size_t>(n.shape.size()) * bytes_of(n.dtype);
      if (n.has_value) {
        v.made = -1;
        continue;
      }
      v.made = fusion_.runs_at(list_, i);
      const bool in_place = n.output < 0 && n.results.empty() && n.op->traits().in_place(0) >= 0;
      const bool is_pointwise = fusion_.group[i] >= 0;
      const bool is_stored = fusion_.moved_to[i] <= i;  // at a later place only a launch that appends it knows it
      v.is_temporary =
          n.results.empty() && !list_.wanted[i] && !in_place && is_stored && (!is_pointwise || fusion_.is_output[i]);
      v.is_candidate = v.is_temporary && is_pointwise && (!limits_.may_be || limits_.may_be(n));
      if (n.output >= 0) {
        const Node& producer = *n.inputs[0].node;
        v.is_temporary = v.is_temporary && producer.op->traits().in_place(n.output) < 0;
        continue;
      }
      if (n.op->traits().is_pointwise_update()) first_update = std::min(first_update, v.made);
      const int group = fusion_.group[i];
      const bool packs_in_arena = n.op->traits().pack && !list_.wanted[i] && lies_in_arena(n);
      for (std::size_t k = 0; k < n.inputs.size(); ++k) {
        const Edge& edge = n.inputs[k];
        Value& source = values_[base(*edge.node)];
        if (packs_in_arena && source.is_temporary) source.packed_until = packed_until(i, k);
        if (n.op->traits().pack) source.is_temporary = source.is_candidate = false;  // lies in the pack
        const bool inside = group >= 0 && !edge.node->is_view && fusion_.group[edge.node->place] == group;
        if (!inside) source.readers.push_back({v.made, group, !edge.node->is_view});
      }
      for (int k = 0; k < std::max<int>(1, static_cast<int>(n.results.size())); ++k)
        if (const int input = n.op->traits().in_place(k); input >= 0) {
          Value& target = values_[base(*n.inputs[static_cast<std::size_t>(input)].node)];
          target.overwritten = std::min(target.overwritten, v.made);
          target.is_candidate = false;
        }
    }
    for (int i = 0; i < count(); ++i)  // an update of a flat cell overwrites its parts
      if (node(i).cell) values_[i].overwritten = std::min(values_[i].overwritten, first_update);
  }

  int packed_until(int pack, std::size_t part) const {
    for (const GradientRelease& release : limits_.releases)
      if (release.pack == pack)
        for (const GradientSegment& segment : release.segments)
          if (part >= segment.first_part && part < segment.end_part) return segment.after;
    return count() - 1;
  }

  Recipe recipe_of(int value) const {
    Recipe recipe;
    const std::vector<int>& home = fusion_.members[fusion_.group[value]];
    std::vector<int> open{value};
    while (!open.empty()) {
      const int place = open.back();
      open.pop_back();
      if (std::find(recipe.members.begin(), recipe.members.end(), place) != recipe.members.end()) continue;
      recipe.members.push_back(place);
      const OpTraits& traits = node(place).op->traits();
      if (!traits.is_pointwise_value() || recipe.members.size() > kMostRecomputed) return {};
      const bool costs_much = !traits.expression.empty() && is_costly(expression_of(*node(place).op));
      recipe.is_cheap = recipe.is_cheap && !costs_much;
      recipe.flops += costs_much ? kFunctionFlops : 2;
      for (const Edge& edge : node(place).inputs) {
        const Node* input = edge.node.get();
        if (!input->is_view && std::binary_search(home.begin(), home.end(), input->place))
          open.push_back(input->place);
        else if (std::find(recipe.operands.begin(), recipe.operands.end(), input) == recipe.operands.end())
          recipe.operands.push_back(input);
      }
    }
    std::sort(recipe.members.begin(), recipe.members.end());
    return recipe;
  }

  bool is_small(int operand, int value) const { return values_[operand].bytes * kSmallShare <= values_[value].bytes; }

  // Whether a launch at `when` still finds the operand's bytes unchanged, or they can be kept at little cost.
  bool can_be_read(const Node& operand, int value, int when) const {
    const Value& v = values_[base(operand)];
    if (v.overwritten <= when) return false;
    return !v.is_temporary || v.last() >= when || is_small(base(operand), value);
  }

  bool reads(int group, const Node& operand) const {
    const std::vector<int>& members = fusion_.members[group];
    return std::any_of(members.begin(), members.end(), [&](int m) {
      const auto& inputs = node(m).inputs;
      return std::any_of(inputs.begin(), inputs.end(), [&](const Edge& e) { return e.node.get() == &operand; });
    });
  }

  // ---- in the registers of a group that reads the operands anyway

  void in_registers() {
    for (int i = 0; i < count(); ++i) {
      if (!values_[i].is_candidate || values_[i].readers.empty()) continue;
      const Recipe recipe = recipe_of(i);
      if (recipe.members.empty() || !recipe.is_cheap) continue;
      std::vector<int> groups;
      for (const Reader& r : values_[i].readers)
        if (r.group >= 0 && std::find(groups.begin(), groups.end(), r.group) == groups.end()) groups.push_back(r.group);
      for (const int group : groups)
        if (can_join(i, recipe, group)) join(i, recipe, group);
    }
  }

  bool can_join(int value, const Recipe& recipe, int group) const {
    const std::vector<int>& members = fusion_.members[group];
    const Node& other = node(members.back());
    const int when = members.back();
    if (other.shape != node(value).shape || members.size() + recipe.members.size() > kMostMembers) return false;
    if (in_f64(group) != in_f64(fusion_.group[value])) return false;
    for (const Reader& r : values_[value].readers)
      if (r.group == group && !r.direct) return false;
    return std::all_of(recipe.operands.begin(), recipe.operands.end(), [&](const Node* operand) {
      const bool is_read = reads(group, *operand);
      return (is_read || is_small(base(*operand), value)) && (is_read || can_be_read(*operand, value, when));
    });
  }

  bool in_f64(int group) const {
    for (const int m : fusion_.members[group]) {
      if (node(m).dtype == Dtype::f64) return true;
      for (const Edge& edge : node(m).inputs)
        if (edge.node->dtype == Dtype::f64) return true;
    }
    return false;
  }

  void join(int value, const Recipe& recipe, int group) {
    std::vector<int>& members = fusion_.members[group];
    const int when = members.back();
    members.insert(members.end(), recipe.members.begin(), recipe.members.end());
    std::sort(members.begin(), members.end());
    members.erase(std::unique(members.begin(), members.end()), members.end());
    for (const Node* operand : recipe.operands)
      values_[base(*operand)].readers.push_back({when, group, !operand->is_view});
    auto& readers = values_[value].readers;
    std::erase_if(readers, [&](const Reader& r) { return r.group == group; });
    if (!readers.empty()) return;
    fusion_.is_output[value] = 0;  // every reader computes it
    values_[value].is_temporary = values_[value].is_candidate = false;
  }

  // ---- by a launch before the first late reader

  void profile() {
    std::vector<std::ptrdiff_t> change(static_cast<std::size_t>(count()) + 1);
    for (const Value& v : values_)
      if (v.is_temporary) {
        change[v.made] += static_cast<std::ptrdiff_t>(v.bytes);
        change[v.last() + 1] -= static_cast<std::ptrdiff_t>(v.bytes);
      } else if (v.packed_until >= 0) {
        change[v.made] += static_cast<std::ptrdiff_t>(v.bytes);
        change[std::max(v.made, v.packed_until) + 1] -= static_cast<std::ptrdiff_t>(v.bytes);
      }
    living_.assign(static_cast<std::size_t>(count()), 0);
    std::ptrdiff_t now = 0;
    for (int i = 0; i < count(); ++i) living_[i] = static_cast<std::size_t>(now += change[i]);
  }

  double cost_of_all() const {
    double cost = 0;
    std::vector<Shape> src, dst;
    for (int i = 0; i < count(); ++i) {
      const Node& n = node(i);
      if (n.has_value || n.is_view || n.output >= 0 || fusion_.group[i] >= 0) continue;
      src.clear();
      dst.clear();
      for (const Edge& edge : n.inputs) src.push_back(edge.node->shape);
      if (n.results.empty()) dst.push_back(n.shape);
      for (const auto& result : n.results) dst.push_back(result.first);
      const Cost c = n.op->cost(src, dst);
      cost += c.bytes + c.flops / kFlopsPerByte;
    }
    for (std::size_t g = 0; g < fusion_.members.size(); ++g) {
      std::vector<int> seen;
      for (const int m : fusion_.members[g]) {
        if (fusion_.group[m] == static_cast<int>(g) && fusion_.is_output[m])
          cost += static_cast<double>(values_[m].bytes);
        for (const Edge& edge : node(m).inputs) {
          const int from = base(*edge.node);
          if (std::find(seen.begin(), seen.end(), from) != seen.end()) continue;
          seen.push_back(from);
          const auto& members = fusion_.members[g];
          if (!std::binary_search(members.begin(), members.end(), from))
            cost += static_cast<double>(values_[from].bytes);
        }
      }
    }
    return cost;
  }

  struct Choice {
    int value = -1;
    int before = 0;
    double cost = 0;
    Recipe recipe;
  };

  // The value whose absence at the peak costs least per byte; value -1 if there is none.
  Choice best_at(int peak, double left) const {
    Choice best;
    double best_rate = 0;
    for (int i = 0; i < count(); ++i) {
      const Value& v = values_[i];
      if (!v.is_candidate || v.bytes < limits_.smallest || v.made >= peak || v.last() <= peak) continue;
      int before = kForever;
      bool is_early = false;
      for (const Reader& r : v.readers) {
        if (r.when == peak) before = -1;
        if (r.when > peak) before = std::min(before, r.when);
        is_early = is_early || r.when < peak;
      }
      if (before < 0 || !is_early) continue;
      Recipe recipe = recipe_of(i);
      if (recipe.members.empty()) continue;
      double cost = kLaunchBytes + static_cast<double>(v.bytes) +
                    recipe.flops * static_cast<double>(node(i).shape.size()) / kFlopsPerByte;
      bool can_be = true;
      for (const Node* operand : recipe.operands) {
        can_be = can_be && can_be_read(*operand, i, before);
        cost += static_cast<double>(values_[base(*operand)].bytes);
      }
      const double rate = cost / static_cast<double>(v.bytes);
      if (!can_be || cost > left || (best.value >= 0 && rate >= best_rate)) continue;
      best_rate = rate;
      best = {i, before, cost, std::move(recipe)};
    }
    return best;
  }

  double by_launches() {
    const double all = cost_of_all();
    double spent = 0;
    if (limits_.most_cost <= 0 || all <= 0) return 0;
    for (;;) {
      const auto peak = std::max_element(living_.begin(), living_.end());
      if (*peak <= limits_.target) break;
      Choice choice = best_at(static_cast<int>(peak - living_.begin()), limits_.most_cost * all - spent);
      if (choice.value < 0) break;
      spent += choice.cost;
      take(std::move(choice));
    }
    return spent / all;
  }

  void take(Choice choice) {
    Value& v = values_[choice.value];
    int early = v.made;
    for (const Reader& r : v.readers)
      if (r.when < choice.before) early = std::max(early, r.when);
    for (int t = early + 1; t < choice.before; ++t) living_[t] -= v.bytes;
    for (const Node* operand : choice.recipe.operands) {
      Value& source = values_[base(*operand)];
      if (source.is_temporary)
        for (int t = source.last() + 1; t <= choice.before; ++t) living_[t] += source.bytes;
      source.readers.push_back({choice.before, -1, !operand->is_view});
      // Otherwise a chain would be recomputed from its start, and all of it would be stored at once.
      if (!is_small(base(*operand), choice.value)) source.is_candidate = false;
    }
    // From now on it exists only near its readers: it can neither be dropped again nor be relied on in between.
    v.is_candidate = false;
    v.overwritten = std::min(v.overwritten, early + 1);
    v.dropped_after = early;
    v.again_at = choice.before;
    fusion_.again.push_back({choice.before, choice.value, std::move(choice.recipe.members)});
  }

  const GraphList& list_;
  FuseResult& fusion_;
  const RematerialiseLimits& limits_;
  std::vector<Value> values_;        // by place
  std::vector<std::size_t> living_;  // by place: bytes of temporaries alive while it runs
};

}  // namespace

RematerialiseReport rematerialise(const GraphList& list, FuseResult& fusion, const RematerialiseLimits& limits) {
  return list.nodes.empty() ? RematerialiseReport{} : Rematerialiser(list, fusion, limits).run();
}

std::vector<StoredValue> stored_values(const GraphList& list, FuseResult& fusion, const RematerialiseLimits& limits) {
  if (list.nodes.empty()) return {};
  Rematerialiser rematerialiser(list, fusion, limits);
  rematerialiser.run();
  return rematerialiser.stored();
}

}  // namespace samebytes::detail

#include "plan/release.h"

#include <algorithm>
#include <optional>

#include "graph/op.h"

namespace samebytes::detail {
namespace {

// Below this size the gradients are a small share of memory, and one launch for all of them is cheapest.
constexpr std::size_t kLeastReleasedPack = std::size_t{64} << 20;
// A segment ends at this many bytes: some milliseconds of work, and gradients that may still be in a cache.
constexpr std::size_t kSegmentBytes = std::size_t{16} << 20;
constexpr std::size_t kFewestSegments = 8;  // for a small model that requested it

class Releaser {
 public:
  Releaser(const GraphList& list, const FuseResult& fusion) : list_(list), fusion_(fusion) {}

  std::vector<GradientRelease> run() {
    std::vector<GradientRelease> result;
    for (int i = 0; i < count(); ++i) {
      const Node& n = node(i);
      if (n.has_value || n.is_view || !n.op || !n.op->traits().pack) continue;
      if (n.device != list_.nodes[0]->device) return {};
      if (std::optional<GradientRelease> release = release_of(i)) result.push_back(std::move(*release));
    }
    if (result.empty()) return result;
    for (const NodePtr& n : list_.nodes)
      if (n->device != list_.nodes[0]->device) return {};  // with several devices, places are no order in time
    return result;
  }

 private:
  const Node& node(int place) const { return *list_.nodes[static_cast<std::size_t>(place)]; }
  int count() const { return static_cast<int>(list_.nodes.size()); }
  bool is_listed(const Node& n) const {
    return n.place >= 0 && n.place < count() && list_.nodes[static_cast<std::size_t>(n.place)].get() == &n;
  }

  // Calls visit(reader's place, when it runs, base of what it reads) for every read of the list.
  template <class Visit>
  void each_read(Visit visit) const {
    const auto reads_of = [&](int place, int when) {
      for (const Edge& edge : node(place).inputs) visit(place, when, edge.node->base());
    };
    for (int i = 0; i < count(); ++i) {
      const Node& n = node(i);
      if (!n.has_value && !n.is_view && n.output < 0 && fusion_.group[i] < 0) reads_of(i, fusion_.runs_at(list_, i));
    }
    for (const std::vector<int>& members : fusion_.members)
      for (const int member : members) reads_of(member, members.back());
    for (const FuseResult::Again& again : fusion_.again)
      for (const int member : again.members) reads_of(member, again.before);
  }

  // Whether the group can run on its elements part by part.
  bool is_update_of(const std::vector<int>& members, int group, int pack) const {
    const Node& flat = node(pack);
    for (const int place : members) {
      const Node& n = node(place);
      const bool is_update = n.op->traits().is_pointwise_update();
      if (fusion_.group[place] != group || n.shape != flat.shape) return false;
      if (is_update != (fusion_.is_output[place] != 0)) return false;
      for (std::size_t i = 0; i < n.inputs.size(); ++i) {
        const Node& input = *n.inputs[i].node;
        if (is_update && i == 0 && !(input.has_value && input.cell)) return false;
        const bool is_inside = std::binary_search(members.begin(), members.end(), input.place);
        const bool is_whole = input.shape == flat.shape && !input.is_view && (input.has_value || input.place == pack);
        if (!is_inside && !is_whole && input.shape.size() != 1) return false;
      }
    }
    return true;
  }

  std::vector<GradientSegment> cut(const Node& pack) const {
    const PackLayout& layout = *pack.op->traits().pack;
    const auto& offsets = layout.offsets;
    const std::int64_t width = static_cast<std::int64_t>(bytes_of(pack.dtype));
    const auto bytes = static_cast<std::size_t>(pack.shape.size() * width);
    const std::size_t enough = std::min(kSegmentBytes, std::max<std::size_t>(1, bytes / kFewestSegments));
    std::vector<GradientSegment> segments;
    const auto end_of = [&](std::size_t part) { return part + 1 < offsets.size() ? offsets[part + 1] : layout.n; };
    for (std::size_t part = 0; part < offsets.size(); ++part) {
      const auto size_of = [&](std::int64_t begin) { return static_cast<std::size_t>((end_of(part) - begin) * width); };
      const bool is_full = !segments.empty() &&
                           (static_cast<std::size_t>((segments.back().end - segments.back().begin) * width) >= enough ||
                            size_of(offsets[part]) >= enough);
      if (segments.empty() || is_full) segments.push_back({part == 0 ? 0 : offsets[part], 0, part, part, 0});
      segments.back().end = end_of(part);
      segments.back().end_part = part + 1;
    }
    return segments;
  }

  std::optional<GradientRelease> release_of(int place) const {
    const Node& pack = node(place);
    const std::size_t bytes = static_cast<std::size_t>(pack.shape.size()) * bytes_of(pack.dtype);
    if (list_.wanted[static_cast<std::size_t>(place)] ||
        (bytes < kLeastReleasedPack && !pack.op->traits().pack->is_released))
      return {};
    int group = -1;
    bool is_alone = true;
    each_read([&](int reader, int, const Node& base) {
      if (&base != &pack) return;
      const int home = fusion_.group[reader];
      is_alone = is_alone && home >= 0 && (group < 0 || group == home);
      group = home;
    });
    if (!is_alone || group < 0) return {};
    const std::vector<int>& members = fusion_.members[group];
    if (!is_update_of(members, group, place)) return {};
    GradientRelease release{place, group, cut(pack)};
    if (release.segments.size() < 2 || !schedule(pack, members, release.segments)) return {};
    return release;
  }

  // False if somebody reads the results of the updates, or their cells afterwards.
  bool schedule(const Node& pack, const std::vector<int>& members, std::vector<GradientSegment>& segments) const {
    // The overwritten cells and the values in them: which elements of the pack each covers.
    struct Target {
      const Node* node;
      std::int64_t begin, end;
    };
    std::vector<Target> targets;
    for (const int place : members) {
      if (!node(place).op->traits().is_pointwise_update()) continue;
      const Node& cell = *node(place).inputs[0].node;
      targets.push_back({&cell, 0, pack.shape.size()});
      for (const auto& member : cell.cell->members)
        if (const NodePtr part = member.lock())
          if (is_listed(*part)) targets.push_back({part.get(), part->offset, part->offset + part->shape.size()});
    }
    std::sort(targets.begin(), targets.end(), [](const Target& a, const Target& b) { return a.node < b.node; });
    const auto wait_for = [&](std::int64_t begin, std::int64_t end, int when) {
      for (GradientSegment& s : segments)
        if (begin < s.end && s.begin < end) s.after = std::max(s.after, when);
    };
    for (GradientSegment& s : segments)
      for (std::size_t part = s.first_part; part < s.end_part; ++part) {
        const Node& base = pack.inputs[part].node->base();
        if (!base.has_value) s.after = std::max(s.after, fusion_.runs_at(list_, base.place));
      }
    const int own = members.back();
    const bool has_views = std::any_of(list_.nodes.begin(), list_.nodes.end(), [&](const NodePtr& n) {
      return n->is_view && std::binary_search(members.begin(), members.end(), n->base().place);
    });
    bool is_possible = !has_views;
    each_read([&](int reader, int when, const Node& base) {
      const bool is_own = std::binary_search(members.begin(), members.end(), reader);
      if (is_own) {  // one element for all, made by a launch
        if (!base.has_value && base.shape.size() == 1)
          wait_for(0, pack.shape.size(), fusion_.runs_at(list_, base.place));
        return;
      }
      if (base.place <= own && std::binary_search(members.begin(), members.end(), base.place) && is_listed(base))
        is_possible = false;
      const auto first = std::lower_bound(targets.begin(), targets.end(), &base,
                                          [](const Target& t, const Node* n) { return t.node < n; });
      for (auto t = first; t != targets.end() && t->node == &base; ++t) {
        is_possible = is_possible && when < own;
        wait_for(t->begin, t->end, when);
      }
    });
    for (const GradientSegment& s : segments) is_possible = is_possible && s.after < own;
    return is_possible;
  }

  const GraphList& list_;
  const FuseResult& fusion_;
};

}  // namespace

std::vector<GradientRelease> release_gradients(const GraphList& list, const FuseResult& fusion) {
  return list.nodes.empty() ? std::vector<GradientRelease>{} : Releaser(list, fusion).run();
}

}  // namespace samebytes::detail

#include "plan/arena.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <string>

#include "samebytes/error.h"

namespace samebytes::detail {

namespace {

constexpr std::size_t kArenaAlignment = 128;  // OpenCL devices require it for sub-allocations
constexpr std::size_t kGoodShare = 32;        // a layout within 1/32 of the lower bound is good enough

// Whether the two must not share bytes.
bool meet(const ArenaRequest& a, const ArenaRequest& b) {
  const bool in_order = a.devices == b.devices && std::has_single_bit(a.devices);
  return !in_order || (a.first <= b.last && b.first <= a.last);
}

std::size_t aligned(std::size_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

// What is placed as one: a single request, or all requests of a group.
struct Unit {
  std::vector<std::size_t> members;  // by ascending group_offset
  std::size_t bytes = 0;
  int first = 0, last = 0;
};

class Layouter {
 public:
  Layouter(const std::vector<ArenaRequest>& requests, std::size_t most) : requests_(requests), most_(most) {
    std::map<int, std::size_t> unit_of;
    for (std::size_t r = 0; r < requests.size(); ++r) {
      const ArenaRequest& request = requests[r];
      const auto [it, is_new] =
          request.group < 0 ? std::pair{unit_of.end(), true} : unit_of.emplace(request.group, units_.size());
      if (is_new) units_.push_back({{}, 0, request.first, request.last});
      Unit& unit = is_new ? units_.back() : units_[it->second];
      unit.members.push_back(r);
      unit.bytes = std::max(unit.bytes, (request.group < 0 ? 0 : request.group_offset) + aligned(request.bytes));
      unit.first = std::min(unit.first, request.first);
      unit.last = std::max(unit.last, request.last);
    }
    for (Unit& unit : units_) {
      std::sort(unit.members.begin(), unit.members.end(),
                [&](std::size_t a, std::size_t b) { return requests_[a].group_offset < requests_[b].group_offset; });
      if (unit.bytes > most)
        throw OutOfMemory("plan: one temporary needs " + std::to_string(unit.bytes) +
                              " bytes, the device's largest allocation is " + std::to_string(most),
                          unit.bytes, most);
    }
  }

  // `before` says which of two units is placed first.
  template <class Before>
  ArenaLayout place(Before before) {
    layout_ = {};
    layout_.places.resize(requests_.size());
    placed_.clear();
    std::vector<std::size_t> order(units_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return before(units_[a], units_[b]); });
    for (const std::size_t u : order) put(units_[u]);
    return std::move(layout_);
  }

 private:
  std::size_t distance(std::size_t r) const { return requests_[r].group < 0 ? 0 : requests_[r].group_offset; }

  // The lowest possible offset of a unit in a segment.
  std::size_t lowest(const Unit& unit, std::size_t segment) const {
    std::size_t offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (const std::size_t r : unit.members) {
        const std::size_t bytes = aligned(requests_[r].bytes);
        for (const std::size_t other : placed_[segment]) {
          if (!meet(requests_[other], requests_[r])) continue;
          const std::size_t start = layout_.places[other].offset, end = start + aligned(requests_[other].bytes);
          if (offset + distance(r) + bytes <= start) break;
          if (offset + distance(r) >= end) continue;
          offset = end - distance(r);
          moved = true;
        }
      }
      moved = moved && unit.members.size() > 1;  // a single request has been checked against everything above
    }
    return offset;
  }

  void put(const Unit& unit) {
    for (std::size_t s = 0;; ++s) {
      if (s == placed_.size()) {
        placed_.emplace_back();
        layout_.segments.push_back(0);
      }
      const std::size_t offset = lowest(unit, s);
      if (offset + unit.bytes > most_) continue;
      layout_.segments[s] = std::max(layout_.segments[s], offset + unit.bytes);
      for (const std::size_t r : unit.members) {
        const std::size_t at = offset + distance(r);
        layout_.places[r] = {static_cast<int>(s), at};
        const auto after = std::upper_bound(
            placed_[s].begin(), placed_[s].end(), at,
            [&](std::size_t value, std::size_t other) { return value < layout_.places[other].offset; });
        placed_[s].insert(after, r);
      }
      return;
    }
  }

  const std::vector<ArenaRequest>& requests_;
  const std::size_t most_;
  std::vector<Unit> units_;
  ArenaLayout layout_;
  std::vector<std::vector<std::size_t>> placed_;  // by segment, ascending offsets
};

std::size_t sum_of(const std::vector<std::size_t>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::size_t{0});
}

}  // namespace

ArenaLayout lay_out(const std::vector<ArenaRequest>& requests, std::size_t most) {
  Layouter layouter(requests, most);
  ArenaLayout best = layouter.place([](const Unit& a, const Unit& b) { return a.bytes > b.bytes; });
  const std::size_t least = least_bytes(requests);
  const auto is_good = [&] { return sum_of(best.segments) <= least + least / kGoodShare; };
  const auto try_order = [&](auto before) {
    if (is_good()) return;
    ArenaLayout other = layouter.place(before);
    if (sum_of(other.segments) < sum_of(best.segments)) best = std::move(other);
  };
  // Long-lived requests lie at the bottom, so that short-lived ones meet few fragments; then by birth and by death.
  try_order([](const Unit& a, const Unit& b) {
    const int life_a = a.last - a.first, life_b = b.last - b.first;
    return life_a != life_b ? life_a > life_b : a.bytes > b.bytes;
  });
  try_order([](const Unit& a, const Unit& b) { return a.first != b.first ? a.first < b.first : a.bytes > b.bytes; });
  try_order([](const Unit& a, const Unit& b) { return a.last != b.last ? a.last > b.last : a.bytes > b.bytes; });
  return best;
}

std::size_t least_bytes(const std::vector<ArenaRequest>& requests) {
  std::map<int, std::ptrdiff_t> change;  // by launch
  for (const ArenaRequest& request : requests) {
    const auto bytes = static_cast<std::ptrdiff_t>(aligned(request.bytes));
    change[request.first] += bytes;
    change[request.last + 1] -= bytes;
  }
  std::ptrdiff_t now = 0, most = 0;
  for (const auto& [launch, bytes] : change) most = std::max(most, now += bytes);
  return static_cast<std::size_t>(most);
}

}  // namespace samebytes::detail

#include "text/bpe_merges.h"

#include <algorithm>
#include <array>
#include <functional>
#include <queue>
#include <utility>

#include "text/flat_hash.h"

namespace samebytes::detail {
namespace {

// Up to here looking for the smallest rank again costs less than a queue.
constexpr std::size_t kShort = 48;

}  // namespace

void BpeMerges::reserve(std::size_t merges) {
  const std::size_t size = slots_for(merges);
  if (size <= slots_.size()) return;
  std::vector<Merge> old(size);
  old.swap(slots_);
  count_ = 0;
  for (const Merge& merge : old)
    if (merge.rank != kNoRank)
      add(static_cast<std::int32_t>(merge.pair >> 32), static_cast<std::int32_t>(merge.pair & 0xffffffffu), merge.rank,
          merge.merged);
}

bool BpeMerges::add(std::int32_t left, std::int32_t right, std::uint32_t rank, std::int32_t merged) {
  reserve(count_ + 1);
  const std::uint64_t pair = key_of(left, right);
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = mixed(pair, 0) & mask;
  while (slots_[slot].rank != kNoRank && slots_[slot].pair != pair) slot = (slot + 1) & mask;
  const bool is_new = slots_[slot].rank == kNoRank;
  slots_[slot] = {pair, rank, merged};
  count_ += is_new;
  return is_new;
}

inline const BpeMerges::Merge& BpeMerges::find(std::int32_t left, std::int32_t right) const {
  const std::uint64_t pair = key_of(left, right);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t slot = mixed(pair, 0) & mask;; slot = (slot + 1) & mask) {
    const Merge& merge = slots_[slot];
    if (merge.rank == kNoRank || merge.pair == pair) return merge;
  }
}

void BpeMerges::apply(std::vector<std::int32_t>& symbols, std::size_t begin) const {
  std::size_t count = symbols.size() - begin;
  if (count < 2 || slots_.empty()) return;
  if (count > kShort) return apply_long(symbols, begin);
  apply_short(symbols.data() + begin, count);
  symbols.resize(begin + count);
}

void BpeMerges::apply_short(std::int32_t* symbols, std::size_t& count) const {
  std::array<std::uint32_t, kShort> ranks;  // of a symbol and the next one
  std::array<std::int32_t, kShort> merged;
  const auto look = [&](std::size_t i) {
    const Merge& merge = find(symbols[i], symbols[i + 1]);
    ranks[i] = merge.rank;
    merged[i] = merge.merged;
  };
  for (std::size_t i = 0; i + 1 < count; ++i) look(i);
  while (count > 1) {
    std::size_t best = 0;
    std::uint32_t rank = ranks[0];
    for (std::size_t i = 1; i + 1 < count; ++i)
      if (ranks[i] < rank) rank = ranks[best = i];
    if (rank == kNoRank) return;
    symbols[best] = merged[best];
    std::copy(symbols + best + 2, symbols + count, symbols + best + 1);
    --count;
    if (best + 1 < count) {
      std::copy(ranks.begin() + static_cast<std::ptrdiff_t>(best) + 2,
                ranks.begin() + static_cast<std::ptrdiff_t>(count),
                ranks.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      std::copy(merged.begin() + static_cast<std::ptrdiff_t>(best) + 2,
                merged.begin() + static_cast<std::ptrdiff_t>(count),
                merged.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      look(best);
    }
    if (best > 0) look(best - 1);
  }
}

void BpeMerges::apply_long(std::vector<std::int32_t>& symbols, std::size_t begin) const {
  // A list of symbols linked by place, so that a merge costs O(1). kEnd at both ends; a symbol of kEnd is merged away.
  constexpr std::uint32_t kEnd = 0xffffffff;
  constexpr std::int32_t kGone = -1;
  struct Links {
    std::uint32_t previous, next;
  };
  struct Candidate {
    std::uint32_t rank, place;
    std::uint64_t pair;
    std::int32_t merged;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : place > other.place;
    }
  };
  std::int32_t* const symbol = symbols.data() + begin;
  const auto count = static_cast<std::uint32_t>(symbols.size() - begin);
  std::vector<Links> links(count);
  std::vector<Candidate> found;
  const auto offer = [&](std::uint32_t place, const auto& take) {
    if (place == kEnd || links[place].next == kEnd) return;
    const std::int32_t left = symbol[place], right = symbol[links[place].next];
    const Merge& merge = find(left, right);
    if (merge.rank != kNoRank) take(Candidate{merge.rank, place, merge.pair, merge.merged});
  };
  for (std::uint32_t i = 0; i < count; ++i) links[i] = {i == 0 ? kEnd : i - 1, i + 1 < count ? i + 1 : kEnd};
  for (std::uint32_t i = 0; i < count; ++i) offer(i, [&](const Candidate& candidate) { found.push_back(candidate); });
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates(std::greater<>(), std::move(found));
  while (!candidates.empty()) {
    const Candidate candidate = candidates.top();
    candidates.pop();
    const std::uint32_t place = candidate.place, next = links[place].next;
    if (symbol[place] == kGone || next == kEnd || key_of(symbol[place], symbol[next]) != candidate.pair) continue;
    symbol[place] = candidate.merged;
    symbol[next] = kGone;
    links[place].next = links[next].next;
    if (links[place].next != kEnd) links[links[place].next].previous = place;
    const auto push = [&](const Candidate& another) { candidates.push(another); };
    offer(links[place].previous, push);
    offer(place, push);
  }
  std::uint32_t kept = 0;
  for (std::uint32_t place = 0; place != kEnd; place = links[place].next) symbol[kept++] = symbol[place];
  symbols.resize(begin + kept);
}

}  // namespace samebytes::detail

// The pairs of a byte pair encoding, and the merging of a word's symbols by them: the only one in the library, of
// data::BpeTokenizer and of the BPE models of tokenizer.json.
#pragma once

#include <cstdint>
#include <vector>

namespace samebytes::detail {

class BpeMerges {
 public:
  struct Merge {
    std::uint64_t pair = 0;
    std::uint32_t rank = kNoRank;  // smaller ranks merge first
    std::int32_t merged = 0;       // the token that the pair becomes
  };
  static constexpr std::uint32_t kNoRank = 0xffffffff;

  void reserve(std::size_t merges);
  // Returns false for a pair that is there already; its rank and token become these. Requires: tokens of 0 or more.
  bool add(std::int32_t left, std::int32_t right, std::uint32_t rank, std::int32_t merged);
  std::size_t size() const { return count_; }

  // Merges the symbols from `begin` on until no two neighbours are a pair, the smallest rank first and then from the
  // left. Short words need no memory; the time of long ones grows as n log n.
  void apply(std::vector<std::int32_t>& symbols, std::size_t begin) const;

 private:
  static std::uint64_t key_of(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
  }
  const Merge& find(std::int32_t left, std::int32_t right) const;  // its rank is kNoRank where there is none
  void apply_short(std::int32_t* symbols, std::size_t& count) const;
  void apply_long(std::vector<std::int32_t>& symbols, std::size_t begin) const;

  std::vector<Merge> slots_;
  std::size_t count_ = 0;
};

}  // namespace samebytes::detail

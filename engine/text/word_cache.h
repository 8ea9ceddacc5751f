// The tokens of words that were seen before, in a flat table that is emptied when it is full: texts repeat their words.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/flat_hash.h"

namespace samebytes::detail {

class WordCache {
 public:
  static constexpr std::size_t kLongest = 128;  // bytes of a word that is kept

  // Appends the tokens of a word and returns true, or returns false; put() then takes what it has.
  bool get(std::string_view word, std::vector<std::int32_t>& ids) {
    hash_ = hash_of(word);
    for (std::size_t slot = hash_ & kMask; slots_[slot].hash != 0; slot = (slot + 1) & kMask) {
      const Slot& found = slots_[slot];
      if (found.hash != (hash_ | 1) || std::string_view(bytes_).substr(found.begin, found.bytes) != word) continue;
      const std::int32_t* first = ids_.data() + found.first;
      if (found.count == 1)
        ids.push_back(*first);
      else
        ids.insert(ids.end(), first, first + found.count);
      return true;
    }
    return false;
  }
  // Of the word of the last get(), which has not been there.
  void put(std::string_view word, std::span<const std::int32_t> ids) {
    if (count_ >= kMostWords) {
      slots_.assign(slots_.size(), {});
      bytes_.clear();
      ids_.clear();
      count_ = 0;
    }
    std::size_t slot = hash_ & kMask;
    while (slots_[slot].hash != 0) slot = (slot + 1) & kMask;
    slots_[slot] = {hash_ | 1, static_cast<std::uint32_t>(bytes_.size()), static_cast<std::uint32_t>(ids_.size()),
                    static_cast<std::uint16_t>(word.size()), static_cast<std::uint16_t>(ids.size())};
    bytes_ += word;
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    ++count_;
  }

 private:
  static constexpr std::size_t kSlots = 1 << 16, kMask = kSlots - 1, kMostWords = kSlots / 2;
  struct Slot {
    std::uint64_t hash = 0;  // its lowest bit is set; 0: free
    std::uint32_t begin = 0, first = 0;
    std::uint16_t bytes = 0, count = 0;
  };
  std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
  std::string bytes_;
  std::vector<std::int32_t> ids_;
  std::size_t count_ = 0;
  std::uint64_t hash_ = 0;
};

}  // namespace samebytes::detail

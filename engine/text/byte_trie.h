// A set of texts by their bytes, for the longest ones that begin at a place: children in a flat table.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/flat_hash.h"

namespace samebytes::detail {

class ByteTrie {
 public:
  static constexpr std::uint32_t kRoot = 0, kNowhere = 0xffffffff;
  static constexpr std::int32_t kNone = -1;

  // Returns the node of the text. A text that is there already gets the new value.
  std::uint32_t add(std::string_view text, std::int32_t value) {
    std::uint32_t node = kRoot;
    for (const char c : text) node = child_for(node, static_cast<unsigned char>(c));
    values_[node] = value;
    return node;
  }
  std::uint32_t child(std::uint32_t node, char c) const {
    const auto byte = static_cast<unsigned char>(c);
    if (node == kRoot) return first_[byte];
    if (slots_.empty()) return kNowhere;
    const std::uint64_t key = key_of(node, byte);
    for (std::size_t slot = mixed(key, 0) & (slots_.size() - 1);; slot = (slot + 1) & (slots_.size() - 1)) {
      if (slots_[slot].key == key) return slots_[slot].child;
      if (slots_[slot].key == 0) return kNowhere;
    }
  }
  // The node behind `text`; kNowhere if no text begins so.
  std::uint32_t find(std::string_view text) const {
    std::uint32_t node = kRoot;
    for (std::size_t i = 0; i < text.size() && node != kNowhere; ++i) node = child(node, text[i]);
    return node;
  }
  std::int32_t value(std::uint32_t node) const { return values_[node]; }
  bool is_first(char c) const { return first_[static_cast<unsigned char>(c)] != kNowhere; }
  bool empty() const { return values_.size() == 1; }

 private:
  struct Slot {
    std::uint64_t key = 0;  // 0: free, which is no key, as the root's children have their own table
    std::uint32_t child = 0;
  };
  static std::uint64_t key_of(std::uint32_t node, unsigned char byte) {
    return static_cast<std::uint64_t>(node) << 8 | byte;
  }
  static std::array<std::uint32_t, 256> no_children() {
    std::array<std::uint32_t, 256> children{};
    children.fill(kNowhere);
    return children;
  }
  std::uint32_t child_for(std::uint32_t node, unsigned char byte) {
    if (const std::uint32_t found = child(node, static_cast<char>(byte)); found != kNowhere) return found;
    const auto made = static_cast<std::uint32_t>(values_.size());
    values_.push_back(kNone);
    if (node == kRoot) {
      first_[byte] = made;
      return made;
    }
    if (slots_for(++count_) > slots_.size()) {
      std::vector<Slot> old(slots_for(count_));
      old.swap(slots_);
      for (const Slot& slot : old)
        if (slot.key != 0) put(slot);
    }
    put({key_of(node, byte), made});
    return made;
  }
  void put(const Slot& added) {
    std::size_t slot = mixed(added.key, 0) & (slots_.size() - 1);
    while (slots_[slot].key != 0) slot = (slot + 1) & (slots_.size() - 1);
    slots_[slot] = added;
  }

  std::array<std::uint32_t, 256> first_ = no_children();
  std::vector<std::int32_t> values_{kNone};  // of each node
  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

}  // namespace samebytes::detail

// The tokens of a model and their numbers, in a flat table: one block of bytes, entries of 12 bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/flat_hash.h"

namespace samebytes::detail {

class Vocabulary {
 public:
  static constexpr std::int32_t kNone = -1;

  void reserve(std::size_t tokens);
  // A token that is there already gets the new number, as in a map. Requires: id >= 0.
  void add(std::string_view token, std::int32_t id);

  std::size_t size() const { return entries_.size(); }
  std::int32_t most() const { return static_cast<std::int32_t>(by_id_.size()) - 1; }  // the largest number; -1: none
  std::int32_t find(std::string_view token) const;                                    // kNone: no such token
  std::optional<std::string_view> token(std::int32_t id) const;

 private:
  struct Entry {
    std::uint32_t begin, bytes;
    std::int32_t id;
  };
  std::string_view text(const Entry& entry) const { return std::string_view(bytes_).substr(entry.begin, entry.bytes); }
  std::size_t slot_of(std::string_view token) const;
  void grow(std::size_t slots);

  std::string bytes_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // of entries, plus 1; 0: free
  std::vector<std::uint32_t> by_id_;  // of entries, plus 1; 0: no token has the number
};

}  // namespace samebytes::detail

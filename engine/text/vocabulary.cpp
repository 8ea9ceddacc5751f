#include "text/vocabulary.h"

namespace samebytes::detail {

std::size_t Vocabulary::slot_of(std::string_view token) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = hash_of(token) & mask;
  while (slots_[slot] != 0 && text(entries_[slots_[slot] - 1]) != token) slot = (slot + 1) & mask;
  return slot;
}

void Vocabulary::grow(std::size_t slots) {
  slots_.assign(slots, 0);
  for (std::size_t i = 0; i < entries_.size(); ++i)
    slots_[slot_of(text(entries_[i]))] = static_cast<std::uint32_t>(i + 1);
}

void Vocabulary::reserve(std::size_t tokens) {
  entries_.reserve(tokens);
  if (const std::size_t slots = slots_for(tokens); slots > slots_.size()) grow(slots);
}

void Vocabulary::add(std::string_view token, std::int32_t id) {
  if (slots_for(entries_.size() + 1) > slots_.size()) grow(slots_for(entries_.size() + 1));
  const std::size_t slot = slot_of(token);
  if (slots_[slot] == 0) {
    entries_.push_back({static_cast<std::uint32_t>(bytes_.size()), static_cast<std::uint32_t>(token.size()), id});
    bytes_ += token;
    slots_[slot] = static_cast<std::uint32_t>(entries_.size());
  }
  entries_[slots_[slot] - 1].id = id;
  if (by_id_.size() <= static_cast<std::size_t>(id)) by_id_.resize(static_cast<std::size_t>(id) + 1);
  by_id_[static_cast<std::size_t>(id)] = slots_[slot];
}

std::int32_t Vocabulary::find(std::string_view token) const {
  if (slots_.empty()) return kNone;
  const std::uint32_t entry = slots_[slot_of(token)];
  return entry == 0 ? kNone : entries_[entry - 1].id;
}

std::optional<std::string_view> Vocabulary::token(std::int32_t id) const {
  if (id < 0 || id > most() || by_id_[static_cast<std::size_t>(id)] == 0) return std::nullopt;
  return text(entries_[by_id_[static_cast<std::size_t>(id)] - 1]);
}

}  // namespace samebytes::detail

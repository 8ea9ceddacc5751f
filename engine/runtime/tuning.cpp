#include "runtime/tuning.h"

#include "core/hash.h"
#include "samebytes/error.h"

namespace samebytes::detail {

std::string hex_of(std::uint64_t bits) {
  std::string text(16, '0');
  for (int i = 15; i >= 0; --i, bits >>= 4) text[static_cast<std::size_t>(i)] = "0123456789abcdef"[bits & 15];
  return text;
}

std::map<std::string, std::string> Tuning::tiles(Dtype real) const {
  std::map<std::string, std::string> result;
  if (real != f32) return result;
  for (const auto& [key, value] : values_)
    if (const Tunable* row = find_tunable(personality_, key); row && row->kind == Tunable::Kind::tile)
      result.emplace(row->name, std::to_string(value));
  return result;
}

std::string Tuning::defines(Dtype real) const {
  std::string text;
  for (const auto& [name, value] : tiles(real)) text += " -D" + name + "=" + value;
  return text;
}

std::int64_t Tuning::at(const std::string& key) const {
  if (const auto found = values_.find(key); found != values_.end()) return found->second;
  if (const Tunable* row = find_tunable(personality_, key)) return row->built_in;
  throw ArgumentError("tuning: the table has no " + key + " for personality " + name_of(personality_));
}

std::int64_t Tuning::choice(std::string_view family, std::string_view shape_class, std::string_view name) const {
  return at("launch." + std::string(family) + "." + std::string(shape_class) + "." + std::string(name));
}

std::int64_t Tuning::clblast(std::string_view name) const { return at("clblast.f32." + std::string(name)); }

std::string Tuning::hash() const {
  if (values_.empty()) return "built-in";
  Hasher hasher;
  for (const auto& [key, value] : values_) {
    hasher.add(std::string_view(key));
    hasher.add(static_cast<std::uint64_t>(value));
  }
  return hex_of(hasher.key().a);
}

}  // namespace samebytes::detail

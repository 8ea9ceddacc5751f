// SentencePiece's precompiled map: a double array of what is replaced, and the texts that replace it. A grapheme of
// less than six bytes is looked up as a whole, else its characters are, as `tokenizers` does.
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "text/normalizer.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace samebytes::detail {
namespace {

std::optional<std::string> from_base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6 | static_cast<std::uint32_t>(digit)) & 0xffffffu;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xffu);
  }
  return bytes;
}

class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(const JsonPart& part) {
    const auto fail = [&] {
      part.fail("precompiled_charsmap", "a map of SentencePiece in base64", part.find("precompiled_charsmap"));
    };
    const std::optional<std::string> bytes = from_base64(part.text("precompiled_charsmap"));
    std::uint32_t size = 0;
    if (!bytes || bytes->size() < sizeof size) fail();
    std::memcpy(&size, bytes->data(), sizeof size);
    if (size % sizeof(std::uint32_t) != 0 || size > bytes->size() - sizeof size) fail();
    units_.resize(size / sizeof(std::uint32_t));
    if (size > 0) std::memcpy(units_.data(), bytes->data() + sizeof size, size);
    texts_ = bytes->substr(sizeof size + size);
  }

  std::string_view apply(std::string_view text, std::string& buffer) const override {
    buffer.clear();
    std::size_t begin = 0, place = 0;
    std::int32_t state = 0;
    char32_t left = kNoCharacter;
    while (place < text.size()) {
      const Character character = character_at(text, place);
      if (left != kNoCharacter && is_end(left, character.code, state)) {
        append(text.substr(begin, place - begin), buffer);
        begin = place;
      }
      left = character.code;
      place += character.bytes;
    }
    append(text.substr(begin), buffer);
    return buffer;
  }

 private:
  static bool is_end(char32_t left, char32_t right, std::int32_t& state) {
    // Two characters of ASCII are two graphemes but for a line end.
    if (left < 0x80 && right < 0x80) {
      state = 0;
      return left != '\r' || right != '\n';
    }
    return is_grapheme_end(left, right, state);
  }

  void append(std::string_view grapheme, std::string& buffer) const {
    constexpr std::size_t kLookedUp = 6;
    if (grapheme.size() < kLookedUp) {
      if (const auto found = find(grapheme)) {
        buffer += *found;
        return;
      }
    }
    for (std::size_t place = 0; place < grapheme.size();) {
      const std::string_view character = grapheme.substr(place, bytes_of_first(grapheme[place]));
      buffer += find(character).value_or(character);
      place += character.size();
    }
  }

  // The text for the shortest key that begins `key`. A unit has a label or a value, and the distance to its children.
  std::optional<std::string_view> find(std::string_view key) const {
    if (units_.empty()) return std::nullopt;
    const auto distance = [](std::uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); };
    std::size_t place = distance(units_[0]);
    for (const char c : key) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte == 0) return std::nullopt;
      place ^= byte;
      if (place >= units_.size()) return std::nullopt;
      const std::uint32_t unit = units_[place];
      if ((unit & ((1u << 31) | 0xffu)) != byte) return std::nullopt;
      place ^= distance(unit);
      if ((unit >> 8 & 1u) == 0) continue;
      if (place >= units_.size()) return std::nullopt;
      const std::uint32_t value = units_[place] & 0x7fffffffu;
      if (value > texts_.size()) return std::nullopt;
      const std::string_view rest = std::string_view(texts_).substr(value);
      return rest.substr(0, rest.find('\0'));
    }
    return std::nullopt;
  }

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace

std::unique_ptr<Normalizer> make_precompiled(const JsonPart& part) { return std::make_unique<Precompiled>(part); }

}  // namespace samebytes::detail

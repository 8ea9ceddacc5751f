#include "text/utf8.h"

#include <cstdint>
#include <cstring>

namespace samebytes::detail {
namespace {

// Where the run of ASCII that begins at `place` ends.
std::size_t end_of_ascii(std::string_view text, std::size_t place) {
  constexpr std::uint64_t kHighBits = 0x8080808080808080u;
  for (; place + sizeof(std::uint64_t) <= text.size(); place += sizeof(std::uint64_t)) {
    std::uint64_t bytes;
    std::memcpy(&bytes, text.data() + place, sizeof bytes);
    if ((bytes & kHighBits) != 0) break;
  }
  while (place < text.size() && static_cast<unsigned char>(text[place]) < 0x80) ++place;
  return place;
}

// Bytes from `place` on that begin a character without an end; at least 1. Requires: no character at `place`.
std::size_t bytes_of_broken(std::string_view text, std::size_t place) {
  const auto first = static_cast<unsigned char>(text[place]);
  if (first < 0xc2 || first > 0xf4) return 1;
  const std::size_t wanted = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  std::size_t bytes = 1;
  for (; bytes < wanted && place + bytes < text.size(); ++bytes) {
    const auto byte = static_cast<unsigned char>(text[place + bytes]);
    unsigned char least = 0x80, most = 0xbf;
    if (bytes == 1 && first == 0xe0) least = 0xa0;
    if (bytes == 1 && first == 0xed) most = 0x9f;
    if (bytes == 1 && first == 0xf0) least = 0x90;
    if (bytes == 1 && first == 0xf4) most = 0x8f;
    if (byte < least || byte > most) break;
  }
  return bytes;
}

}  // namespace

void append_utf8(std::string& text, char32_t code) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
}

std::string_view repaired_utf8(std::string_view text, std::string& buffer) {
  std::size_t place = 0, kept = 0;
  bool is_whole = true;
  while ((place = end_of_ascii(text, place)) < text.size()) {
    const Character character = character_at(text, place);
    if (character.code != kNoCharacter) {
      place += character.bytes;
      continue;
    }
    if (is_whole) buffer.clear();
    is_whole = false;
    buffer.append(text, kept, place - kept);
    buffer += "\xef\xbf\xbd";
    kept = place += bytes_of_broken(text, place);
  }
  if (is_whole) return text;
  buffer.append(text, kept);
  return buffer;
}

bool is_ascii(std::string_view text) { return end_of_ascii(text, 0) == text.size(); }

}  // namespace samebytes::detail

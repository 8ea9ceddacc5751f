#include "text/normalizer.h"

#include <algorithm>
#include <array>

#include "text/byte_characters.h"
#include "text/text_pattern.h"
#include "text/unicode.h"
#include "text/utf8.h"

namespace samebytes::detail {
namespace {

// A file may ask for replacements that multiply a text.
constexpr std::size_t kMostReplaced = 64, kMostReplacedRoom = 1 << 20;

void check_growth(std::size_t now, std::size_t before) {
  if (now > kMostReplaced * before + kMostReplacedRoom)
    throw Error("tokenizer: the file's replacements make " + std::to_string(now) + " bytes of " +
                std::to_string(before));
}

template <class Act>
void for_each_of(std::string_view text, const Act& act) {
  for (std::size_t place = 0; place < text.size();) {
    const Character character = character_at(text, place);
    act(character.code, text.substr(place, character.bytes));
    place += character.bytes;
  }
}

class Form final : public Normalizer {
 public:
  explicit Form(NormalForm form) : form_(form) {}
  std::string_view apply(std::string_view text, std::string& buffer) const override {
    return normal_form(form_, text, buffer);
  }

 private:
  NormalForm form_;
};

std::string_view lower_case(std::string_view text, std::string& buffer) {
  buffer.clear();
  for (std::size_t place = 0; place < text.size();) {
    const char c = text[place];
    if (static_cast<unsigned char>(c) < 0x80) {
      buffer += c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
      ++place;
      continue;
    }
    const Character character = character_at(text, place);
    append_lower(buffer, character.code);
    place += character.bytes;
  }
  return buffer;
}

class Lowercase final : public Normalizer {
 public:
  std::string_view apply(std::string_view text, std::string& buffer) const override { return lower_case(text, buffer); }
};

// Leaves out the characters of a kind.
template <class IsOut>
std::string_view without(std::string_view text, std::string& buffer, const IsOut& is_out) {
  if (is_ascii(text)) return text;
  buffer.clear();
  for_each_of(text, [&](char32_t code, std::string_view bytes) {
    if (!is_out(code)) buffer += bytes;
  });
  return buffer;
}

class StripAccents final : public Normalizer {
 public:
  std::string_view apply(std::string_view text, std::string& buffer) const override {
    return without(text, buffer, is_mark);
  }
};

class StripNormalizer final : public Normalizer {
 public:
  explicit StripNormalizer(const JsonPart& part) : left_(part.flag("strip_left")), right_(part.flag("strip_right")) {}
  std::string_view apply(std::string_view text, std::string&) const override {
    while (left_ && !text.empty() && is_blank(character_at(text, 0).code)) text.remove_prefix(bytes_of_first(text[0]));
    while (right_ && !text.empty()) {
      std::size_t last = text.size() - 1;
      while (last > 0 && (static_cast<unsigned char>(text[last]) & 0xc0u) == 0x80u) --last;
      if (!is_blank(character_at(text, last).code)) break;
      text.remove_suffix(text.size() - last);
    }
    return text;
  }

 private:
  bool left_, right_;
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(const JsonPart& part) : prefix_(part.text("prepend")) {}
  std::string_view apply(std::string_view text, std::string& buffer) const override {
    if (text.empty()) return text;
    (buffer = prefix_) += text;
    return buffer;
  }

 private:
  std::string prefix_;
};

class ReplaceNormalizer final : public Normalizer {
 public:
  explicit ReplaceNormalizer(const JsonPart& part) : replacement_(part) {}
  std::string_view apply(std::string_view text, std::string& buffer) const override {
    return replacement_.apply(text, buffer);
  }

 private:
  Replacement replacement_;
};

// What BERT's own tokenizer does before it cuts.
class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(const JsonPart& part)
      : cleans_(part.flag("clean_text", true)),
        spaces_chinese_(part.flag("handle_chinese_chars", true)),
        lowers_(part.flag("lowercase", true)),
        strips_accents_(part.flag("strip_accents", lowers_)) {}

  std::string_view apply(std::string_view text, std::string& buffer) const override {
    buffer.clear();
    buffer.reserve(text.size());
    if (append_ascii(text, buffer)) return buffer;
    std::string first, second;
    if (cleans_ || spaces_chinese_) {
      append_clean(text, first);
      text = first;
    }
    if (strips_accents_) {
      text = normal_form(NormalForm::nfd, text, second);
      std::string& other = text.data() == second.data() ? first : second;
      text = without(text, other, is_nonspacing_mark);
    }
    if (lowers_) return lower_case(text, buffer);
    return buffer = text;
  }

 private:
  // False where there is more than ASCII.
  bool append_ascii(std::string_view text, std::string& buffer) const {
    for (const char c : text) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte >= 0x80) return false;
      if (byte >= 'A' && byte <= 'Z' && lowers_) {
        buffer += static_cast<char>(c + ('a' - 'A'));
      } else if ((byte >= 0x20 && byte != 0x7f) || !cleans_) {
        buffer += c;
      } else if (byte == '\t' || byte == '\n' || byte == '\r') {
        buffer += ' ';
      }
    }
    return true;
  }
  void append_clean(std::string_view text, std::string& buffer) const {
    buffer.reserve(text.size());
    for_each_of(text, [&](char32_t code, std::string_view bytes) {
      if (cleans_) {
        constexpr char32_t kReplaced = 0xfffd;
        if (code == 0 || code == kReplaced || is_control(code)) return;
        if (is_blank(code)) {
          buffer += ' ';
          return;
        }
      }
      if (spaces_chinese_ && is_chinese(code))
        ((buffer += ' ') += bytes) += ' ';
      else
        buffer += bytes;
    });
  }
  static bool is_chinese(char32_t code) {
    return (code >= 0x4e00 && code <= 0x9fff) || (code >= 0x3400 && code <= 0x4dbf) ||
           (code >= 0x20000 && code <= 0x2a6df) || (code >= 0x2a700 && code <= 0x2b81f) ||
           (code >= 0x2b920 && code <= 0x2ceaf) || (code >= 0xf900 && code <= 0xfaff) ||
           (code >= 0x2f800 && code <= 0x2fa1f);
  }

  bool cleans_, spaces_chinese_, lowers_, strips_accents_;
};

// NMT's list of controls and blanks, as in SentencePiece.
class Nmt final : public Normalizer {
 public:
  std::string_view apply(std::string_view text, std::string& buffer) const override {
    buffer.clear();
    for_each_of(text, [&](char32_t code, std::string_view bytes) {
      if ((code >= 0x1 && code <= 0x8) || code == 0xb || (code >= 0xe && code <= 0x1f) || code == 0x7f ||
          code == 0x8f || code == 0x9f)
        return;
      const bool is_space = code == 0x9 || code == 0xa || code == 0xc || code == 0xd || code == 0x1680 ||
                            (code >= 0x200b && code <= 0x200f) || code == 0x2028 || code == 0x2029 || code == 0x2581 ||
                            code == 0xfeff || code == 0xfffd;
      if (is_space)
        buffer += ' ';
      else
        buffer += bytes;
    });
    return buffer;
  }
};

class ByteLevelNormalizer final : public Normalizer {
 public:
  std::string_view apply(std::string_view text, std::string& buffer) const override {
    buffer.clear();
    for (const char c : text) buffer += byte_characters()[static_cast<unsigned char>(c)];
    return buffer;
  }
};

}  // namespace

struct Replacement::Pattern {
  TextPattern text;
};

Replacement::Replacement(const JsonPart& part)
    : pattern_(std::make_unique<Pattern>(Pattern{TextPattern(part)})), content_(part.text("content")) {}
Replacement::~Replacement() = default;

std::string_view Replacement::apply(std::string_view text, std::string& buffer) const {
  buffer.clear();
  std::size_t kept = 0;
  bool is_changed = false;
  pattern_->text.for_each_match(text, [&](std::size_t begin, std::size_t end) {
    buffer.append(text, kept, begin - kept);
    buffer += content_;
    kept = end;
    is_changed = true;
    check_growth(buffer.size(), text.size());
  });
  if (!is_changed) return text;
  buffer.append(text, kept);
  return buffer;
}

Normalizers::Normalizers(const JsonPart& part) { add(part); }

void Normalizers::add(const JsonPart& part) {
  const std::string type = part.type();
  const auto step = [&](auto made) { steps_.push_back(std::move(made)); };
  if (type == "Sequence") {
    std::size_t i = 0;
    for (const nlohmann::json& member : part.array("normalizers"))
      add(JsonPart(member, part.path(), part.place_of("normalizers") + "[" + std::to_string(i++) + "]"));
  } else if (type == "NFC") {
    step(std::make_unique<Form>(NormalForm::nfc));
  } else if (type == "NFD") {
    step(std::make_unique<Form>(NormalForm::nfd));
  } else if (type == "NFKC") {
    step(std::make_unique<Form>(NormalForm::nfkc));
  } else if (type == "NFKD") {
    step(std::make_unique<Form>(NormalForm::nfkd));
  } else if (type == "Lowercase") {
    step(std::make_unique<Lowercase>());
  } else if (type == "StripAccents") {
    step(std::make_unique<StripAccents>());
  } else if (type == "Strip") {
    step(std::make_unique<StripNormalizer>(part));
  } else if (type == "Prepend") {
    step(std::make_unique<Prepend>(part));
  } else if (type == "Replace") {
    step(std::make_unique<ReplaceNormalizer>(part));
  } else if (type == "BertNormalizer") {
    step(std::make_unique<BertNormalizer>(part));
  } else if (type == "Nmt") {
    step(std::make_unique<Nmt>());
  } else if (type == "ByteLevel") {
    step(std::make_unique<ByteLevelNormalizer>());
  } else if (type == "Precompiled") {
    step(make_precompiled(part));
  } else {
    part.fail_type(
        "NFC, NFD, NFKC, NFKD, Lowercase, StripAccents, Strip, Prepend, Replace, BertNormalizer, Nmt, ByteLevel, "
        "Precompiled or Sequence");
  }
}

Normalizers::Result Normalizers::apply(std::string_view text, std::string& first, std::string& second) const {
  const std::size_t before = text.size();
  bool is_in_first = false, has_front = true;
  for (const auto& step : steps_) {
    std::string& buffer = is_in_first ? second : first;
    const char* const begin = text.data();
    const std::size_t bytes = text.size();
    text = step->apply(text, buffer);
    if (text.data() > begin && text.data() <= begin + bytes) has_front = false;
    check_growth(text.size(), before);
    // A part of the buffer counts as the buffer.
    const bool is_in_buffer = text.data() >= buffer.data() && text.data() <= buffer.data() + buffer.size();
    if (is_in_buffer) is_in_first = !is_in_first;
  }
  return {text, has_front};
}

}  // namespace samebytes::detail

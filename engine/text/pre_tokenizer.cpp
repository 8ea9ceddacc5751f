#include "text/pre_tokenizer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "text/byte_characters.h"
#include "text/text_pattern.h"
#include "text/unicode.h"
#include "text/utf8.h"
#include "text/word_patterns.h"

namespace samebytes::detail {
namespace {

enum class Behavior : char { removed, isolated, merged_with_previous, merged_with_next, contiguous };

Behavior behavior_of(const JsonPart& part, const char* fallback) {
  const std::string text = part.text("behavior", fallback);
  if (text == "Removed") return Behavior::removed;
  if (text == "Isolated") return Behavior::isolated;
  if (text == "MergedWithPrevious") return Behavior::merged_with_previous;
  if (text == "MergedWithNext") return Behavior::merged_with_next;
  if (text == "Contiguous") return Behavior::contiguous;
  part.fail("behavior", "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous", part.find("behavior"));
}

// Parts of a text in their order, those that match and those that do not, become words.
class Cutter {
 public:
  Cutter(Word word, Behavior behavior, std::vector<Word>& words) : word_(word), behavior_(behavior), words_(words) {}
  ~Cutter() = default;
  Cutter(const Cutter&) = delete;
  Cutter& operator=(const Cutter&) = delete;

  void part(std::size_t begin, std::size_t end, bool is_match) {
    switch (behavior_) {
      case Behavior::removed:
        if (!is_match) put(begin, end);
        return;
      case Behavior::isolated: put(begin, end); return;
      case Behavior::contiguous:
        if (is_match != was_match_) flush(begin);
        break;
      case Behavior::merged_with_previous:
        if (!is_match || was_match_) flush(begin);
        break;
      case Behavior::merged_with_next:
        // A match goes with what is behind it, unless that is a match.
        if (is_match || !was_match_) flush(begin);
        break;
    }
    was_match_ = is_match;
    end_ = end;
  }
  void finish() {
    if (end_ > begin_) put(begin_, end_);
  }

 private:
  void flush(std::size_t at) {
    if (at > begin_) put(begin_, at);
    begin_ = at;
  }
  void put(std::size_t begin, std::size_t end) {
    if (end > begin) words_.push_back({word_.text.substr(begin, end - begin), word_.is_first && begin == 0});
  }

  Word word_;
  Behavior behavior_;
  std::vector<Word>& words_;
  bool was_match_ = false;
  std::size_t begin_ = 0, end_ = 0;
};

template <class Cut>
void cut_each(Words& words, const Cut& cut) {
  words.next.clear();
  for (const Word& word : words.list) cut(word, words.next);
  words.list.swap(words.next);
}

// Cuts at the characters of a kind, each a match.
template <class IsMatch>
void cut_at(Words& words, Behavior behavior, const IsMatch& is_match) {
  cut_each(words, [&](const Word& word, std::vector<Word>& out) {
    Cutter cutter(word, behavior, out);
    std::size_t kept = 0;
    for (std::size_t place = 0; place < word.text.size();) {
      const Character character = character_at(word.text, place);
      if (is_match(character.code)) {
        if (place > kept) cutter.part(kept, place, false);
        cutter.part(place, place + character.bytes, true);
        kept = place + character.bytes;
      }
      place += character.bytes;
    }
    if (kept < word.text.size()) cutter.part(kept, word.text.size(), false);
    cutter.finish();
  });
}

void cut_by(Words& words, WordPattern pattern) {
  cut_each(words, [&](const Word& word, std::vector<Word>& out) {
    words.views.clear();
    split_words(pattern, word.text, words.views);
    for (const std::string_view view : words.views)
      out.push_back({view, word.is_first && view.data() == word.text.data()});
  });
}

// Puts a text before each word that does not begin with it, where `wants` says so.
template <class Wants>
void prepend(Words& words, std::string_view prefix, const Wants& wants) {
  for (Word& word : words.list)
    if (wants(word) && !word.text.starts_with(prefix))
      word.text = words.texts.emplace_back(std::string(prefix).append(word.text));
}

class ByteLevelPreTokenizer final : public PreTokenizer {
 public:
  explicit ByteLevelPreTokenizer(const JsonPart& part)
      : adds_blank_(part.flag("add_prefix_space", true)), cuts_(part.flag("use_regex", true)) {}
  void apply(Words& words) const override {
    if (adds_blank_) prepend(words, " ", [](const Word&) { return true; });
    if (cuts_) cut_by(words, WordPattern::gpt2);
    if (leaves_bytes_) return;
    std::string& text = words.texts.emplace_back();
    std::vector<std::size_t> ends;
    for (const Word& word : words.list) {
      for (const char c : word.text) text += byte_characters()[static_cast<unsigned char>(c)];
      ends.push_back(text.size());
    }
    for (std::size_t i = 0, begin = 0; i < words.list.size(); begin = ends[i++])
      words.list[i].text = std::string_view(text).substr(begin, ends[i] - begin);
  }
  bool is_byte_level() const override { return true; }
  void leave_bytes() override { leaves_bytes_ = true; }

 private:
  bool adds_blank_, cuts_, leaves_bytes_ = false;
};

class MetaspacePreTokenizer final : public PreTokenizer {
 public:
  explicit MetaspacePreTokenizer(const JsonPart& part)
      : replacement_(part.text("replacement", "\u2581")), cuts_(part.flag("split", true)) {
    const bool has_blank = part.flag("add_prefix_space", true);
    scheme_ = part.text("prepend_scheme", has_blank ? "always" : "never");
    if (scheme_ != "always" && scheme_ != "first" && scheme_ != "never")
      part.fail("prepend_scheme", "always, first or never", part.find("prepend_scheme"));
    if (replacement_.empty() || bytes_of_first(replacement_[0]) != replacement_.size())
      part.fail("replacement", "one character", part.find("replacement"));
  }
  void apply(Words& words) const override {
    for (Word& word : words.list) {
      if (word.text.find(' ') == std::string_view::npos) continue;
      std::string& text = words.texts.emplace_back();
      for (const char c : word.text)
        if (c == ' ')
          text += replacement_;
        else
          text += c;
      word.text = text;
    }
    if (scheme_ != "never")
      prepend(words, replacement_, [&](const Word& word) { return scheme_ == "always" || word.is_first; });
    if (!cuts_) return;
    cut_each(words, [&](const Word& word, std::vector<Word>& out) {
      for (std::size_t begin = 0; begin < word.text.size();) {
        const std::size_t end = std::min(word.text.find(replacement_, begin + 1), word.text.size());
        out.push_back({word.text.substr(begin, end - begin), word.is_first && begin == 0});
        begin = end;
      }
    });
  }

 private:
  std::string replacement_, scheme_;
  bool cuts_;
};

class Split final : public PreTokenizer {
 public:
  explicit Split(const JsonPart& part)
      : pattern_(part), behavior_(behavior_of(part, "")), is_inverted_(part.flag("invert", false)) {
    // The known patterns match all of a text, so what is left out or kept apart is the same.
    const bool keeps = is_inverted_ ? behavior_ == Behavior::removed || behavior_ == Behavior::isolated
                                    : behavior_ == Behavior::isolated;
    if (keeps) known_ = word_pattern_of(pattern_.regex());
  }
  void apply(Words& words) const override {
    if (known_) return cut_by(words, *known_);
    cut_each(words, [&](const Word& word, std::vector<Word>& out) {
      Cutter cutter(word, behavior_, out);
      std::size_t kept = 0;
      pattern_.for_each_match(word.text, [&](std::size_t begin, std::size_t end) {
        if (begin > kept) cutter.part(kept, begin, is_inverted_);
        cutter.part(begin, end, !is_inverted_);
        kept = end;
      });
      if (kept < word.text.size()) cutter.part(kept, word.text.size(), is_inverted_);
      cutter.finish();
    });
  }

 private:
  TextPattern pattern_;
  Behavior behavior_;
  bool is_inverted_;
  std::optional<WordPattern> known_;
};

// Blanks go; runs of \w and of what is neither are words.
class Whitespace final : public PreTokenizer {
 public:
  void apply(Words& words) const override {
    cut_each(words, [](const Word& word, std::vector<Word>& out) {
      enum class Kind : char { blank, letters, other };
      std::size_t begin = 0;
      Kind last = Kind::blank;
      for (std::size_t place = 0; place < word.text.size();) {
        const Character character = character_at(word.text, place);
        const Kind kind = is_word(character.code)    ? Kind::letters
                          : is_blank(character.code) ? Kind::blank
                                                     : Kind::other;
        if (kind != last) {
          if (last != Kind::blank) out.push_back({word.text.substr(begin, place - begin), word.is_first && begin == 0});
          begin = place;
          last = kind;
        }
        place += character.bytes;
      }
      if (last != Kind::blank) out.push_back({word.text.substr(begin), word.is_first && begin == 0});
    });
  }
};

class WhitespaceSplit final : public PreTokenizer {
 public:
  void apply(Words& words) const override { cut_at(words, Behavior::removed, is_blank); }
};

class BertPreTokenizer final : public PreTokenizer {
 public:
  void apply(Words& words) const override {
    cut_each(words, [](const Word& word, std::vector<Word>& out) {
      std::size_t begin = 0;
      const auto put = [&](std::size_t end) {
        if (end > begin) out.push_back({word.text.substr(begin, end - begin), word.is_first && begin == 0});
      };
      for (std::size_t place = 0; place < word.text.size();) {
        const Character character = character_at(word.text, place);
        const std::size_t next = place + character.bytes;
        if (const bool blank = is_blank(character.code); blank || is_punctuation(character.code)) {
          put(place);
          begin = place;
          if (!blank) put(next);
          begin = next;
        }
        place = next;
      }
      put(word.text.size());
    });
  }
};

class Punctuation final : public PreTokenizer {
 public:
  explicit Punctuation(const JsonPart& part) : behavior_(behavior_of(part, "Isolated")) {}
  void apply(Words& words) const override { cut_at(words, behavior_, is_punctuation); }

 private:
  Behavior behavior_;
};

class Digits final : public PreTokenizer {
 public:
  explicit Digits(const JsonPart& part)
      : behavior_(part.flag("individual_digits", false) ? Behavior::isolated : Behavior::contiguous) {}
  void apply(Words& words) const override {
    cut_at(words, behavior_, [](char32_t code) { return class_of(code) == CharacterClass::number; });
  }

 private:
  Behavior behavior_;
};

class Delimiter final : public PreTokenizer {
 public:
  explicit Delimiter(const JsonPart& part) {
    const std::string& text = part.text("delimiter");
    if (text.empty() || bytes_of_first(text[0]) != text.size())
      part.fail("delimiter", "one character", part.find("delimiter"));
    code_ = character_at(text, 0).code;
  }
  void apply(Words& words) const override {
    cut_at(words, Behavior::removed, [&](char32_t code) { return code == code_; });
  }

 private:
  char32_t code_;
};

}  // namespace

PreTokenizers::PreTokenizers(const JsonPart& part) { add(part); }

void PreTokenizers::add(const JsonPart& part) {
  const std::string type = part.type();
  const auto step = [&](auto made) { steps_.push_back(std::move(made)); };
  if (type == "Sequence") {
    std::size_t i = 0;
    for (const nlohmann::json& member : part.array("pretokenizers"))
      add(JsonPart(member, part.path(), part.place_of("pretokenizers") + "[" + std::to_string(i++) + "]"));
  } else if (type == "ByteLevel") {
    step(std::make_unique<ByteLevelPreTokenizer>(part));
  } else if (type == "Metaspace") {
    step(std::make_unique<MetaspacePreTokenizer>(part));
  } else if (type == "Split") {
    step(std::make_unique<Split>(part));
  } else if (type == "Whitespace") {
    step(std::make_unique<Whitespace>());
  } else if (type == "WhitespaceSplit") {
    step(std::make_unique<WhitespaceSplit>());
  } else if (type == "BertPreTokenizer") {
    step(std::make_unique<BertPreTokenizer>());
  } else if (type == "Punctuation") {
    step(std::make_unique<Punctuation>(part));
  } else if (type == "Digits") {
    step(std::make_unique<Digits>(part));
  } else if (type == "CharDelimiterSplit") {
    step(std::make_unique<Delimiter>(part));
  } else {
    part.fail_type(
        "ByteLevel, Metaspace, Split, Whitespace, WhitespaceSplit, BertPreTokenizer, Punctuation, Digits, "
        "CharDelimiterSplit or Sequence");
  }
}

void PreTokenizers::apply(Words& words) const {
  // A file may have any number of steps that make a text longer.
  constexpr std::size_t kFewSteps = 3, kMostGrowth = 64, kMostGrowthRoom = 1 << 20;
  const auto bytes = [&] {
    std::size_t sum = 0;
    for (const Word& word : words.list) sum += word.text.size();
    return sum;
  };
  const std::size_t before = steps_.size() > kFewSteps ? bytes() : 0;
  for (const auto& step : steps_) {
    step->apply(words);
    if (steps_.size() > kFewSteps && bytes() > kMostGrowth * before + kMostGrowthRoom)
      throw Error("tokenizer: the file's pre-tokenizers make more than 64 bytes of one");
  }
}

}  // namespace samebytes::detail

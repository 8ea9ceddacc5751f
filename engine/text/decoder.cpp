#include "text/decoder.h"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "text/byte_characters.h"
#include "text/normalizer.h"
#include "text/utf8.h"

namespace samebytes::detail {
namespace {

constexpr std::string_view kNoByte = "\xef\xbf\xbd";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  if (from.empty()) return;
  std::string result;
  std::size_t kept = 0, place = 0;
  while ((place = text.find(from, kept)) != std::string::npos) {
    result.append(text, kept, place - kept).append(to);
    kept = place + from.size();
  }
  if (kept > 0) text = result.append(text, kept);
}

std::string joined(const std::vector<std::string>& tokens) {
  std::string text;
  for (const std::string& token : tokens) text += token;
  return text;
}

// WordPiece's and CTC's idea of how English is written.
void clean_up(std::string& text) {
  constexpr std::pair<std::string_view, std::string_view> kChanges[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kChanges) replace_all(text, from, to);
}

class ByteLevelDecoder final : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::string bytes, buffer;
    for (const std::string& token : tokens) bytes += bytes_of_token(token).value_or(token);
    tokens.assign(1, std::string(repaired_utf8(bytes, buffer)));
  }
};

class WordPieceDecoder final : public Decoder {
 public:
  explicit WordPieceDecoder(const JsonPart& part)
      : prefix_(part.text("prefix", "##")), cleans_(part.flag("cleanup", true)) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0) {
        if (tokens[i].starts_with(prefix_))
          tokens[i].erase(0, prefix_.size());
        else
          tokens[i].insert(0, 1, ' ');
      }
      if (cleans_) clean_up(tokens[i]);
    }
  }

 private:
  std::string prefix_;
  bool cleans_;
};

class MetaspaceDecoder final : public Decoder {
 public:
  explicit MetaspaceDecoder(const JsonPart& part)
      : replacement_(part.text("replacement", "\u2581")),
        drops_first_(part.text("prepend_scheme", part.flag("add_prefix_space", true) ? "always" : "never") != "never") {
  }
  void apply(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      replace_all(tokens[i], replacement_, i == 0 && drops_first_ ? "" : " ");
  }

 private:
  std::string replacement_;
  bool drops_first_;
};

class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(const JsonPart& part) : suffix_(part.text("suffix", "</w>")) {}
  void apply(std::vector<std::string>& tokens) const override {
    for (std::size_t i = 0; i < tokens.size(); ++i) replace_all(tokens[i], suffix_, i + 1 < tokens.size() ? " " : "");
  }

 private:
  std::string suffix_;
};

class ByteFallbackDecoder final : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> result;
    std::string bytes, buffer;
    const auto flush = [&] {
      if (bytes.empty()) return;
      // Bytes that are no text are a character each.
      const bool is_text = repaired_utf8(bytes, buffer).data() == bytes.data();
      if (is_text) result.push_back(bytes);
      for (std::size_t i = 0; !is_text && i < bytes.size(); ++i) result.emplace_back(kNoByte);
      bytes.clear();
    };
    for (std::string& token : tokens) {
      if (const std::optional<char> byte = byte_of(token)) {
        bytes += *byte;
        continue;
      }
      flush();
      result.push_back(std::move(token));
    }
    flush();
    tokens = std::move(result);
  }

 private:
  static std::optional<char> byte_of(std::string_view token) {
    constexpr std::size_t kLength = 6;
    if (token.size() != kLength || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
    unsigned value = 0;
    const char* end = token.data() + kLength - 1;
    if (std::from_chars(token.data() + 3, end, value, 16).ptr != end) return std::nullopt;
    return static_cast<char>(value);
  }
};

class FuseDecoder final : public Decoder {
 public:
  void apply(std::vector<std::string>& tokens) const override { tokens.assign(1, joined(tokens)); }
};

class StripDecoder final : public Decoder {
 public:
  explicit StripDecoder(const JsonPart& part)
      : content_(part.text("content")),
        start_(part.integer("start", 0, 1 << 20)),
        stop_(part.integer("stop", 0, 1 << 20)) {
    if (content_.empty() || bytes_of_first(content_[0]) != content_.size())
      part.fail("content", "one character", part.find("content"));
  }
  void apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      for (std::int64_t i = 0; i < start_ && token.starts_with(content_); ++i) token.erase(0, content_.size());
      for (std::int64_t i = 0; i < stop_ && token.ends_with(content_); ++i)
        token.resize(token.size() - content_.size());
    }
  }

 private:
  std::string content_;
  std::int64_t start_, stop_;
};

class ReplaceDecoder final : public Decoder {
 public:
  explicit ReplaceDecoder(const JsonPart& part) : replacement_(part) {}
  void apply(std::vector<std::string>& tokens) const override {
    std::string buffer;
    for (std::string& token : tokens) token = std::string(replacement_.apply(token, buffer));
  }

 private:
  Replacement replacement_;
};

class CtcDecoder final : public Decoder {
 public:
  explicit CtcDecoder(const JsonPart& part)
      : pad_(part.text("pad_token", "<pad>")),
        delimiter_(part.text("word_delimiter_token", "|")),
        cleans_(part.flag("cleanup", true)) {}
  void apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> result;
    const std::string* last = nullptr;
    for (const std::string& token : tokens) {
      const bool is_again = last != nullptr && *last == token;
      last = &token;
      if (is_again) continue;
      std::string text = token;
      replace_all(text, pad_, "");
      if (cleans_) {
        clean_up(text);
        replace_all(text, delimiter_, " ");
      }
      if (!text.empty()) result.push_back(std::move(text));
    }
    tokens = std::move(result);
  }

 private:
  std::string pad_, delimiter_;
  bool cleans_;
};

}  // namespace

Decoders::Decoders(const JsonPart& part) { add(part); }

void Decoders::add(const JsonPart& part) {
  const std::string type = part.type();
  const auto step = [&](auto made) { steps_.push_back(std::move(made)); };
  if (type == "Sequence") {
    std::size_t i = 0;
    for (const nlohmann::json& member : part.array("decoders"))
      add(JsonPart(member, part.path(), part.place_of("decoders") + "[" + std::to_string(i++) + "]"));
  } else if (type == "ByteLevel") {
    step(std::make_unique<ByteLevelDecoder>());
  } else if (type == "WordPiece") {
    step(std::make_unique<WordPieceDecoder>(part));
  } else if (type == "Metaspace") {
    step(std::make_unique<MetaspaceDecoder>(part));
  } else if (type == "BPEDecoder") {
    step(std::make_unique<BpeDecoder>(part));
  } else if (type == "ByteFallback") {
    step(std::make_unique<ByteFallbackDecoder>());
  } else if (type == "Fuse") {
    step(std::make_unique<FuseDecoder>());
  } else if (type == "Strip") {
    step(std::make_unique<StripDecoder>(part));
  } else if (type == "Replace") {
    step(std::make_unique<ReplaceDecoder>(part));
  } else if (type == "CTC") {
    step(std::make_unique<CtcDecoder>(part));
  } else {
    part.fail_type("ByteLevel, WordPiece, Metaspace, BPEDecoder, ByteFallback, Fuse, Strip, Replace, CTC or Sequence");
  }
}

std::string Decoders::text(std::vector<std::string> tokens) const {
  if (steps_.empty()) {
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) (text += i > 0 ? " " : "") += tokens[i];
    return text;
  }
  for (const auto& step : steps_) step->apply(tokens);
  return joined(tokens);
}

}  // namespace samebytes::detail

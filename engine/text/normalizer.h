// The first step of a tokenizer: from a text to the text that is cut into words.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/json_part.h"

namespace samebytes::detail {

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // The text itself, or `buffer` with another one. Both in UTF-8. Throws Error for one that grows out of hand.
  virtual std::string_view apply(std::string_view text, std::string& buffer) const = 0;
};

class Normalizers {
 public:
  Normalizers() = default;
  // Of "normalizer"; a sequence becomes its members.
  explicit Normalizers(const JsonPart& part);
  struct Result {
    std::string_view text;  // the text itself, or one of the buffers
    bool has_front = true;  // false where the text's first characters were stripped
  };
  Result apply(std::string_view text, std::string& first, std::string& second) const;

 private:
  void add(const JsonPart& part);
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

// What replaces all places of a pattern, {"String": ...} or {"Regex": ...}, by a text; decoders have it too.
class Replacement {
 public:
  explicit Replacement(const JsonPart& part);
  ~Replacement();
  std::string_view apply(std::string_view text, std::string& buffer) const;

 private:
  struct Pattern;
  std::unique_ptr<Pattern> pattern_;
  std::string content_;
};

// The precompiled map of SentencePiece, in base64.
std::unique_ptr<Normalizer> make_precompiled(const JsonPart& part);

}  // namespace samebytes::detail

// What `train gpt` leaves in its file and `generate` reads there: the form of the model and its tokens.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "samebytes/data.h"
#include "samebytes/io.h"
#include "samebytes/models.h"

namespace samebytes::workloads {

// Text as token ids, by either tokenizer.
class Tokens {
 public:
  static Tokens characters(std::string_view text);            // those of this text
  static Tokens pairs(const std::string& folder);             // vocab.json and merges.txt
  static Tokens characters_of(const io::Metadata& metadata);  // throws OptionError where the file has none

  std::int64_t size() const;
  std::vector<std::int32_t> encode(std::string_view text) const;
  std::string decode(std::span<const std::int32_t> ids) const;
  // Of characters: all of them, in the order of their ids. Empty for byte pairs.
  std::string all_characters() const;

 private:
  std::optional<data::CharTokenizer> characters_;
  std::optional<data::BpeTokenizer> pairs_;
};

// {"model", "gpt"}, sizes, and the characters, for io::save.
io::Metadata words_of(const models::GptOptions& form, const Tokens& tokens);
// The form that words_of wrote, or the size that the published tensors have; throws OptionError for another file.
models::GptOptions form_of(const io::TensorFile& file);

}  // namespace samebytes::workloads

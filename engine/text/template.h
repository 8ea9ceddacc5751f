// What a tokenizer puts around its texts: "post_processor" of tokenizer.json as lists of tokens and texts.
#pragma once

#include <cstdint>
#include <vector>

#include "text/json_part.h"

namespace samebytes::detail {

struct TemplatePart {
  int text = -1;                  // 0: the first text, 1: the second one; -1: the tokens
  std::vector<std::int32_t> ids;  // of special tokens
  std::int32_t type = 0;
};

class Template {
 public:
  Template() = default;
  explicit Template(const JsonPart& part) { read(part, false); }

  // The parts for one text or two; without special tokens the types are those that they have with them, but for BERT's.
  const std::vector<TemplatePart>& parts(bool is_pair) const { return is_pair ? pair_ : single_; }
  // The types where no special token is wanted.
  std::int32_t plain_type(int text) const { return plain_types_[text]; }
  bool has_plain_types() const { return has_plain_types_; }

 private:
  void read(const JsonPart& part, bool is_member);
  void read_template(const JsonPart& part);
  std::vector<TemplatePart> read_list(const JsonPart& part, const char* key) const;

  std::vector<TemplatePart> single_{{0, {}, 0}}, pair_{{0, {}, 0}, {1, {}, 1}};
  std::int32_t plain_types_[2] = {0, 1};
  bool has_plain_types_ = false, is_read_ = false;
};

}  // namespace samebytes::detail

// The second step of a tokenizer: cuts a text into words.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/json_part.h"

namespace samebytes::detail {

struct Word {
  std::string_view text;
  bool is_first = false;  // it begins where the whole text began
};

// Words, and the memory of those that a step wrote anew.
struct Words {
  std::vector<Word> list, next;
  std::deque<std::string> texts;
  std::vector<std::string_view> views;  // for scanners
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  virtual void apply(Words& words) const = 0;
  // ByteLevel's last act is to write bytes as characters, which a model of bytes does not want.
  virtual bool is_byte_level() const { return false; }
  virtual void leave_bytes() {}
};

class PreTokenizers {
 public:
  PreTokenizers() = default;
  // Of "pre_tokenizer"; a sequence becomes its members.
  explicit PreTokenizers(const JsonPart& part);
  void apply(Words& words) const;
  bool is_byte_level() const { return !steps_.empty() && steps_.back()->is_byte_level(); }
  void leave_bytes() { steps_.back()->leave_bytes(); }

 private:
  void add(const JsonPart& part);
  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

}  // namespace samebytes::detail

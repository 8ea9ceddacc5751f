// The last step back: from tokens to a text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "text/json_part.h"

namespace samebytes::detail {

class Decoder {
 public:
  virtual ~Decoder() = default;
  virtual void apply(std::vector<std::string>& tokens) const = 0;
};

class Decoders {
 public:
  Decoders() = default;
  explicit Decoders(const JsonPart& part);  // of "decoder"; a sequence becomes its members
  // Without a decoder tokens have a blank between.
  std::string text(std::vector<std::string> tokens) const;

 private:
  void add(const JsonPart& part);
  std::vector<std::unique_ptr<Decoder>> steps_;
};

}  // namespace samebytes::detail

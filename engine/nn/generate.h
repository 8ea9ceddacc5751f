// The loop of generate() for any decoder: checks, draws, prompts in chunks, and a cache that starts again from the last
// half of a full context. GeneratedText is one text of it, so that several can take turns.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "samebytes/models.h"
#include "samebytes/nn/module.h"

namespace samebytes::models {

struct Generator {
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;        // most tokens of the cache
  std::int64_t turning_point = 0;  // a text that becomes longer is read anew (Pretrained); 0: none
  // Whether a text of this many tokens may be read in parts; unset: always.
  std::function<bool(std::int64_t length)> reads_in_parts = {};
  std::function<Array(const Array& ids)> next;        // ids [1, T] behind the cache -> logits of the last one
  std::function<void()> reset;                        // empties the cache
  std::function<bool(std::int32_t id)> is_last = {};  // ends the text behind this token
};

// The module in evaluation mode for a block.
class EvaluationMode {
 public:
  explicit EvaluationMode(nn::Module& module) : module_(module), before_(module.is_training()) { module_.eval(); }
  ~EvaluationMode() {
    if (before_) module_.train();
  }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  nn::Module& module_;
  bool before_;
};

class GeneratedText {
 public:
  // Throws ArgumentError as generate() does. The generator must outlive it.
  GeneratedText(const Generator& generator, std::span<const std::int32_t> prompt, GenerateOptions options);

  bool is_done() const { return is_done_; }
  // Tokens that the model has not read.
  std::int64_t left() const { return static_cast<std::int64_t>(ids_.size() - read_); }
  // What the model reads next: valid until the next call. May empty the cache first.
  std::span<const std::int32_t> next();
  // Whether next() is one token, and the cache goes on.
  bool has_one_left() const {
    const std::int64_t turn = generator_.turning_point;
    return ids_.size() - read_ == 1 && length_ < generator_.context && (length_ == 0 || length_ != turn);
  }
  // The model has read what next() gave. Draws a token from the last one's logits where no part is left to be read;
  // wants_logits() says so before.
  bool wants_logits() const { return read_ == ids_.size(); }
  void draw(std::vector<double> logits);
  const std::vector<std::int32_t>& ids() const { return ids_; }

 private:
  const Generator& generator_;
  GenerateOptions options_;
  std::vector<std::int32_t> ids_;
  std::size_t read_ = 0;     // tokens that the model has read, or never will
  std::int64_t length_ = 0;  // of the cache
  std::int64_t step_ = 0;
  bool is_done_ = false;
};

// Runs without gradients; the module is in evaluation mode meanwhile.
std::vector<std::int32_t> generate_by(const Generator& generator, nn::Module& module,
                                      std::span<const std::int32_t> prompt, const GenerateOptions& options);

}  // namespace samebytes::models

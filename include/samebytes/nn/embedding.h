// Embedding: a table with one learned vector for each id.
#pragma once

#include <optional>

#include "samebytes/nn/module.h"

namespace samebytes::nn {

struct EmbeddingOptions {
  std::int64_t in = 0;   // V: ids are 0 ... V - 1
  std::int64_t out = 0;  // D: the length of a vector
  std::optional<std::int32_t> padding_index{};
  Dtype dtype = f32;
};

// ids i32, i64 or u8 [...] -> [..., D]. weight [V, D] starts normal with mean 0 and deviation 1, as in PyTorch; the row
// `padding_index` starts as zeros and takes no gradient. An id outside [0, V) gives NaN. Throws ArgumentError for sizes
// below 1 and a padding_index outside [0, V).
class Embedding final : public Module {
 public:
  explicit Embedding(const EmbeddingOptions& options);
  Array forward(const Array& ids) override;
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "Embedding"; }
  std::string describe() const override;

  const EmbeddingOptions& options() const { return options_; }
  const Array& weight() const { return weight_; }

 private:
  EmbeddingOptions options_;
  Parameter weight_;
};

}  // namespace samebytes::nn

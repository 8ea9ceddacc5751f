#include "samebytes/nn/embedding.h"

#include "nn/initial.h"
#include "samebytes/ops.h"
#include "samebytes/ops/indexing.h"

namespace samebytes::nn {

Embedding::Embedding(const EmbeddingOptions& options) : options_(options) {
  require_positive("Embedding", "in", options.in);
  require_positive("Embedding", "out", options.out);
  require_real("Embedding", options.dtype);
  Array initial = initial_normal({options.in, options.out}, 1.0, options.dtype);
  if (options.padding_index) {
    const std::int64_t row = *options.padding_index;
    if (row < 0 || row >= options.in)
      throw ArgumentError("Embedding: padding_index must be in [0, " + std::to_string(options.in) + "), got " +
                          std::to_string(row));
    const Array ids = reshape(arange(0, static_cast<double>(options.in), 1, i32), {options.in, 1});
    initial = where(equal(ids, full({}, static_cast<double>(row), i32)), zeros({}, options.dtype), initial);
  }
  weight_ = Parameter(cell(initial, describe() + ".weight"));
}

Array Embedding::forward(const Array& ids) { return embedding(ids, weight_, options_.padding_index); }

void Embedding::visit(Visitor& visitor) { visitor.parameter("weight", weight_); }

std::string Embedding::describe() const {
  return "Embedding(" + std::to_string(options_.in) + ", " + std::to_string(options_.out) +
         (options_.padding_index ? ", padding_index=" + std::to_string(*options_.padding_index) : "") + ")";
}

}  // namespace samebytes::nn

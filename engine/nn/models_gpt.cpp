#include <cmath>

#include "nn/projection.h"
#include "samebytes/models.h"
#include "samebytes/ops.h"
#include "samebytes/ops/indexing.h"

namespace samebytes::models {
namespace {

constexpr double kDeviation = 0.02;

const GptOptions& checked(const GptOptions& options) {
  nn::require_positive("Gpt", "vocabulary", options.vocabulary);
  nn::require_positive("Gpt", "context", options.context);
  nn::require_positive("Gpt", "layers", options.layers);
  nn::require_dropout("Gpt", options.dropout);
  return options;
}

}  // namespace

GptOptions gpt_options(GptSize size) {
  switch (size) {
    case GptSize::nano:
      return {.vocabulary = 256, .context = 64, .layers = 4, .heads = 4, .width = 128, .dropout = 0.0};
    case GptSize::small: return {};
    case GptSize::medium: return {.layers = 24, .heads = 16, .width = 1024};
  }
  throw ArgumentError("gpt_options: no such size");
}

Gpt gpt(const GptOptions& options) { return Gpt(options); }
Gpt gpt(GptSize size) { return Gpt(gpt_options(size)); }

Gpt::Gpt(const GptOptions& options)
    : options_(checked(options)), norm_({.features = options.width, .dtype = options.dtype}) {
  const auto& o = options_;
  tokens_ = nn::weight_cell({o.vocabulary, o.width}, kDeviation, 0, o.dtype, describe() + ".wte");
  positions_ = nn::weight_cell({o.context, o.width}, kDeviation, 0, o.dtype, describe() + ".wpe");
  blocks_.reserve(static_cast<std::size_t>(o.layers));
  for (std::int64_t i = 0; i < o.layers; ++i)
    blocks_.emplace_back(
        nn::TransformerBlockOptions{.width = o.width,
                                    .heads = o.heads,
                                    .dropout = o.dropout,
                                    .deviation = kDeviation,
                                    .result_deviation = kDeviation / std::sqrt(2.0 * static_cast<double>(o.layers)),
                                    .names = nn::TransformerNames::gpt2,
                                    .dtype = o.dtype});
}

// Positions are a view in training; with a cache they are looked up by index, so that a different offset reuses the
// plan.
Array Gpt::embed(const Array& ids, std::int64_t offset, bool by_number) const {
  const Shape& shape = ids.shape();
  if (shape.rank() != 2 || offset + shape[1] > options_.context || shape[1] < 1)
    throw ArgumentError("Gpt: ids must be [N, T] with 1 to " + std::to_string(options_.context - offset) +
                        " tokens, they are " + shape.to_string());
  const Array where =
      by_number
          ? embedding(arange(static_cast<double>(offset), static_cast<double>(offset + shape[1]), 1, i32), positions_)
          : slice(positions_, 0, 0, shape[1]);
  const Array known = embedding(ids, tokens_);
  const Array x =
      known + astype(where, known.dtype());  // 16 bits under Autocast, where the positions are a view of f32
  return is_training() && options_.dropout > 0 ? dropout(x, options_.dropout) : x;
}

Array Gpt::hidden(const Array& ids) {
  Array x = embed(ids, 0, false);
  run_blocks(blocks_.size(), [&](std::size_t i) { x = blocks_[i](x); });
  return norm_(x);
}

Array Gpt::forward(const Array& ids) { return linear(hidden(ids), tokens_); }

Array Gpt::loss(const Input& ids, const Input& target, const LinearCrossEntropyOptions& options) {
  return call([&] { return linear_cross_entropy(hidden(ids), tokens_, target, options); });
}

Array Gpt::forward(const Input& ids, GptCache& cache) {
  if (cache.size() != blocks_.size())
    throw ArgumentError("Gpt: expected one cache per layer, got " + std::to_string(cache.size()) + " for " +
                        std::to_string(blocks_.size()) + " layers");
  Array x = embed(ids, cache[0].length(), true);
  for (std::size_t i = 0; i < blocks_.size(); ++i) x = blocks_[i].forward(x, cache[i]);
  const std::int64_t length = x.shape()[1];
  return linear(norm_(slice(x, 1, length - 1, length)), tokens_);
}

GptCache Gpt::make_cache(std::int64_t batch) const {
  GptCache cache;
  for (const nn::TransformerBlock& block : blocks_) cache.push_back(block.make_cache(batch, options_.context));
  return cache;
}

void Gpt::visit(nn::Visitor& visitor) {
  visitor.parameter("wte.weight", tokens_);
  visitor.parameter("wpe.weight", positions_);
  for (std::size_t i = 0; i < blocks_.size(); ++i) visitor.child("h." + std::to_string(i), blocks_[i]);
  visitor.child("ln_f", norm_);
}

std::string Gpt::describe() const {
  const auto& o = options_;
  return "Gpt(" + std::to_string(o.vocabulary) + ", context=" + std::to_string(o.context) +
         ", layers=" + std::to_string(o.layers) + ", heads=" + std::to_string(o.heads) +
         ", width=" + std::to_string(o.width) + ")";
}

}  // namespace samebytes::models

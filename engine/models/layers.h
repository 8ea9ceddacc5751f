// The layers of published transformers: projections over weights as they lie in files, norms, attention with all that
// the families add to it, and the networks behind it. Each takes its parameters from its place in the weights.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/rope.h"
#include "samebytes/models/config.h"
#include "samebytes/models/pretrained.h"
#include "samebytes/models/weights.h"
#include "samebytes/nn/attention.h"
#include "samebytes/nn/module.h"
#include "samebytes/ops/attention.h"

namespace samebytes::models {

// A 16-bit array as f32; others as they are.
Array widened(const Array& a);
// x weight' + bias in f32, in an Autocast scope in its type; with a 16-bit weight the product is computed in its type,
// so that no wider copy is made.
Array project(const Array& x, const Array& weight, const Array& bias = {}, const nn::Adapter& adapter = {});

// An activation by its name in transformers. Throws IoError for one that is not known.
enum class Activation : std::uint8_t { silu, gelu, gelu_tanh, relu, tanh };
Activation activation_of(const Config& config, const std::string& key, const std::string& fallback);
Array activate(const Array& x, Activation activation);

struct ProjectionOptions {
  std::int64_t in = 0, out = 0;
  bool bias = true;
  bool transposed = false;  // [in, out] in the file, as GPT-2's Conv1D
  bool is_head = false;     // over the vocabulary or labels: quantised only where the file has blocks
};
class Projection final : public nn::Module {
 public:
  Projection(const Weights& at, const ProjectionOptions& options);
  Array forward(const Array& x) override;
  // The same before it is f32, where nothing else is added: 16 bits with such a weight.
  Array narrow(const Array& x);
  void visit(nn::Visitor& visitor) override;
  std::string kind() const override { return "Projection"; }
  const Array& weight() const { return matrix_.weight; }
  bool has_adapter() const { return adapter_ != nullptr; }

 private:
  nn::Layout layout_;
  Matrix matrix_;
  nn::Parameter bias_;
  nn::Adapter adapter_;
};

// layer: with weight and bias; rms: with weight; rms_plus_one: times weight + 1, as Gemma stores it.
enum class NormKind : std::uint8_t { layer, rms, rms_plus_one };
class Norm final : public nn::Module {
 public:
  Norm(const Weights& at, std::int64_t features, NormKind kind, double eps);
  Array forward(const Array& x) override;
  void visit(nn::Visitor& visitor) override;
  std::string kind() const override { return "Norm"; }

 private:
  NormKind kind_;
  float eps_;
  nn::Parameter weight_, bias_;
};

// Rows of a table [V, C] by number.
class Table final : public nn::Module {
 public:
  Table(const Weights& at, std::int64_t rows, std::int64_t width);
  Array forward(const Array& ids) override;
  void visit(nn::Visitor& visitor) override;
  std::string kind() const override { return "Table"; }
  const Array& weight() const { return matrix_.weight; }  // an empty handle where it is quantised
  Array logits_of(const Array& hidden) const;             // the product with the rows

 private:
  Matrix matrix_;
};

// Which tokens count (ModelInput), in one pass through a network.
struct Sight {
  Array lengths{}, mask{};
  Array texts{};                                               // bool [N, 1, T, T]: tokens of one text
  mutable std::vector<std::pair<std::int64_t, Array>> near{};  // the masks of windows that layers have made so far
};

struct SelfAttentionOptions {
  std::int64_t width = 0, heads = 0, kv_heads = 0, depth = 0;
  bool bias = false, result_bias = false;
  std::string query = "q_proj", key = "k_proj", value = "v_proj", result = "o_proj";
  std::string fused = {};  // one projection for all three, instead of query, key and value
  bool transposed = false;
  std::optional<NormKind> head_norm = {};  // of each head of queries and keys, before they turn
  double eps = 1e-6;
  std::shared_ptr<const Rope> rope = {};
  double scale = 0;         // of the scores; 0: 1 / sqrt(depth)
  double soft_cap = 0;      // 0: none
  std::int64_t window = 0;  // a token sees this many, itself and those before it; 0: all
  bool causal = false;
};
// Heads, depth and widths checked against each other. Throws IoError.
SelfAttentionOptions self_attention_of(const Config& config, const char* heads, const char* width);

class SelfAttention final : public nn::Module {
 public:
  SelfAttention(const Weights& at, const SelfAttentionOptions& options);
  using Module::forward;
  // x [N, T, C]; with a cache its tokens come before those of x.
  Array forward(const Array& x, const Sight& sight, nn::KeyValueCache* cache = nullptr);
  // x [1, T, C]: the next tokens of N texts, counts[i] of text i, each behind its own cache.
  Array forward_texts(const Array& x, std::span<const std::int64_t> counts, std::span<const Sight> sights,
                      std::span<nn::KeyValueCache* const> caches);
  void visit(nn::Visitor& visitor) override;
  std::string kind() const override { return "SelfAttention"; }
  nn::KeyValueCache make_cache(std::int64_t batch, std::int64_t capacity) const;

 private:
  struct Heads {
    Array q, k, v;  // [N, T, heads, D]
  };
  Heads heads_of(const Array& x);
  Array attend(const Heads& heads, const Sight& sight, nn::KeyValueCache* cache);  // [N, T, H D]
  Array turned(const Array& x, std::int64_t offset) const;
  SelfAttentionOptions options_;
  std::optional<Projection> fused_, query_, key_, value_;
  Projection result_;
  std::optional<Norm> query_norm_, key_norm_;
};

struct FeedForwardOptions {
  std::int64_t width = 0, hidden = 0;
  Activation activation = Activation::silu;
  bool bias = false;
  std::string up = "up_proj", down = "down_proj";
  std::string gate = {};  // a second projection whose activation is multiplied in (SwiGLU, GeGLU); empty: none
  bool fused = false;     // gate and up in one projection, named `up`
  bool transposed = false;
};
class FeedForward final : public nn::Module {
 public:
  FeedForward(const Weights& at, const FeedForwardOptions& options);
  Array forward(const Array& x) override;
  void visit(nn::Visitor& visitor) override;
  std::string kind() const override { return "FeedForward"; }

 private:
  FeedForwardOptions options_;
  Projection up_, down_;
  std::optional<Projection> gate_;
};

// "model" where names of the files begin with it, "" where they do not: `probe` is a name behind it. Without files, by
// the architecture.
std::string prefix_of(const Config& config, const Weights& weights, const std::string& prefix,
                      const std::string& probe);
// "LlamaForCausalLM" -> "CausalLM", "BertModel" -> "Model"; "Model" where the config names none.
std::string head_of(const Config& config);
// Labels of a classification head: rows of its weight, or by the config without files.
std::int64_t labels_of(const Config& config, const Weights& weights, const std::string& head);
// Throws ArgumentError unless x is i32, i64 or u8 [N, T] with 1 to `most` tokens.
constexpr std::int64_t kAnyLength = std::int64_t{1} << 62;
void require_ids(const Config& config, const Array& x, std::int64_t most = kAnyLength);

// Throws ArgumentError unless there is a cache for each layer, and for each of the texts in ids [1, T].
void require_caches(const Pretrained& model, std::span<DecoderCache* const> caches, std::size_t layers);
void require_texts(const Pretrained& model, const Array& ids, std::span<const std::int64_t> counts,
                   std::span<DecoderCache* const> caches, std::size_t layers);
// x [1, T, C] of texts one behind the other -> the last token of each, [N, 1, C].
Array last_of_each(const Array& x, std::span<const std::int64_t> counts);
// Those of one layer.
std::vector<nn::KeyValueCache*> caches_of(std::span<DecoderCache* const> caches, std::size_t layer);

}  // namespace samebytes::models

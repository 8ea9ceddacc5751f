// Published models from a folder of Hugging Face: config.json and safetensors become a network whose weights lie in the
// mapped files and whose parameters have the files' names. Built in: Llama 2 and 3, TinyLlama, Mistral, Qwen2 and 2.5,
// Qwen3, SmolLM2 and 3, Phi-3, Gemma 2 and 3 (text), GPT-2, BERT and MiniLM, RoBERTa, DistilBERT, ViT, DeiT, ResNet;
// another one is a file that calls add_architecture(). docs/language_models.md compares them with transformers.
//   auto model = models::from_pretrained("Qwen2.5-0.5B");
//   Array logits = (*model)(ids);                            // [N, T, V]
//   auto text = models::generate(*model, prompt, {.tokens = 50, .temperature = 0});
// Letters: N batch, T tokens, C width, V vocabulary.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "samebytes/models.h"
#include "samebytes/models/config.h"
#include "samebytes/models/weights.h"
#include "samebytes/nn/attention.h"

namespace samebytes::models {

struct ModelInput {
  Array x;          // token ids, i32 or i64 [N, T]; or images, f32 [N, H, W, channels], normalised as the model expects
  Array lengths{};  // i32 or i64 [N]: tokens from there on are padding
  Array mask{};     // bool [N, T]: true where a token counts, for padding on any side; slower than lengths
  Array types{};    // i32 or i64 [N, T]: segments (token_type_ids); all 0 if it is not given
  // i32 or i64 [N, T], decoders with rotary positions: a token sees those of its own number alone, so that several
  // texts in one row compute what each does by itself (data/text_samples.h packs them). The scores of a layer are then
  // stored.
  Array texts{};
};

// Handles are empty for what a model does not have.
struct ModelOutput {
  Array hidden{};  // the last hidden state, [N, T, C]; of a ResNet [N, H, W, C]
  Array pooled{};  // what the model's own pooler makes of it, [N, C]
  Array logits{};  // of the head: [N, T, V], [N, T, labels] or [N, labels]
};

using DecoderCache = std::vector<nn::KeyValueCache>;  // one per layer

// A network of the registry. All activations are f32: products with 16-bit weights are computed in their type.
class Pretrained : public nn::Module {
 public:
  const Config& config() const { return config_; }
  const WeightReport& weights() const { return report_; }

  ModelOutput run(const ModelInput& input);
  // The logits, or the last hidden state of a model without a head.
  Array forward(const Array& x) override;
  Array forward_all(std::span<const Array> inputs) override;  // (x), (x, lengths) or (x, lengths, types)

  // Decoders: the next tokens [N, T] behind those of the cache, and the logits of the last one, [N, 1, V]. Throws
  // ArgumentError for other models.
  virtual bool is_decoder() const { return false; }
  virtual Array forward(const Input& ids, DecoderCache& cache);
  virtual DecoderCache make_cache(std::int64_t batch, std::int64_t capacity) const;
  // The next tokens of N texts, one behind the other in ids [1, T], counts[i] of text i, each behind a cache of its own
  // (of batch 1), and the logits of the last one of each, [N, 1, V]: the weights are read once for all of them.
  // models/text_batch.h uses it.
  virtual Array forward_texts(const Input& ids, std::span<const std::int64_t> counts,
                              std::span<DecoderCache* const> caches);
  // Whether a text of this many tokens gives the same logits where it is read in parts.
  virtual bool reads_in_parts(std::int64_t /*length*/) const { return true; }
  // The length behind which all positions turn otherwise (LongRoPE): generate() reads a text that passes it anew, since
  // the keys in its cache have the turn of a short text. 0: none.
  virtual std::int64_t turning_point() const { return 0; }
  // Most tokens that the model's positions allow for, and the size of its vocabulary; 0 for models of images.
  std::int64_t context() const { return config_.integer("max_position_embeddings", config_.integer("n_positions", 0)); }
  std::int64_t vocabulary() const { return config_.integer("vocab_size", 0); }

  std::string kind() const override { return config_.text("model_type"); }
  // The weight [V, C] whose product with the last hidden state is the logits, as they are; an empty handle where more
  // happens to them. text_loss() then never holds all of them.
  virtual Array vocabulary_weight() const { return {}; }
  // What transformers has before this model's names where its files leave it out ("transformer" for GPT-2's):
  // save_lora() puts it there. Empty for all others.
  virtual std::string adapter_prefix() const { return ""; }

 protected:
  explicit Pretrained(Config config) : config_(std::move(config)) {}
  virtual ModelOutput compute(const ModelInput& input) = 0;

 private:
  friend std::unique_ptr<Pretrained> make_model(const Config& config, const Weights& weights);
  Config config_;
  WeightReport report_;
};

struct PretrainedOptions {
  // The type of matrices: unset, as they lie in the files. f32 for training all weights of a 16-bit model.
  std::optional<Dtype> dtype = {};
  // Of folders: frozen projections in quantised blocks, which are made when the model is opened and dequantised in
  // every product (ops/quantised.h). Embeddings, heads and matrices that GPT-2 stores turned stay as they are.
  Quantise quantise = Quantise::none;
  // Of GGUF files: quantised projections stay as they lie in the mapped file; those whose rows another order of rotary
  // positions moves are copied, block by block. Otherwise they are dequantised when the file is read.
  bool keep_quantised = false;
  // With it: embeddings and heads of decoders, too, which is faster and smaller for generation. text_loss() then makes
  // all logits at once.
  bool keep_tables = false;
};
// The model in evaluation mode; of a GGUF file it is from_gguf(). Throws IoError for damaged files, for values of
// config.json that no such model has, and for tensors that are missing or of another shape; ArgumentError for an
// architecture that is not in the registry.
std::unique_ptr<Pretrained> from_pretrained(const std::string& folder, const PretrainedOptions& options = {});
// The same of a GGUF file with a model of the architectures llama, qwen2, qwen3 or bert whose tensors are F32, F16,
// BF16, Q8_0, Q4_0, Q4_K, Q5_K or Q6_K. Quantised matrices are dequantised when the file is read, in f16 where `dtype`
// is unset, so they take two bytes a value, or stay as they are with `keep_quantised`. Throws ArgumentError for
// `quantise`.
std::unique_ptr<Pretrained> from_gguf(const std::string& path, const PretrainedOptions& options = {});
// The configuration of a folder, or of a GGUF file as a config.json would say it. Throws as these two do.
Config read_config(const std::string& path);
// Not for users: what both make of a configuration and its weights.
std::unique_ptr<Pretrained> make_model(const Config& config, const Weights& weights);
// A new model of a configuration, with random weights (normal, deviation initializer_range), in training mode.
std::unique_ptr<Pretrained> from_config(const Config& config);
// Writes config.json and model.safetensors into the folder, which transformers loads; makes the folder. Weights have
// the types that they have here; adapters are left out unless they are merged. Files are replaced one by one, each as a
// whole. Throws IoError, and ArgumentError for a model with quantised projections, for which the files have no place.
void save_pretrained(const std::string& folder, const Pretrained& model);

// Makes models of these values of config.json's model_type.
struct Architecture {
  std::vector<std::string> model_types;
  std::function<std::unique_ptr<Pretrained>(const Config&, const Weights&)> make;
};
// A later one of the same type replaces the earlier one, built-in ones too.
void add_architecture(Architecture architecture);
std::vector<std::string> architectures();  // the known types, sorted

// The mean loss of the tokens that a decoder predicts from those before them: labels i32 or i64 [N, T] are the tokens
// of the input, or kNoLabel where the loss does not count. Rows of logits are made some at a time where the model
// allows it. Throws ArgumentError for a model that is no decoder and for labels of another shape.
constexpr std::int32_t kNoLabel = -100;
Array text_loss(Pretrained& model, const ModelInput& input, const Array& labels);

// As generate() for a Gpt. Ends behind the config's eos_token_id; goes on behind the model's context where positions
// are rotary. Throws ArgumentError for a model that is no decoder.
std::vector<std::int32_t> generate(Pretrained& model, std::span<const std::int32_t> prompt,
                                   const GenerateOptions& options = {});

// Sentence vectors [N, C]: the mean of the tokens that count, the first token, or the model's own pooler. Normalised to
// length 1 unless told otherwise.
enum class Pooling : std::uint8_t { mean, first, model };
struct SentenceOptions {
  Pooling pooling = Pooling::mean;
  bool normalise = true;
};
Array sentence_vectors(Pretrained& model, const ModelInput& input, const SentenceOptions& options = {});

}  // namespace samebytes::models

#include "samebytes/models/pretrained.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/mutex.h"
#include "io/state.h"
#include "models/answer.h"
#include "models/architectures.h"
#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"
#include "samebytes/io/gguf.h"
#include "samebytes/ops.h"

namespace samebytes::models {
namespace {

class Registry {
 public:
  static Registry& get() {
    static Registry registry;
    return registry;
  }
  void add(Architecture architecture) {
    const auto shared = std::make_shared<const Architecture>(std::move(architecture));
    const detail::MutexLock lock(mutex_);
    for (const std::string& type : shared->model_types) by_type_[type] = shared;
  }
  std::shared_ptr<const Architecture> find(const std::string& type) {
    const detail::MutexLock lock(mutex_);
    const auto found = by_type_.find(type);
    return found == by_type_.end() ? nullptr : found->second;
  }
  std::vector<std::string> types() {
    const detail::MutexLock lock(mutex_);
    std::vector<std::string> types;
    for (const auto& [type, architecture] : by_type_) types.push_back(type);
    return types;
  }

 private:
  Registry() {
    for (const auto& make : {llama, mistral, qwen, smollm3, phi3, gemma, gpt2, bert, distilbert, vit, resnet_v1})
      add(make());
  }
  detail::Mutex mutex_;
  std::map<std::string, std::shared_ptr<const Architecture>> by_type_ SAMEBYTES_GUARDED_BY(mutex_);
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace

void add_architecture(Architecture architecture) {
  if (architecture.model_types.empty() || !architecture.make)
    throw ArgumentError("add_architecture: expected model types and a function that makes a model");
  Registry::get().add(std::move(architecture));
}

std::vector<std::string> architectures() { return Registry::get().types(); }

std::unique_ptr<Pretrained> make_model(const Config& config, const Weights& weights) {
  const std::string type = config.text("model_type");
  const std::shared_ptr<const Architecture> architecture = Registry::get().find(type);
  if (!architecture)
    throw ArgumentError("from_pretrained: " + config.path() + " has model_type '" + type.substr(0, 60) +
                        "', which no architecture has; known are " + joined(architectures()) +
                        "; add_architecture() adds one");
  std::unique_ptr<Pretrained> model = architecture->make(config, weights);
  model->report_ = weights.report();
  return model;
}

std::unique_ptr<Pretrained> from_pretrained(const std::string& folder, const PretrainedOptions& options) {
  if (io::is_gguf(folder)) return from_gguf(folder, options);
  const Config config = Config::read((std::filesystem::path(folder) / "config.json").string());
  std::unique_ptr<Pretrained> model = make_model(config, Weights::open(folder, options.dtype, options.quantise));
  model->eval();
  return model;
}

std::unique_ptr<Pretrained> from_config(const Config& config) {
  return make_model(config, Weights::fresh(config.number("initializer_range", 0.02)));
}

void save_pretrained(const std::string& folder, const Pretrained& model) {
  if (model.weights().quantised_bytes > 0)
    throw ArgumentError("save_pretrained: " + model.kind() +
                        " has quantised projections; open the model without them, load its adapters and merge them");
  std::vector<nn::NamedArray> state = model.state();
  std::erase_if(state, [](const nn::NamedArray& entry) { return entry.is_adapter; });
  std::error_code code;
  std::filesystem::create_directories(folder, code);
  if (code) throw IoError("save_pretrained: " + folder + ": expected a folder: " + code.message(), folder);
  const std::filesystem::path base(folder);
  io::save_state((base / "model.safetensors").string(), state, {{"format", "pt"}});
  Config config = model.config();
  for (const nn::NamedArray& entry : state)
    if (entry.array.shape().rank() >= 2) {
      const Dtype dtype = entry.array.dtype();
      config = config.with(config.has("torch_dtype") ? "torch_dtype" : "dtype", dtype == f16    ? "float16"
                                                                                : dtype == bf16 ? "bfloat16"
                                                                                                : "float32");
      break;
    }
  io::write_file((base / "config.json").string(), std::string_view(config.to_text()));
}

Generator generator_of(Pretrained& model, DecoderCache& cache) {
  std::vector<std::int32_t> ends;
  for (const double id : model.config().numbers("eos_token_id")) ends.push_back(static_cast<std::int32_t>(id));
  return {.vocabulary = model.vocabulary(),
          .context = cache.front().capacity(),
          .turning_point = model.turning_point(),
          .reads_in_parts = [&model](std::int64_t length) { return model.reads_in_parts(length); },
          .next = [&model, &cache](const Array& ids) { return model.forward(ids, cache); },
          .reset =
              [&cache] {
                for (nn::KeyValueCache& layer : cache) layer.reset();
              },
          .is_last = [ends](std::int32_t id) { return std::count(ends.begin(), ends.end(), id) > 0; }};
}

ModelOutput Pretrained::run(const ModelInput& input) {
  ModelOutput output;
  call([&] {
    output = compute(input);
    return output.logits.defined() ? output.logits : output.hidden;
  });
  return output;
}

Array Pretrained::forward(const Array& x) {
  const ModelOutput output = compute({.x = x});
  return output.logits.defined() ? output.logits : output.hidden;
}

Array Pretrained::forward_all(std::span<const Array> inputs) {
  if (inputs.empty() || inputs.size() > 3)
    throw ArgumentError(kind() + ": takes (x), (x, lengths) or (x, lengths, types), got " +
                        std::to_string(inputs.size()) + " inputs");
  ModelInput input{.x = inputs[0]};
  if (inputs.size() > 1) input.lengths = inputs[1];
  if (inputs.size() > 2) input.types = inputs[2];
  const ModelOutput output = compute(input);
  return output.logits.defined() ? output.logits : output.hidden;
}

Array Pretrained::forward(const Input& /*ids*/, DecoderCache& /*cache*/) {
  throw ArgumentError(kind() + ": expected a decoder for a cache, this model is none");
}
Array Pretrained::forward_texts(const Input& /*ids*/, std::span<const std::int64_t> /*counts*/,
                                std::span<DecoderCache* const> /*caches*/) {
  throw ArgumentError(kind() + ": expected a decoder for caches, this model is none");
}
DecoderCache Pretrained::make_cache(std::int64_t /*batch*/, std::int64_t /*capacity*/) const {
  throw ArgumentError(config_.text("model_type") + ": expected a decoder for a cache, this model is none");
}

std::vector<std::int32_t> generate(Pretrained& model, std::span<const std::int32_t> prompt,
                                   const GenerateOptions& options) {
  if (!model.is_decoder()) throw ArgumentError("generate: expected a decoder, got " + model.kind());
  // The cache is as long as the text becomes, in steps, so that texts of about the same length share their plans.
  constexpr std::int64_t kStep = 64;
  const std::int64_t wanted = static_cast<std::int64_t>(prompt.size()) + std::max<std::int64_t>(options.tokens, 0);
  const std::int64_t rounded = (wanted + kStep - 1) / kStep * kStep;
  // Learned positions end; rotary ones go on, as transformers lets them.
  const std::int64_t capacity = model.config().has("n_positions") ? std::min(model.context(), rounded) : rounded;
  DecoderCache cache = model.make_cache(1, std::max<std::int64_t>(capacity, 1));
  return generate_by(generator_of(model, cache), model, prompt, options);
}

Array text_loss(Pretrained& model, const ModelInput& input, const Array& labels) {
  if (!model.is_decoder()) throw ArgumentError("text_loss: " + model.kind() + " is no decoder");
  if (!labels.defined() || (labels.dtype() != i32 && labels.dtype() != i64) || labels.shape() != input.x.shape())
    throw ArgumentError("text_loss: expected labels as i32 or i64 " + input.x.shape().to_string() + ", got " +
                        (labels.defined() ? std::string(name_of(labels.dtype())) + " " + labels.shape().to_string()
                                          : std::string("an empty handle")));
  const std::int64_t tokens = labels.shape()[1];
  if (tokens < 2) throw ArgumentError("text_loss: expected 2 tokens or more, got 1");
  const ModelOutput output = model.run(input);
  const Array next = contiguous(slice(labels, 1, 1, tokens));
  const Array weight = model.vocabulary_weight();
  if (!weight.defined()) return cross_entropy(slice(output.logits, 1, 0, tokens - 1), next, {.ignore_index = kNoLabel});
  const Array hidden = slice(output.hidden, 1, 0, tokens - 1);
  const bool is_narrow = weight.dtype() == f16 || weight.dtype() == bf16;
  return linear_cross_entropy(is_narrow ? astype(hidden, weight.dtype()) : hidden, weight, next,
                              {.ignore_index = kNoLabel});
}

Array sentence_vectors(Pretrained& model, const ModelInput& input, const SentenceOptions& options) {
  const ModelOutput output = model.run(input);
  Array vectors = output.pooled;
  if (options.pooling == Pooling::model && !vectors.defined())
    throw ArgumentError("sentence_vectors: " + model.kind() + " has no pooler; choose mean or first");
  if (options.pooling != Pooling::model) {
    const Array& hidden = output.hidden;
    if (hidden.shape().rank() != 3)
      throw ArgumentError("sentence_vectors: expected a model of tokens, got " + model.kind());
    const std::int64_t batch = hidden.shape()[0], tokens = hidden.shape()[1], width = hidden.shape()[2];
    if (options.pooling == Pooling::first) {
      vectors = reshape(slice(hidden, 1, 0, 1), {batch, width});
    } else {
      Array counts;  // f32 [N, T, 1]
      if (input.mask.defined()) counts = astype(input.mask, f32);
      if (input.lengths.defined()) {
        const Array within =
            astype(less(arange(0, static_cast<double>(tokens), 1, i32), reshape(input.lengths, {batch, 1})), f32);
        counts = counts.defined() ? counts * within : within;
      }
      if (counts.defined()) {
        const Array weight = reshape(counts, {batch, tokens, 1});
        vectors = sum(hidden * weight, {1}) / maximum(sum(weight, {1}), full({1}, 1e-9));
      } else {
        vectors = mean(hidden, {1});
      }
    }
  }
  if (!options.normalise) return vectors;
  return vectors / maximum(sqrt(sum(square(vectors), {1}, true)), full({1}, 1e-12));
}

}  // namespace samebytes::models

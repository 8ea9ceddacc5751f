// Llama-like models and BERT of GGUF files (github.com/ggerganov/ggml, docs/gguf.md) as the same modules: the keys
// become those of a config.json, the tensors those of a safetensors file. F32 and 16-bit tensors lie in the mapped
// file, quantised ones are dequantised once, in 16 bits unless told otherwise. Files of the architecture "llama" keep
// the rows of queries and keys in the order of interleaved rotary positions; they are put back.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>

#include "core/gguf_blocks.h"
#include "core/io_error.h"
#include "core/json.h"
#include "io/mapped_file.h"
#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/io/gguf.h"
#include "samebytes/models/pretrained.h"
#include "samebytes/ops.h"

namespace samebytes::models {
namespace {

constexpr const char* kGgufReader = "gguf";

class Pairs {
 public:
  Pairs(const std::string& path, const io::GgufHeader& header) : path_(path) {
    for (const auto& [key, value] : header.metadata) values_[key] = value;
    architecture_ = text("general.architecture");
  }
  const std::string& architecture() const { return architecture_; }
  bool has(const std::string& key) const { return values_.contains(key); }
  std::string text(const std::string& key) const {
    const auto found = values_.find(key);
    if (found == values_.end()) detail::throw_io(kGgufReader, path_, -1, "a key '" + key + "'", "none");
    return found->second;
  }
  // "llama.block_count" of "block_count".
  std::string of_architecture(const std::string& key) const { return architecture_ + "." + key; }
  double number(const std::string& key) const {
    const std::string value = text(of_architecture(key));
    char* end = nullptr;
    const double result = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0')
      detail::throw_io(kGgufReader, path_, -1, "a number for '" + of_architecture(key) + "'",
                       "'" + value.substr(0, 60) + "'");
    return result;
  }
  std::int64_t integer(const std::string& key) const {
    constexpr double kLargest = 1 << 27;
    const double value = number(key);
    if (!(value >= 1 && value <= kLargest))
      detail::throw_io(kGgufReader, path_, -1, "a whole number from 1 to 2^27 for '" + of_architecture(key) + "'",
                       std::to_string(value));
    return static_cast<std::int64_t>(value);
  }
  std::int64_t integer(const std::string& key, std::int64_t fallback) const {
    return has(of_architecture(key)) ? integer(key) : fallback;
  }
  double number(const std::string& key, double fallback) const {
    return has(of_architecture(key)) ? number(key) : fallback;
  }

 private:
  std::string path_, architecture_;
  std::map<std::string, std::string> values_;
};

struct Sizes {
  std::int64_t heads, kv_heads, depth;
};

// The name in transformers of a tensor of this architecture; empty for one that has none.
std::string name_of_tensor(const std::string& type, const std::string& name) {
  struct Row {
    const char *gguf, *ours;
  };
  constexpr Row kWhole[] = {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}};
  constexpr Row kLayer[] = {{"attn_q", "self_attn.q_proj"},      {"attn_k", "self_attn.k_proj"},
                            {"attn_v", "self_attn.v_proj"},      {"attn_output", "self_attn.o_proj"},
                            {"attn_q_norm", "self_attn.q_norm"}, {"attn_k_norm", "self_attn.k_norm"},
                            {"attn_norm", "input_layernorm"},    {"ffn_norm", "post_attention_layernorm"},
                            {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
                            {"ffn_down", "mlp.down_proj"}};
  constexpr Row kBertWhole[] = {{"token_embd", "embeddings.word_embeddings"},
                                {"position_embd", "embeddings.position_embeddings"},
                                {"token_types", "embeddings.token_type_embeddings"},
                                {"token_embd_norm", "embeddings.LayerNorm"}};
  constexpr Row kBertLayer[] = {{"attn_q", "attention.self.query"},
                                {"attn_k", "attention.self.key"},
                                {"attn_v", "attention.self.value"},
                                {"attn_output", "attention.output.dense"},
                                {"attn_output_norm", "attention.output.LayerNorm"},
                                {"ffn_up", "intermediate.dense"},
                                {"ffn_down", "output.dense"},
                                {"layer_output_norm", "output.LayerNorm"}};
  const bool is_bert = type == "bert";
  const std::size_t end = name.rfind('.');
  if (end == std::string::npos) return "";
  const std::string stem = name.substr(0, end), what = name.substr(end);
  const auto whole = is_bert ? std::span<const Row>(kBertWhole) : std::span<const Row>(kWhole);
  for (const Row& row : whole)
    if (stem == row.gguf) return row.ours + what;
  if (!stem.starts_with("blk.")) return "";
  const std::size_t dot = stem.find('.', 4);
  if (dot == std::string::npos) return "";
  const auto layer = is_bert ? std::span<const Row>(kBertLayer) : std::span<const Row>(kLayer);
  for (const Row& row : layer)
    if (stem.substr(dot + 1) == row.gguf)
      return (is_bert ? "encoder.layer." : "model.layers.") + stem.substr(4, dot - 4) + "." + row.ours + what;
  return "";
}

// What the tensors say of the config.
struct TensorFacts {
  std::int64_t vocabulary = 0, types = 0;  // rows of the embeddings
  bool is_tied = true;
};

TensorFacts facts_of(const std::string& path, const io::GgufHeader& header) {
  TensorFacts facts;
  for (const io::GgufTensor& tensor : header.tensors) {
    const bool is_matrix = tensor.sizes.size() == 2;
    if (tensor.name == "token_embd.weight" && is_matrix) facts.vocabulary = tensor.sizes[0];
    if (tensor.name == "token_types.weight" && is_matrix) facts.types = tensor.sizes[0];
    if (tensor.name == "output.weight") facts.is_tied = false;
  }
  if (facts.vocabulary <= 0) detail::throw_io(kGgufReader, path, -1, "a matrix 'token_embd.weight'", "none");
  return facts;
}

nlohmann::ordered_json bert_config(const Pairs& pairs, const TensorFacts& facts) {
  return {{"architectures", {"BertModel"}},
          {"model_type", "bert"},
          {"vocab_size", facts.vocabulary},
          {"hidden_size", pairs.integer("embedding_length")},
          {"intermediate_size", pairs.integer("feed_forward_length")},
          {"num_hidden_layers", pairs.integer("block_count")},
          {"num_attention_heads", pairs.integer("attention.head_count")},
          {"max_position_embeddings", pairs.integer("context_length")},
          {"layer_norm_eps", pairs.number("attention.layer_norm_epsilon")},
          {"type_vocab_size", std::max<std::int64_t>(facts.types, 1)}};
}

nlohmann::ordered_json decoder_config(const Pairs& pairs, const TensorFacts& facts, const Sizes& sizes) {
  const std::string& type = pairs.architecture();
  nlohmann::ordered_json json = {{"architectures",
                                  {type == "llama"   ? "LlamaForCausalLM"
                                   : type == "qwen2" ? "Qwen2ForCausalLM"
                                                     : "Qwen3ForCausalLM"}},
                                 {"model_type", type},
                                 {"vocab_size", facts.vocabulary},
                                 {"hidden_size", pairs.integer("embedding_length")},
                                 {"intermediate_size", pairs.integer("feed_forward_length")},
                                 {"num_hidden_layers", pairs.integer("block_count")},
                                 {"num_attention_heads", sizes.heads},
                                 {"num_key_value_heads", sizes.kv_heads},
                                 {"head_dim", sizes.depth},
                                 {"max_position_embeddings", pairs.integer("context_length")},
                                 {"rms_norm_eps", pairs.number("attention.layer_norm_rms_epsilon")},
                                 {"rope_theta", pairs.number("rope.freq_base", 10000.0)},
                                 {"tie_word_embeddings", facts.is_tied}};
  const auto scaling = pairs.of_architecture("rope.scaling.type");
  if (pairs.has(scaling) && pairs.text(scaling) != "none") {
    json["rope_scaling"] = {{"rope_type", pairs.text(scaling)}, {"factor", pairs.number("rope.scaling.factor")}};
    const std::int64_t original = pairs.integer("rope.scaling.original_context_length", 0);
    if (original > 0) json["rope_scaling"]["original_max_position_embeddings"] = original;
  }
  // The end of a text, and that of a turn where it is another token.
  std::vector<std::int64_t> ends;
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
    if (!pairs.has(key)) continue;
    const std::int64_t end = std::strtol(pairs.text(key).c_str(), nullptr, 10);
    if (std::find(ends.begin(), ends.end(), end) == ends.end()) ends.push_back(end);
  }
  if (ends.size() == 1) json["eos_token_id"] = ends.front();
  if (ends.size() > 1) json["eos_token_id"] = ends;
  return json;
}

Sizes sizes_of(const std::string& path, const Pairs& pairs) {
  const std::string& type = pairs.architecture();
  if (type != "llama" && type != "qwen2" && type != "qwen3" && type != "bert")
    throw ArgumentError("from_gguf: " + path + " has the architecture '" + type.substr(0, 60) +
                        "'; known are llama, qwen2, qwen3, bert");
  Sizes sizes{.heads = pairs.integer("attention.head_count"), .kv_heads = 0, .depth = 0};
  sizes.kv_heads = pairs.integer("attention.head_count_kv", sizes.heads);
  sizes.depth =
      pairs.integer("attention.key_length", std::max<std::int64_t>(pairs.integer("embedding_length") / sizes.heads, 1));
  return sizes;
}

Config config_of(const std::string& path, const Pairs& pairs, const io::GgufHeader& header, const Sizes& sizes) {
  const std::string& type = pairs.architecture();
  const TensorFacts facts = facts_of(path, header);
  const nlohmann::ordered_json json = type == "bert" ? bert_config(pairs, facts) : decoder_config(pairs, facts, sizes);
  return Config::parse(path, detail::to_line(json));
}

// [H D, in] whose rows of each head are pairs (2 i, 2 i + 1) as rows (i, i + D / 2).
Array unpaired(const Array& rows, std::int64_t heads) {
  const Shape shape = rows.shape();
  const std::int64_t depth = shape[0] / heads, columns = rows.size() / shape[0];
  return reshape(contiguous(transpose(reshape(rows, {heads, depth / 2, 2, columns}), {0, 2, 1, 3})), shape);
}

// Of types that are no blocks.
std::optional<Dtype> dtype_of_type(const std::string& type) {
  if (type == "F32") return f32;
  if (type == "F16") return f16;
  if (type == "BF16") return bf16;
  return std::nullopt;
}

struct Source {
  std::shared_ptr<io::MappedFile> file;
  io::GgufTensor tensor;
  Shape shape;
  Dtype dtype = f32;
  std::int64_t paired_heads = 0;  // 0: rows lie as they are

  std::optional<Dtype> own_dtype() const { return dtype_of_type(tensor.type); }
  bool is_plain() const {
    const std::optional<Dtype> own = own_dtype();
    return own && (*own == dtype || shape.rank() < 2) && paired_heads == 0 && tensor.offset % bytes_of(*own) == 0;
  }
  Array values() const {
    std::byte* const bytes = file->data() + tensor.offset;
    if (is_plain()) return adopt(bytes, shape, *own_dtype(), [kept = file] {});
    const NoGrad no_grad;
    Array wide = empty(shape, f32);
    detail::dequantise(tensor.type, {bytes, static_cast<std::size_t>(tensor.bytes)}, wide.mutable_host<float>().span());
    const Dtype kept = shape.rank() < 2 ? f32 : dtype;
    if (paired_heads == 0 && kept == f32) return wide;
    if (paired_heads > 0) wide = unpaired(wide, paired_heads);
    Array result = kept == f32 ? wide + 0.0 : astype(wide, kept);
    result.wait();  // before the next one, so that only one tensor at a time is there in f32
    return result;
  }
};

std::optional<QuantisedType> quantised_type(const std::string& type) {
  for (const QuantisedType one :
       {QuantisedType::q8_0, QuantisedType::q4_0, QuantisedType::q4_k, QuantisedType::q5_k, QuantisedType::q6_k})
    if (format_of(one).name == type) return one;
  return std::nullopt;
}

// The blocks of a quantised matrix: the file's own, or a copy whose rows are in another order.
Array blocks_of(const Source& source, QuantisedType type) {
  const QuantisedFormat& format = format_of(type);
  const std::int64_t rows = source.shape[0], row_bytes = source.shape[1] / format.values * format.bytes;
  std::byte* const bytes = source.file->data() + source.tensor.offset;
  const Shape shape{rows, row_bytes};
  if (source.paired_heads == 0) return adopt(bytes, shape, u8, [kept = source.file] {});
  Array result = empty(shape, u8);
  const auto to = result.mutable_host<std::uint8_t>();
  const std::int64_t depth = rows / source.paired_heads;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t head = row / depth, place = row % depth;  // row (i, half) of a head comes from (2 i + half)
    const std::int64_t from = head * depth + 2 * (place % (depth / 2)) + place / (depth / 2);
    std::memcpy(to.span().data() + row * row_bytes, bytes + from * row_bytes, static_cast<std::size_t>(row_bytes));
  }
  return result;
}

std::shared_ptr<io::MappedFile> mapped(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status {};
  const bool is_file = file >= 0 && ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0;
  auto result = is_file ? io::MappedFile::map(file, static_cast<std::size_t>(status.st_size)) : nullptr;
  const int error = errno;
  if (file >= 0) ::close(file);
  if (!result) detail::throw_io(kGgufReader, path, -1, "a file that can be mapped", std::strerror(error));
  return result;
}

}  // namespace

Config read_config(const std::string& path) {
  if (!io::is_gguf(path)) return Config::read((std::filesystem::path(path) / "config.json").string());
  const io::GgufHeader header = io::read_gguf_header(path);
  const Pairs pairs(path, header);
  return config_of(path, pairs, header, sizes_of(path, pairs));
}

std::unique_ptr<Pretrained> from_gguf(const std::string& path, const PretrainedOptions& options) {
  if (options.dtype && (!is_floating(*options.dtype) || *options.dtype == f64))
    throw ArgumentError("from_gguf: dtype must be f32, f16 or bf16, got " + std::string(name_of(*options.dtype)));
  if (options.quantise != Quantise::none)
    throw ArgumentError("from_gguf: quantise is for folders; keep_quantised keeps what the file has");
  const io::GgufHeader header = io::read_gguf_header(path);
  const Pairs pairs(path, header);
  const std::string& type = pairs.architecture();
  const Sizes sizes = sizes_of(path, pairs);
  const Config config = config_of(path, pairs, header, sizes);
  const auto file = mapped(path);
  std::map<std::string, WeightEntry> entries;
  std::uint64_t all = 0;  // bytes of tensors, which may not lie over each other
  for (const io::GgufTensor& tensor : header.tensors) {
    if (tensor.name == "rope_freqs.weight")
      throw ArgumentError("from_gguf: " + path +
                          " has factors of rotary frequencies, which are not read; use the "
                          "safetensors of the model");
    const std::string name = name_of_tensor(type, tensor.name);
    if (!detail::can_dequantise(tensor.type))
      detail::throw_io(kGgufReader, path, static_cast<std::int64_t>(tensor.offset),
                       "'" + tensor.name + "' as F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K or Q6_K", tensor.type);
    if (tensor.bytes > file->size() || tensor.offset > file->size() - tensor.bytes || tensor.bytes == 0 ||
        (all += tensor.bytes) > file->size())
      detail::throw_io(kGgufReader, path, static_cast<std::int64_t>(tensor.offset),
                       "the bytes of '" + tensor.name + "'", "the end of the file or other tensors");
    Source source{.file = file,
                  .tensor = tensor,
                  .shape = detail::shape_of_sizes(kGgufReader, path, -1, tensor.sizes),
                  .dtype = options.dtype.value_or(dtype_of_type(tensor.type).value_or(f16))};
    if (type == "llama" &&
        (tensor.name.find(".attn_q.") != std::string::npos || tensor.name.find(".attn_k.") != std::string::npos)) {
      source.paired_heads = tensor.name.find(".attn_q.") != std::string::npos ? sizes.heads : sizes.kv_heads;
      if (source.shape[0] % (2 * source.paired_heads) != 0)
        detail::throw_io(kGgufReader, path, -1, "rows of '" + tensor.name + "' in pairs for each head",
                         source.shape.to_string());
    }
    WeightEntry& entry = entries[name.empty() ? tensor.name : name];
    entry = {source.shape, [source] { return source.values(); }, static_cast<std::size_t>(tensor.bytes),
             source.is_plain()};
    const bool is_table = !tensor.name.starts_with("blk.");
    const bool is_kept = options.keep_quantised && (!is_table || (options.keep_tables && type != "bert"));
    entry.type = is_kept && source.shape.rank() == 2 ? quantised_type(tensor.type) : std::nullopt;
    if (entry.type) entry.blocks = [source, kind = *entry.type] { return blocks_of(source, kind); };
  }
  auto model = make_model(config, Weights::of(path, std::move(entries)));
  model->eval();
  return model;
}

}  // namespace samebytes::models

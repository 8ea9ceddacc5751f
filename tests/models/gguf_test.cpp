// Models of GGUF files: blocks against the gguf package (version 0.19), a llama whose rows of queries and keys are
// paired against the same model of a folder, and files that are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/folders.h"
#include "models/gguf_blocks.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(GgufBlocks, have_the_values_of_the_gguf_package) {
  struct Case {
    const char* type;
    std::size_t bytes, values;
    std::vector<std::size_t> scales;  // where f16 0.0123 and 0.0456 lie; the other bytes are 37 i + 11
    std::vector<std::size_t> places;
    std::vector<double> expected;
    double sum;
  };
  const Case cases[] = {
      {"Q8_0",
       34,
       32,
       {0},
       {0, 1, 5, 15, 16, 31},
       {1.0453796, 1.5004272, 0.17218018, -1.5742188, -1.1191711, -0.59033203},
       -2.1645508},
      {"Q4_0",
       18,
       32,
       {0},
       {0, 1, 5, 15, 16, 31},
       {-0.036895752, 0.024597168, 0.073791504, -0.098388672, -0.036895752, 0},
       -0.25827026},
      {"Q4_K",
       144,
       256,
       {0, 2},
       {0, 1, 15, 16, 31, 127, 128, 223, 255},
       {1.8685608, -2.3252563, -0.037719727, 1.8685608, -0.037719727, -0.34490967, 4.7289734, 2.8406982, -0.78405762},
       336.31226},
      {"Q5_K",
       176,
       256,
       {0, 2},
       {0, 1, 15, 16, 31, 127, 128, 223, 255},
       {7.9686584, -2.3252563, -0.037719727, 7.9686584, -0.037719727, -1.3779907, 12.40329, 12.482788, -0.046142578},
       1096.0696},
      {"Q6_K",
       210,
       256,
       {208},
       {0, 1, 15, 16, 31, 127, 128, 223, 255},
       {-17.599274, 20.858398, -3.9109497, -5.3129883, -1.1806641, 18.447876, -4.316803, -12.396973, -0.73791504},
       56.721069}};
  constexpr std::uint16_t kScales[] = {0x224c, 0x29d6};  // f16 0.0123, 0.0456
  for (const Case& one : cases) {
    std::vector<std::byte> bytes(one.bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
    for (std::size_t k = 0; k < one.scales.size(); ++k) std::memcpy(bytes.data() + one.scales[k], &kScales[k], 2);
    std::vector<float> values(one.values);
    ASSERT_TRUE(models::can_dequantise(one.type));
    models::dequantise(one.type, bytes, values);
    double sum = 0;
    for (const float value : values) sum += static_cast<double>(value);
    EXPECT_NEAR(sum, one.sum, 1e-6 * std::max(1.0, std::abs(one.sum))) << one.type;
    for (std::size_t i = 0; i < one.places.size(); ++i)
      EXPECT_FLOAT_EQ(values[one.places[i]], static_cast<float>(one.expected[i])) << one.type << " " << one.places[i];
  }
  EXPECT_FALSE(models::can_dequantise("Q2_K"));
}

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string word(const std::string& value) { return raw<std::uint64_t>(value.size()) + value; }

constexpr std::uint32_t kU32 = 4, kF32 = 6, kText = 8;
constexpr std::uint32_t kTypeF32 = 0, kTypeQ8 = 8;

struct Tensor {
  std::string name;
  std::vector<std::uint64_t> sizes;  // the fastest axis first
  std::uint32_t type;
  std::string bytes;
};

std::string gguf_of(const std::vector<std::string>& pairs, const std::vector<Tensor>& tensors) {
  std::string file =
      "GGUF" + raw<std::uint32_t>(3) + raw<std::uint64_t>(tensors.size()) + raw<std::uint64_t>(pairs.size());
  for (const std::string& pair : pairs) file += pair;
  std::string values;
  for (const Tensor& tensor : tensors) {
    file += word(tensor.name) + raw<std::uint32_t>(static_cast<std::uint32_t>(tensor.sizes.size()));
    for (const std::uint64_t size : tensor.sizes) file += raw(size);
    file += raw(tensor.type) + raw<std::uint64_t>(values.size());
    values += tensor.bytes;
    values.resize((values.size() + 31) / 32 * 32);
  }
  file.resize((file.size() + 31) / 32 * 32);
  return file + values;
}

std::string u32_pair(const std::string& key, std::uint32_t value) { return word(key) + raw(kU32) + raw(value); }

// A value of Q8_0 is a scale, f16, times a number of 8 bits; here the scale is a power of two, which f16 has.
std::string quantised(const std::vector<float>& values) {
  std::string bytes;
  for (std::size_t i = 0; i < values.size(); i += 32) {
    bytes += raw<std::uint16_t>(0x2000);  // 2^-7
    for (std::size_t j = i; j < i + 32; ++j)
      bytes += raw(static_cast<std::int8_t>(std::clamp(std::lround(values[j] * 128.0f), -127L, 127L)));
  }
  return bytes;
}

class GgufModelTest : public OnDevice {
 protected:
  static Json config(const std::string& type) {
    Json json = decoder_config(type, type == "llama" ? "LlamaForCausalLM" : "Qwen3ForCausalLM");
    json["hidden_size"] = 32;
    json["intermediate_size"] = 64;
    json["rope_theta"] = 500.0;
    json["head_dim"] = 8;
    return json;
  }
  // The file of the model in `folder`, whose matrices lie on the grid of Q8_0.
  static std::string file_of(const std::string& folder, const std::string& type, bool is_quantised) {
    std::vector<std::string> pairs{word("general.architecture") + raw(kText) + word(type),
                                   u32_pair(type + ".block_count", 2),
                                   u32_pair(type + ".context_length", 64),
                                   u32_pair(type + ".embedding_length", 32),
                                   u32_pair(type + ".feed_forward_length", 64),
                                   u32_pair(type + ".attention.head_count", 4),
                                   u32_pair(type + ".attention.head_count_kv", 2),
                                   u32_pair(type + ".attention.key_length", 8),
                                   word(type + ".rope.freq_base") + raw(kF32) + raw(500.0f),
                                   word(type + ".attention.layer_norm_rms_epsilon") + raw(kF32) + raw(1e-6f)};
    const std::pair<const char*, const char*> names[] = {{"model.embed_tokens", "token_embd"},
                                                         {"model.norm", "output_norm"},
                                                         {"lm_head", "output"},
                                                         {"model.layers.", "blk."},
                                                         {"self_attn.q_proj", "attn_q"},
                                                         {"self_attn.k_proj", "attn_k"},
                                                         {"self_attn.v_proj", "attn_v"},
                                                         {"self_attn.o_proj", "attn_output"},
                                                         {"self_attn.q_norm", "attn_q_norm"},
                                                         {"self_attn.k_norm", "attn_k_norm"},
                                                         {"input_layernorm", "attn_norm"},
                                                         {"post_attention_layernorm", "ffn_norm"},
                                                         {"mlp.gate_proj", "ffn_gate"},
                                                         {"mlp.up_proj", "ffn_up"},
                                                         {"mlp.down_proj", "ffn_down"}};
    const io::TensorFile file(folder + "/model.safetensors");
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < file.tensors().size(); ++i) {
      const io::TensorInfo& info = file.tensors()[i];
      std::string name = info.name;
      for (const auto& [ours, theirs] : names)
        if (const std::size_t at = name.find(ours); at != std::string::npos)
          name.replace(at, std::string(ours).size(), theirs);
      const HostArray array = file.read(i);
      std::vector<float> values(array.as<float>().begin(), array.as<float>().end());
      const bool is_query = info.name.find("q_proj") != std::string::npos;
      if (type == "llama" && (is_query || info.name.find("k_proj") != std::string::npos)) {
        // Row i of the first half of a head becomes row 2 i, of the second half row 2 i + 1.
        const std::vector<float> before = values;
        for (std::size_t head = 0; head < (is_query ? 4u : 2u); ++head)
          for (std::size_t row = 0; row < 8; ++row)
            std::copy_n(before.begin() + static_cast<std::ptrdiff_t>((head * 8 + row) * 32), 32,
                        values.begin() + static_cast<std::ptrdiff_t>((head * 8 + row % 4 * 2 + row / 4) * 32));
      }
      Tensor tensor{name, {}, kTypeF32, std::string(reinterpret_cast<const char*>(values.data()), values.size() * 4)};
      for (int axis = info.shape.rank(); axis-- > 0;)
        tensor.sizes.push_back(static_cast<std::uint64_t>(info.shape[axis]));
      if (is_quantised && info.shape.rank() == 2) {
        tensor.type = kTypeQ8;
        tensor.bytes = quantised(values);
      }
      tensors.push_back(std::move(tensor));
    }
    return gguf_of(pairs, tensors);
  }
  // Writes a folder whose matrices are multiples of 2^-7 below 1.
  static void write(const std::string& folder, const std::string& type) {
    const auto model = fresh(config(type));
    for (const auto& entry : model->named_parameters())
      if (entry.array.shape().rank() == 2)
        assign(entry.array, clip(round(entry.array * 128.0), -127.0, 127.0) * (1.0 / 128.0));
    models::save_pretrained(folder, *model);
  }
};
SAMEBYTES_ON_EVERY_DEVICE(GgufModelTest);

TEST_P(GgufModelTest, are_the_models_of_folders) {
  for (const char* type : {"llama", "qwen3"}) {
    const TemporaryFolder folder;
    write(folder.string(), type);
    const auto expected = models::from_pretrained(folder.string());
    const Array ids = ids_of({2, 5, 28, 7, 11, 3});
    const Array y = (*expected)(ids);
    put(folder / "plain.gguf", file_of(folder.string(), type, false));
    const auto plain = models::from_gguf(folder / "plain.gguf");
    EXPECT_THAT(plain->weights().unused, IsEmpty());
    EXPECT_GT(plain->weights().mapped_bytes, plain->weights().converted_bytes);
    EXPECT_TRUE(same_bytes((*plain)(ids), y)) << type;
    put(folder / "q8.gguf", file_of(folder.string(), type, true));
    const auto wide = models::from_gguf(folder / "q8.gguf", {.dtype = f32});
    EXPECT_TRUE(same_bytes((*wide)(ids), y)) << type;
    const auto narrow = models::from_gguf(folder / "q8.gguf");
    for (const auto& entry : narrow->named_parameters())
      EXPECT_EQ(entry.array.dtype(), entry.array.shape().rank() == 2 ? f16 : f32) << entry.name;
    EXPECT_LT(difference((*narrow)(ids), y), 2e-2 * max(abs(y)).value()) << type;
    EXPECT_EQ(narrow->kind(), type);
    const auto blocks = models::from_gguf(folder / "q8.gguf", {.dtype = f32, .keep_quantised = true});
    EXPECT_LT(difference((*blocks)(ids), y), 1e-4 * max(abs(y)).value()) << type;
    EXPECT_GT(blocks->weights().quantised_bytes, 0u);
    EXPECT_THAT(blocks->weights().unused, IsEmpty());
    const std::vector<std::int32_t> prompt{2, 5};
    EXPECT_EQ(models::generate(*wide, prompt, {.tokens = 8, .temperature = 0}),
              models::generate(*expected, prompt, {.tokens = 8, .temperature = 0}));
  }
}

TEST_P(GgufModelTest, wrong_files_are_refused) {
  const TemporaryFolder folder;
  write(folder.string(), "llama");
  const std::string good = file_of(folder.string(), "llama", true), path = folder / "x.gguf";
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  put(path, replaced("llama", "lllll"));
  EXPECT_THAT(message_of<ArgumentError>([&] { models::from_gguf(path); }), HasSubstr("known are llama, qwen2, qwen3"));
  const auto said = [&](const std::string& text) {
    put(path, text);
    return message_of<IoError>([&] { models::from_gguf(path); });
  };
  EXPECT_THAT(message_of<ArgumentError>([&] { models::from_gguf(path, {.quantise = models::Quantise::q4}); }),
              HasSubstr("keep_quantised keeps what the file has"));
  EXPECT_THAT(said(replaced("llama.block_count", "llama.block_conut")), HasSubstr("a key 'llama.block_count'"));
  EXPECT_THAT(said(replaced("token_embd.weight", "token_embb.weight")), HasSubstr("a matrix 'token_embd.weight'"));
  EXPECT_THAT(said(replaced("blk.1.ffn_up.weight", "blk.1.ffn_uq.weight")),
              HasSubstr("'model.layers.1.mlp.up_proj.weight'"));
  EXPECT_THAT(said(good.substr(0, good.size() / 2)), HasSubstr("inside the file"));
  EXPECT_THAT(said(replaced(u32_pair("llama.attention.head_count", 4), u32_pair("llama.attention.head_count", 0))),
              HasSubstr("a whole number from 1"));
  EXPECT_THAT(said(replaced(u32_pair("llama.embedding_length", 32), u32_pair("llama.embedding_length", 1 << 26))),
              HasSubstr("'model.embed_tokens.weight'"));
}

}  // namespace
}  // namespace samebytes::testing

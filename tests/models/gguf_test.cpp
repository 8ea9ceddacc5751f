// Models of GGUF files: blocks against the gguf package (version 0.19), a llama whose rows of queries and keys are
// paired against the same model of a folder, and files that are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/gguf_blocks.h"
#include "models/folders.h"
#include "models/gguf_files.h"
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
    ASSERT_TRUE(detail::can_dequantise(one.type));
    detail::dequantise(one.type, bytes, values);
    double sum = 0;
    for (const float value : values) sum += static_cast<double>(value);
    EXPECT_NEAR(sum, one.sum, 1e-6 * std::max(1.0, std::abs(one.sum))) << one.type;
    for (std::size_t i = 0; i < one.places.size(); ++i)
      EXPECT_FLOAT_EQ(values[one.places[i]], static_cast<float>(one.expected[i])) << one.type << " " << one.places[i];
  }
  EXPECT_FALSE(detail::can_dequantise("Q2_K"));
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
    put(folder / "plain.gguf", gguf::file_of_folder(folder.string(), false));
    const auto plain = models::from_gguf(folder / "plain.gguf");
    EXPECT_THAT(plain->weights().unused, IsEmpty());
    EXPECT_GT(plain->weights().mapped_bytes, plain->weights().converted_bytes);
    EXPECT_TRUE(same_bytes((*plain)(ids), y)) << type;
    put(folder / "q8.gguf", gguf::file_of_folder(folder.string(), true));
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
    const auto tables = models::from_gguf(folder / "q8.gguf", {.keep_quantised = true, .keep_tables = true});
    EXPECT_LT(difference((*tables)(ids), y), 1e-4 * max(abs(y)).value()) << type;
    EXPECT_GT(tables->weights().quantised_bytes, blocks->weights().quantised_bytes);
    const Array loss = models::text_loss(*tables, {.x = ids}, ids);
    EXPECT_NEAR(loss.value(), models::text_loss(*expected, {.x = ids}, ids).value(), 1e-4);
    const std::vector<std::int32_t> prompt{2, 5};
    EXPECT_EQ(models::generate(*wide, prompt, {.tokens = 8, .temperature = 0}),
              models::generate(*expected, prompt, {.tokens = 8, .temperature = 0}));
  }
}

TEST_P(GgufModelTest, an_encoder_gives_the_vectors_of_its_folder) {
  const TemporaryFolder folder;
  Json config = encoder_config("bert", "BertModel");
  config["hidden_size"] = 32;
  write_folder(folder.string(), config);
  const std::string path = folder / "bert.gguf";
  put(path, gguf::file_of_folder(folder.string(), false));
  const auto expected = models::from_pretrained(folder.string());
  const auto model = models::from_pretrained(path);
  EXPECT_EQ(model->kind(), "bert");
  EXPECT_THAT(model->weights().unused, IsEmpty());
  const Array ids = ids_of({2, 5, 28, 7, 11, 3});
  EXPECT_TRUE(
      same_bytes(models::sentence_vectors(*model, {.x = ids}), models::sentence_vectors(*expected, {.x = ids})));
  EXPECT_EQ(models::read_config(path).size("num_hidden_layers"), 2);
  EXPECT_EQ(models::read_config(folder.string()).size("num_hidden_layers"), 2);
}

TEST_P(GgufModelTest, wrong_files_are_refused) {
  const TemporaryFolder folder;
  write(folder.string(), "llama");
  const std::string good = gguf::file_of_folder(folder.string(), true), path = folder / "x.gguf";
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  put(path, replaced("llama", "lllll"));
  EXPECT_THAT(message_of<ArgumentError>([&] { models::from_gguf(path); }),
              HasSubstr("known are llama, qwen2, qwen3, bert"));
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
  EXPECT_THAT(said(replaced(gguf::pair("llama.attention.head_count", std::uint32_t{4}),
                            gguf::pair("llama.attention.head_count", std::uint32_t{0}))),
              HasSubstr("a whole number from 1"));
  EXPECT_THAT(said(replaced(gguf::pair("llama.embedding_length", std::uint32_t{32}),
                            gguf::pair("llama.embedding_length", std::uint32_t{1 << 26}))),
              HasSubstr("'model.embed_tokens.weight'"));
}

}  // namespace
}  // namespace samebytes::testing

// Folders that anybody may have written: wrong, damaged and hostile config.json and safetensors are refused with a
// message that names the file, and take no memory that the files do not have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/folders.h"
#include "samebytes/random.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FolderDamageTest : public OnDevice {
 protected:
  FolderDamageTest() { write_folder(folder_.string(), decoder_config("llama", "LlamaForCausalLM")); }
  // What is said about the folder with this key changed; null removes it.
  std::string said_with(const std::string& key, const Json& value) {
    Json config = config_in(folder_.string());
    config[key] = value;
    if (value.is_null()) config.erase(key);
    const TemporaryFolder changed;
    std::filesystem::create_hard_link(folder_ / "model.safetensors", changed / "model.safetensors");
    put_config(changed.string(), config);
    return message_of<IoError>([&] { models::from_pretrained(changed.string()); });
  }
  const TemporaryFolder folder_;
};
SAMEBYTES_ON_EVERY_DEVICE(FolderDamageTest);

TEST_P(FolderDamageTest, wrong_values_of_a_config_are_named_with_what_was_expected) {
  EXPECT_THAT(said_with("hidden_size", nullptr), HasSubstr("expected a whole number for 'hidden_size', found none"));
  EXPECT_THAT(said_with("hidden_size", "16"), HasSubstr("for 'hidden_size', found \"16\""));
  EXPECT_THAT(said_with("hidden_size", 0),
              HasSubstr("expected a whole number of 1 or more for 'hidden_size', found 0"));
  EXPECT_THAT(said_with("hidden_size", -16), HasSubstr("for 'hidden_size', found -16"));
  EXPECT_THAT(said_with("hidden_size", 1e300), HasSubstr("for 'hidden_size', found 1e+300"));
  EXPECT_THAT(said_with("num_attention_heads", 3), HasSubstr("a divisor of hidden_size, 16"));
  EXPECT_THAT(said_with("num_key_value_heads", 3), HasSubstr("a divisor of the 4 heads"));
  EXPECT_THAT(said_with("head_dim", 8), HasSubstr("'model.layers.0.self_attn"));
  EXPECT_THAT(said_with("hidden_act", "softsign"), HasSubstr("for 'hidden_act', found 'softsign'"));
  EXPECT_THAT(said_with("architectures", {"LlamaForQuestionAnswering"}), HasSubstr("found 'QuestionAnswering'"));
  EXPECT_THAT(said_with("architectures", {3}), HasSubstr("a list of texts for 'architectures'"));
  EXPECT_THAT(said_with("rope_theta", 0), HasSubstr("a number above 0 for 'rope_theta'"));
  EXPECT_THAT(said_with("rope_scaling", 3), HasSubstr("an object for 'rope_scaling', found 3"));
  EXPECT_THAT(said_with("rope_scaling", {{"type", "spiral"}}), HasSubstr("yarn or longrope for 'rope_type'"));
  EXPECT_THAT(said_with("rope_scaling", {{"type", "linear"}}), HasSubstr("a number for 'factor', found none"));
  EXPECT_THAT(said_with("rope_scaling", {{"type", "linear"}, {"factor", -1}}), HasSubstr("a number above 0"));
  EXPECT_THAT(
      said_with("rope_scaling", {{"type", "llama3"}, {"factor", 2}, {"low_freq_factor", 4}, {"high_freq_factor", 1}}),
      HasSubstr("a number above low_freq_factor"));
  EXPECT_THAT(said_with("rope_scaling", {{"type", "longrope"}, {"short_factor", {1}}, {"long_factor", {1, 1}}}),
              HasSubstr("2 numbers for 'short_factor', found 1"));
  EXPECT_THAT(said_with("partial_rotary_factor", 2), HasSubstr("for 'partial_rotary_factor'"));
  EXPECT_THAT(said_with("model_type", nullptr), HasSubstr("a text for 'model_type', found none"));
}

TEST_P(FolderDamageTest, sizes_that_the_files_do_not_have_cost_nothing) {
  const auto before = engine().memory().live_bytes;
  EXPECT_THAT(said_with("num_hidden_layers", 1 << 27), HasSubstr("a tensor 'model.layers.2."));
  EXPECT_THAT(said_with("vocab_size", 1 << 27), HasSubstr("'model.embed_tokens.weight' as floating [134217728, 16]"));
  EXPECT_THAT(said_with("hidden_size", 1 << 27), HasSubstr("as floating [29, 134217728], found f32 [29, 16]"));
  EXPECT_THAT(said_with("head_dim", 1 << 27), HasSubstr("'model.layers.0.self_attn"));
  EXPECT_THAT(said_with("intermediate_size", 1 << 27), HasSubstr("'model.layers.0.mlp"));
  EXPECT_EQ(engine().memory().live_bytes, before);
  // A long context alone is no size of anything that is made here.
  Json config = config_in(folder_.string());
  config["max_position_embeddings"] = 1 << 27;
  put_config(folder_.string(), config);
  const auto model = models::from_pretrained(folder_.string());
  EXPECT_EQ(model->context(), 1 << 27);
  EXPECT_EQ((*model)(ids_of({1, 2})).shape(), (Shape{1, 2, 29}));
}

TEST_P(FolderDamageTest, unknown_types_list_the_known_ones) {
  put(folder_ / "config.json", R"({"model_type": "abacus"})");
  EXPECT_THAT(message_of<ArgumentError>([&] { models::from_pretrained(folder_.string()); }),
              AllOf(HasSubstr("has model_type 'abacus', which no architecture has; known are "), HasSubstr("qwen3")));
}

TEST_P(FolderDamageTest, files_that_are_no_json_missing_or_too_large_are_refused) {
  const auto said = [&] { return message_of<IoError>([&] { models::from_pretrained(folder_.string()); }); };
  put(folder_ / "config.json", "[1]");
  EXPECT_THAT(said(), HasSubstr("expected a JSON object, found array"));
  put(folder_ / "config.json", "{");
  EXPECT_THAT(said(), HasSubstr("expected JSON"));
  put(folder_ / "config.json", std::string(1000, '['));
  EXPECT_THAT(said(), HasSubstr("at most 64 levels"));
  put(folder_ / "config.json", std::string((16 << 20) + 1, ' '));
  EXPECT_THAT(said(), HasSubstr("at most 16777216 bytes"));
  std::filesystem::remove(folder_ / "config.json");
  EXPECT_THAT(said(), HasSubstr("config.json: expected a file, found none"));
}

TEST_P(FolderDamageTest, an_index_may_name_files_of_the_folder_only_and_must_be_right) {
  std::filesystem::rename(folder_ / "model.safetensors", folder_ / "part.safetensors");
  const auto said_of = [&](const Json& map) {
    put(folder_ / "model.safetensors.index.json", Json{{"weight_map", map}}.dump());
    return message_of<IoError>([&] { models::from_pretrained(folder_.string()); });
  };
  EXPECT_THAT(said_of({{"model.norm.weight", "../part.safetensors"}}), HasSubstr("a file of the folder"));
  EXPECT_THAT(said_of({{"model.norm.weight", "/etc/passwd"}}), HasSubstr("a file of the folder"));
  EXPECT_THAT(said_of({{"model.norm.weight", ".."}}), HasSubstr("a file of the folder"));
  EXPECT_THAT(said_of({{"model.norm.weight", "other.safetensors"}}), HasSubstr("other.safetensors"));
  EXPECT_THAT(said_of({{"model.nothing.weight", "part.safetensors"}}), HasSubstr("a file that has it"));
  EXPECT_THAT(said_of({{"model.norm.weight", 3}}), HasSubstr("a text for 'model.norm.weight'"));
  EXPECT_THAT(said_of(Json::object()), HasSubstr("names and files for 'weight_map', found none"));
  std::filesystem::copy(folder_ / "part.safetensors", folder_ / "again.safetensors");
  EXPECT_THAT(said_of({{"model.norm.weight", "part.safetensors"}, {"lm_head.weight", "again.safetensors"}}),
              HasSubstr("names that no other file has"));
}

TEST_P(FolderDamageTest, tensors_of_another_shape_or_kind_are_named) {
  const io::TensorFile file(folder_ / "model.safetensors");
  std::vector<HostArray> values;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) values.push_back(file.read(i));
  const auto said_with_tensor = [&](const std::string& name, const HostArray& value) {
    std::vector<io::TensorView> views;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const HostArray& one = file.tensors()[i].name == name ? value : values[i];
      views.push_back({file.tensors()[i].name, one.dtype, one.shape, one.bytes});
    }
    const TemporaryFolder changed;
    io::save_tensors(changed / "model.safetensors", views);
    put(changed / "config.json", get(folder_ / "config.json"));
    return message_of<IoError>([&] { models::from_pretrained(changed.string()); });
  };
  EXPECT_THAT(said_with_tensor("model.norm.weight", HostArray(Shape{17}, f32)),
              HasSubstr("'model.norm.weight' as floating [16], found f32 [17]"));
  EXPECT_THAT(said_with_tensor("model.norm.weight", HostArray(Shape{16}, i32)), HasSubstr("found i32 [16]"));
  EXPECT_THAT(said_with_tensor("model.layers.1.mlp.up_proj.weight", HostArray(Shape{0, 16}, f32)),
              HasSubstr("found f32 [0, 16]"));
}

TEST_P(FolderDamageTest, random_damage_is_read_or_refused) {
  const std::string config = get(folder_ / "config.json");
  const std::string weights = get(folder_ / "model.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, weights.data(), sizeof header);
  constexpr std::int64_t kFolders = 300;
  int failed = 0;
  for (std::int64_t i = 0; i < kFolders; ++i) {
    Random random({.seed = 23, .index = i});
    std::string text = i % 2 ? config : weights;
    const auto most = static_cast<std::uint32_t>(i % 2 ? text.size() : 8 + header);
    for (std::uint32_t n = 1 + random.below(3); n > 0; --n)
      text[random.below(most)] = static_cast<char>(random.below(4) ? 32 + random.below(95) : random.bits());
    if (random.below(8) == 0) text.resize(random.below(static_cast<std::uint32_t>(text.size())));
    put(folder_ / "config.json", i % 2 ? text : config);
    put(folder_ / "model.safetensors", i % 2 ? weights : text);
    try {
      models::from_pretrained(folder_.string());
    } catch (const IoError&) {
      ++failed;
    } catch (const ArgumentError& error) {  // a model type that is not known
      EXPECT_THAT(error.what(), HasSubstr("model_type"));
      ++failed;
    }
  }
  EXPECT_GT(failed, kFolders / 4);
}

}  // namespace
}  // namespace samebytes::testing

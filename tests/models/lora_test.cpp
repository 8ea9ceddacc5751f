// Adapters on published models: the layers that PEFT would choose, its folders, training and merging.
// benchmarks/lora_families.py compares gradients and losses with PEFT.
#include "samebytes/models/lora.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/folders.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Json gpt2_config(const std::string& architecture = "GPT2LMHeadModel") {
  return {{"architectures", {architecture}},
          {"model_type", "gpt2"},
          {"vocab_size", 29},
          {"n_positions", 64},
          {"n_embd", 16},
          {"n_layer", 1},
          {"n_head", 4},
          {"initializer_range", 0.3}};
}

class PretrainedLoraTest : public OnDevice {
 protected:
  static Array ids() { return ids_of({2, 5, 28, 7, 11, 3}); }
  static void fill(const nn::Module& net) {
    std::uint64_t seed = 5;
    for (const nn::NamedArray& entry : net.state())
      if (entry.is_adapter)
        assign(entry.array, real_array(random_values(entry.array.size(), ++seed), entry.array.shape(), f32));
  }
};
SAMEBYTES_ON_EVERY_DEVICE(PretrainedLoraTest);

TEST_P(PretrainedLoraTest, defaults_are_those_of_peft_for_each_family) {
  const auto layers = [](const Json& config) { return models::apply_lora(*fresh(config), {.rank = 2}).layers; };
  EXPECT_THAT(layers(decoder_config("qwen2", "Qwen2ForCausalLM")),
              ElementsAre("model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.v_proj",
                          "model.layers.1.self_attn.q_proj", "model.layers.1.self_attn.v_proj"));
  EXPECT_THAT(layers(decoder_config("phi3", "Phi3ForCausalLM")),
              ElementsAre("model.layers.0.self_attn.qkv_proj", "model.layers.1.self_attn.qkv_proj"));
  EXPECT_THAT(layers(gpt2_config()), ElementsAre("transformer.h.0.attn.c_attn"));
  EXPECT_THAT(layers(encoder_config("bert", "BertModel")),
              Each(::testing::AnyOf(HasSubstr("attention.self.query"), HasSubstr("attention.self.value"))));
  const Json resnet = {{"model_type", "resnet"}, {"architectures", {"ResNetForImageClassification"}},
                       {"embedding_size", 4},    {"hidden_sizes", {8}},
                       {"depths", {1}},          {"num_labels", 3},
                       {"layer_type", "basic"}};
  EXPECT_ERROR(layers(resnet), ArgumentError,
               "apply_lora: resnet has no default layers; name them in targets, or all-linear");
}

// The wide values of the feed-forward networks are made again: what is kept of a layer are the results of its two first
// products, 16 bits wide where the weights are.
TEST_P(PretrainedLoraTest, a_step_keeps_no_wide_values_between_the_products) {
  Json config = decoder_config("llama", "LlamaForCausalLM");
  config["intermediate_size"] = 4096;
  config["num_hidden_layers"] = 8;
  const auto own = make_engine(GetParam());  // whose plans are this test's
  const EngineScope scope(*own);
  const TemporaryFolder base;
  write_folder(base.string(), config);
  const std::size_t layers = 8, wide = 64 * 4096 * sizeof(float);
  for (const Dtype dtype : {bf16, f32}) {  // the largest plan of an engine comes first
    const auto model = models::from_pretrained(base.string(), {.dtype = dtype});
    models::apply_lora(*model, {.rank = 2});
    fill(*model);
    optim::Sgd sgd(model->parameters(), {.rate = 0.1});
    const Array text = full({1, 64}, 3.0, i32);
    sgd.step(models::text_loss(*model, {.x = text}, text));
    const MemorySnapshot snapshot = take_memory_snapshot(*own);
    const auto peak = static_cast<double>(snapshot.plans.front().arena_bytes) / static_cast<double>(layers * wide);
    EXPECT_LT(peak, dtype == f32 ? 2.6 : 1.8) << name_of(dtype);  // 2 and 1, and what one layer needs meanwhile
  }
}

// As in PEFT with a model of 16 bits: activations have the type of the scope, the stream between layers stays f32.
TEST_P(PretrainedLoraTest, in_an_autocast_scope_gradients_are_those_of_f32_but_for_its_roundings) {
  const TemporaryFolder base;
  Json config = decoder_config("qwen2", "Qwen2ForCausalLM");
  config["initializer_range"] = 0.1;  // larger ones saturate the attention, whose gradients no rounding leaves alone
  write_folder(base.string(), config);
  const auto model = models::from_pretrained(base.string());
  models::apply_lora(*model, {.rank = 2, .alpha = 0.5, .targets = {"all-linear"}});
  fill(*model);
  const auto parameters = model->parameters();
  const auto of = [&] { return gradients(models::text_loss(*model, {.x = ids()}, ids()), parameters); };
  const auto wide = of();
  const auto narrow = [&] {
    const Autocast scope({.dtype = bf16});
    return of();
  }();
  for (std::size_t i = 0; i < wide.size(); ++i) {
    const double size = sqrt(sum(wide[i] * wide[i])).value(), off = sqrt(sum(square(narrow[i] - wide[i]))).value();
    EXPECT_LT(off, 0.1 * size) << i;
  }
}

TEST_P(PretrainedLoraTest, all_linear_leaves_out_the_head) {
  const auto model = fresh(decoder_config("llama", "LlamaForCausalLM"));
  const auto report = models::apply_lora(*model, {.rank = 2, .targets = {"all-linear"}});
  EXPECT_EQ(report.layers.size(), 14u);
  EXPECT_THAT(report.layers, Contains("model.layers.1.mlp.down_proj"));
  EXPECT_THAT(report.layers, Not(Contains("lm_head")));
  const auto named = fresh(decoder_config("llama", "LlamaForCausalLM"));
  EXPECT_THAT(models::apply_lora(*named, {.rank = 2, .targets = {"lm_head"}}).layers, ElementsAre("lm_head"));
}

TEST_P(PretrainedLoraTest, folders_have_what_peft_reads_and_come_back) {
  const TemporaryFolder base, adapters;
  write_folder(base.string(), decoder_config("llama", "LlamaForCausalLM"));
  const auto model = models::from_pretrained(base.string()), other = models::from_pretrained(base.string());
  EXPECT_ERROR(models::save_lora(adapters.string(), *model), ArgumentError,
               "save_lora: llama has no adapters; apply_lora() first");
  models::apply_lora(*model, {.rank = 3, .alpha = 6});
  fill(*model);
  models::save_lora(adapters / "mine", *model, "tiny");
  const Json config = Json::parse(get(adapters / "mine/adapter_config.json"));
  EXPECT_EQ(config["base_model_name_or_path"], "tiny");
  EXPECT_EQ(config["task_type"], "CAUSAL_LM");
  EXPECT_EQ(config["target_modules"], Json({"q_proj", "v_proj"}));
  models::load_lora(adapters / "mine", *other);
  EXPECT_TRUE(same_bytes((*model)(ids()), (*other)(ids())));
  EXPECT_GT(difference((*model)(ids()), (*models::from_pretrained(base.string()))(ids())), 1e-3);
}

TEST_P(PretrainedLoraTest, layers_are_those_of_the_file_where_peft_names_them_by_an_expression) {
  const TemporaryFolder base, adapters;
  write_folder(base.string(), decoder_config("llama", "LlamaForCausalLM"));
  const auto model = models::from_pretrained(base.string()), other = models::from_pretrained(base.string());
  models::apply_lora(*model, {.rank = 2, .targets = {"model.layers.1.mlp.up_proj"}});
  fill(*model);
  const std::string path = adapters / "adapter_model.safetensors", beside = adapters / "adapter_config.json";
  models::save_lora(adapters.string(), *model);
  {  // as PEFT writes it
    const io::TensorFile file(path);
    std::vector<HostArray> values;
    std::vector<io::TensorView> views;
    for (std::size_t i = 0; i < file.tensors().size(); ++i) values.push_back(file.read(i));
    for (std::size_t i = 0; i < values.size(); ++i)
      views.push_back({file.tensors()[i].name, f32, values[i].shape, values[i].bytes});
    io::save_tensors(path, views, {{"format", "pt"}});
  }
  Json config = Json::parse(get(beside));
  config["target_modules"] = R"(.*\.1\.mlp\.up_proj)";
  put(beside, config.dump());
  models::load_lora(adapters.string(), *other);
  EXPECT_TRUE(same_bytes((*model)(ids()), (*other)(ids())));
  for (const auto& [key, value] : {std::pair<const char*, Json>{"use_dora", true},
                                   {"alpha_pattern", {{"up_proj", 3}}},
                                   {"bias", "all"},
                                   {"peft_type", "LOHA"}}) {
    Json changed = config;
    changed[key] = value;
    put(beside, changed.dump());
    const auto third = models::from_pretrained(base.string());
    EXPECT_THAT(message_of<IoError>([&] { models::load_lora(adapters.string(), *third); }), HasSubstr(key));
    EXPECT_FALSE(nn::has_lora(*third));
  }
}

TEST_P(PretrainedLoraTest, a_gpt2_file_without_the_first_part_of_names_gets_it_for_peft) {
  const TemporaryFolder base, adapters;
  write_folder(base.string(), gpt2_config("GPT2Model"));
  put_config(base.string(), gpt2_config());
  const auto model = models::from_pretrained(base.string()), other = models::from_pretrained(base.string());
  models::apply_lora(*model, {.rank = 2});
  fill(*model);
  models::save_lora(adapters.string(), *model);
  const io::TensorFile file(adapters / "adapter_model.safetensors");
  EXPECT_TRUE(file.find("base_model.model.transformer.h.0.attn.c_attn.lora_A.weight").has_value());
  models::load_lora(adapters.string(), *other);
  EXPECT_TRUE(same_bytes((*model)(ids()), (*other)(ids())));
}

TEST_P(PretrainedLoraTest, merged_weights_compute_the_same_and_are_saved) {
  const TemporaryFolder base, merged;
  write_folder(base.string(), decoder_config("qwen2", "Qwen2ForCausalLM"));
  const std::string bytes = get(base / "model.safetensors");
  const auto model = models::from_pretrained(base.string());
  models::apply_lora(*model, {.rank = 2, .targets = {"all-linear"}});
  fill(*model);
  const Array before = (*model)(ids());
  before.eval();
  nn::merge_lora(*model);
  nn::unload_lora(*model);
  models::save_pretrained(merged.string(), *model);
  const auto again = models::from_pretrained(merged.string());
  EXPECT_LT(difference((*again)(ids()), before), 1e-4 * max(abs(before)).value());
  EXPECT_EQ(get(base / "model.safetensors"), bytes);
}

}  // namespace
}  // namespace samebytes::testing

// Models of Hugging Face folders: every family is made, saved, read again without a copy, continued with a cache and
// trained. benchmarks/pretrained_families.py compares the same families with transformers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/folders.h"
#include "samebytes/nn/lora.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

Json with(Json config, const Json& more) {
  config.update(more);
  return config;
}

Json gpt2_config() {
  return {{"architectures", {"GPT2LMHeadModel"}},
          {"model_type", "gpt2"},
          {"vocab_size", 29},
          {"n_positions", 64},
          {"n_embd", 16},
          {"n_layer", 2},
          {"n_head", 4},
          {"initializer_range", 0.3}};
}

std::vector<Json> decoders() {
  const auto plain = [](const char* type, const char* architecture, const Json& more = Json::object()) {
    return with(decoder_config(type, architecture), more);
  };
  const Json llama3 = {{"rope_type", "llama3"},  {"rope_theta", 500.0},     {"factor", 8.0},
                       {"low_freq_factor", 1.0}, {"high_freq_factor", 4.0}, {"original_max_position_embeddings", 16}};
  const Json yarn = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 16}};
  const Json longrope = {{"type", "longrope"}, {"short_factor", {1.0, 1.1}}, {"long_factor", {2.0, 3.0}}};
  return {plain("llama", "LlamaForCausalLM"),
          plain("llama", "LlamaForCausalLM", {{"rope_parameters", llama3}, {"tie_word_embeddings", true}}),
          plain("llama", "LlamaForCausalLM", {{"rope_scaling", yarn}, {"attention_bias", true}, {"mlp_bias", true}}),
          plain("llama", "LlamaForCausalLM", {{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}}),
          plain("mistral", "MistralForCausalLM", {{"sliding_window", 3}}),
          plain("qwen2", "Qwen2ForCausalLM",
                {{"use_sliding_window", true}, {"sliding_window", 3}, {"max_window_layers", 1}}),
          plain("qwen3", "Qwen3ForCausalLM", {{"head_dim", 6}}),
          plain("smollm3", "SmolLM3ForCausalLM", {{"no_rope_layers", {1, 0}}}),
          plain("phi3", "Phi3ForCausalLM", {{"rope_scaling", longrope}, {"original_max_position_embeddings", 8}}),
          plain("gemma2", "Gemma2ForCausalLM",
                {{"head_dim", 6},
                 {"query_pre_attn_scalar", 9},
                 {"sliding_window", 3},
                 {"attn_logit_softcapping", 20.0},
                 {"final_logit_softcapping", 10.0},
                 {"tie_word_embeddings", true}}),
          plain("gemma3_text", "Gemma3ForCausalLM",
                {{"head_dim", 6},
                 {"query_pre_attn_scalar", 9},
                 {"sliding_window", 3},
                 {"sliding_window_pattern", 2},
                 {"tie_word_embeddings", true}}),
          gpt2_config()};
}

std::vector<Json> encoders() {
  const Json distil = {{"model_type", "distilbert"},
                       {"vocab_size", 29},
                       {"dim", 16},
                       {"hidden_dim", 24},
                       {"n_layers", 2},
                       {"n_heads", 4},
                       {"max_position_embeddings", 32}};
  return {encoder_config("bert", "BertModel"),
          encoder_config("bert", "BertForMaskedLM"),
          encoder_config("bert", "BertForSequenceClassification"),
          encoder_config("bert", "BertForTokenClassification"),
          encoder_config("roberta", "RobertaModel"),
          encoder_config("roberta", "RobertaForMaskedLM"),
          encoder_config("roberta", "RobertaForSequenceClassification"),
          with(distil, {{"architectures", {"DistilBertModel"}}}),
          with(distil, {{"architectures", {"DistilBertForMaskedLM"}}}),
          with(distil, {{"architectures", {"DistilBertForSequenceClassification"}}})};
}

std::vector<Json> image_models() {
  const Json vit = {{"hidden_size", 16},        {"intermediate_size", 24}, {"num_hidden_layers", 2},
                    {"num_attention_heads", 4}, {"image_size", 8},         {"patch_size", 4},
                    {"num_labels", 3}};
  const Json resnet = {{"model_type", "resnet"}, {"architectures", {"ResNetForImageClassification"}},
                       {"embedding_size", 4},    {"hidden_sizes", {8, 12}},
                       {"depths", {2, 1}},       {"num_labels", 3}};
  return {with(vit, {{"model_type", "vit"}, {"architectures", {"ViTModel"}}}),
          with(vit, {{"model_type", "vit"}, {"architectures", {"ViTForImageClassification"}}}),
          with(vit, {{"model_type", "deit"}, {"architectures", {"DeiTForImageClassification"}}}),
          with(resnet, {{"layer_type", "basic"}}), with(resnet, {{"layer_type", "bottleneck"}})};
}

std::string name_of(const Json& config) {
  return config["architectures"][0].get<std::string>() + " " + config.value("rope_scaling", Json()).dump();
}

class PretrainedTest : public OnDevice {
 protected:
  static Array input_for(const Json& config) {
    if (config.contains("image_size")) return normal({2, 8, 8, 3}, 0, 1, f32, {.seed = 3});
    if (config["model_type"] == "resnet") return normal({2, 16, 16, 3}, 0, 1, f32, {.seed = 3});
    return ids_of({2, 5, 28, 7, 11, 3, 2, 9, 17, 4, 26, 8}, 2);
  }
};
SAMEBYTES_ON_EVERY_DEVICE(PretrainedTest);

TEST_P(PretrainedTest, every_family_computes_the_same_from_its_saved_folder) {
  std::vector<Json> all = decoders();
  for (const auto& more : {encoders(), image_models()}) all.insert(all.end(), more.begin(), more.end());
  for (const Json& config : all) {
    const TemporaryFolder folder;
    const auto model = fresh(config);
    model->eval();
    models::save_pretrained(folder.string(), *model);
    const auto again = models::from_pretrained(folder.string());
    EXPECT_FALSE(again->is_training());
    EXPECT_THAT(again->weights().unused, IsEmpty()) << name_of(config);
    const Array x = input_for(config);
    const Array y = (*model)(x), z = (*again)(x);
    EXPECT_TRUE(std::isfinite(sum(abs(y)).value())) << name_of(config);
    EXPECT_GT(difference(y, zeros_like(y)), 1e-3) << name_of(config);
    EXPECT_TRUE(same_bytes(y, z)) << name_of(config);
  }
}

TEST_P(PretrainedTest, a_cache_gives_the_logits_of_the_whole_text) {
  for (const Json& config : decoders()) {
    const auto model = fresh(config);
    model->eval();
    const NoGrad no_grad;
    const std::vector<std::int32_t> text{2, 5, 28, 7, 11, 3, 2, 9, 17, 4, 26, 8};
    models::DecoderCache cache = model->make_cache(1, 16);
    for (const auto& [begin, end] : {std::pair{0, 5}, {5, 6}, {6, 7}, {7, 12}}) {
      const Array last = model->forward(ids_of({text.begin() + begin, text.begin() + end}), cache);
      // Keys in the cache keep the turn of a short text where a long one has another (LongRoPE, here from 9 tokens on).
      if (config["model_type"] == "phi3" && end > 8) continue;
      const Array whole = (*model)(ids_of({text.begin(), text.begin() + end}));
      const Array expected = slice(whole, 1, end - 1, end);
      EXPECT_LT(difference(last, expected), 2e-5 * std::max(1.0, max(abs(expected)).value())) << name_of(config);
    }
  }
}

TEST_P(PretrainedTest, matrices_lie_in_the_mapped_file_and_vectors_of_16_bits_are_widened) {
  const TemporaryFolder folder;
  write_folder(folder.string(), decoder_config("llama", "LlamaForCausalLM"));
  const auto wide = models::from_pretrained(folder.string());
  EXPECT_EQ(wide->weights().converted_bytes, 0u);
  EXPECT_EQ(wide->weights().mapped_bytes, static_cast<std::size_t>(4 * wide->parameter_count()));
  const auto narrow = models::from_pretrained(folder.string(), {.dtype = bf16});
  for (const auto& entry : narrow->named_parameters())
    EXPECT_EQ(entry.array.dtype(), entry.array.shape().rank() == 2 ? bf16 : f32) << entry.name;

  const TemporaryFolder half;
  models::save_pretrained(half.string(), *narrow);
  EXPECT_EQ(config_in(half.string())["dtype"], "bfloat16");
  const auto before = engine().transfers();
  const auto read = models::from_pretrained(half.string());
  const Array ids = ids_of({2, 5, 28, 7});
  const Array y = (*read)(ids);
  EXPECT_EQ(y.dtype(), f32);
  EXPECT_TRUE(same_bytes(y, (*narrow)(ids)));
  EXPECT_LT(difference(y, (*wide)(ids)), 0.1 * max(abs(y)).value());
  if (engine().device().memory_mode == MemoryMode::fine || engine().device().memory_mode == MemoryMode::system) {
    EXPECT_EQ(engine().transfers().bytes_copied, before.bytes_copied);
  }
  EXPECT_GT(read->weights().mapped_bytes, 10 * read->weights().converted_bytes);
}

TEST_P(PretrainedTest, training_changes_the_weights_and_not_the_file) {
  const TemporaryFolder folder;
  write_folder(folder.string(), decoder_config("llama", "LlamaForCausalLM"));
  const std::string bytes = get(folder / "model.safetensors");
  const auto model = models::from_pretrained(folder.string());
  model->train();
  optim::AdamW adam(model->parameters(), {.rate = 1e-2});
  const Array ids = ids_of({2, 5, 28, 7, 11, 3, 2, 9}), target = ids_of({5, 28, 7, 11, 3, 2, 9, 2});
  double first = 0, last = 0;
  for (int step = 0; step < 8; ++step) {
    const Array loss = cross_entropy(reshape((*model)(ids), {8, 29}), reshape(target, {8}));
    adam.step(loss);
    (step == 0 ? first : last) = loss.value();
  }
  EXPECT_LT(last, 0.8 * first);
  EXPECT_EQ(get(folder / "model.safetensors"), bytes);
  models::save_pretrained(folder.string(), *model);
  const auto again = models::from_pretrained(folder.string());
  model->eval();
  EXPECT_TRUE(same_bytes((*model)(ids), (*again)(ids)));
}

TEST_P(PretrainedTest, adapters_sit_beside_projections_by_their_names_in_peft) {
  const TemporaryFolder folder;
  write_folder(folder.string(), decoder_config("llama", "LlamaForCausalLM"));
  const auto model = models::from_pretrained(folder.string(), {.dtype = bf16});
  const auto report = nn::apply_lora(*model, {.rank = 2, .targets = {"q_proj", "v_proj"}});
  EXPECT_THAT(report.layers, Contains("model.layers.1.self_attn.v_proj"));
  std::vector<std::string> names;
  for (const auto& entry : nn::lora_state(*model)) names.push_back(entry.name);
  EXPECT_THAT(names, Contains("model.layers.0.self_attn.q_proj.lora_A.weight"));
  model->train();
  optim::AdamW adam(model->parameters(), {.rate = 3e-2});
  const Array ids = ids_of({2, 5, 28, 7}), target = array<std::int32_t>({5, 28, 7, 11});
  double first = 0, last = 0;
  for (int step = 0; step < 8; ++step) {
    const Array loss = cross_entropy(reshape((*model)(ids), {4, 29}), target);
    adam.step(loss);
    (step == 0 ? first : last) = loss.value();
  }
  EXPECT_LT(last, first);
  const TemporaryFolder saved;
  models::save_pretrained(saved.string(), *model);
  const io::TensorFile file(saved / "model.safetensors");
  for (const auto& info : file.tensors()) EXPECT_THAT(info.name, Not(HasSubstr("lora")));
}

TEST_P(PretrainedTest, the_loss_of_texts_is_that_of_their_logits_for_tokens_that_count) {
  for (Json config :
       {decoder_config("llama", "LlamaForCausalLM"), decoder_config("qwen2", "Qwen2ForCausalLM"),
        with(decoder_config("gemma2", "Gemma2ForCausalLM"), {{"final_logit_softcapping", 10.0}}), gpt2_config()}) {
    const auto model = fresh(config);
    model->eval();
    constexpr std::int32_t no = models::kNoLabel;
    const Array ids = ids_of({2, 5, 28, 7, 11, 3}, 2), labels = ids_of({no, 5, 28, no, no, 3}, 2);
    const Array logits = reshape(slice((*model)(ids), 1, 0, 2), {4, 29});
    const Array want = cross_entropy(logits, array<std::int32_t>({5, 28, no, 3}), {.ignore_index = no});
    EXPECT_NEAR(models::text_loss(*model, {.x = ids}, labels).value(), want.value(), 1e-5) << name_of(config);
  }
  const auto model = fresh(decoder_config("llama", "LlamaForCausalLM"));
  EXPECT_ERROR(models::text_loss(*model, {.x = ids_of({1, 2})}, ids_of({1, 2, 3})), ArgumentError,
               "text_loss: expected labels as i32 or i64 [1, 2], got i32 [1, 3]");
  EXPECT_ERROR(models::text_loss(*fresh(encoder_config("bert", "BertModel")), {.x = ids_of({1, 2})}, ids_of({1, 2})),
               ArgumentError, "text_loss: bert is no decoder");
}

TEST_P(PretrainedTest, texts_of_one_row_compute_what_each_does_by_itself) {
  for (const Json& config : {decoder_config("llama", "LlamaForCausalLM"),
                             with(decoder_config("mistral", "MistralForCausalLM"), {{"sliding_window", 3}})}) {
    const auto model = fresh(config);
    model->eval();
    const Array first = ids_of({2, 5, 28, 7, 11}), second = ids_of({3, 9, 4, 1});
    const Array both =
        model->run({.x = concat({first, second}, 1), .texts = ids_of({0, 0, 0, 0, 0, 1, 1, 1, 1})}).logits;
    EXPECT_LT(difference(slice(both, 1, 0, 5), (*model)(first)), 1e-4);
    EXPECT_LT(difference(slice(both, 1, 5, 9), (*model)(second)), 1e-4);
  }
  const auto gpt2 = fresh(gpt2_config());
  EXPECT_ERROR(gpt2->run({.x = ids_of({1, 2}), .texts = ids_of({0, 1})}), ArgumentError,
               "gpt2: texts need rotary positions; give each text its own row");
  const auto llama = fresh(decoder_config("llama", "LlamaForCausalLM"));
  EXPECT_ERROR(llama->run({.x = ids_of({1, 2}), .texts = ids_of({0, 1, 2})}), ArgumentError,
               "llama: expected texts as i32 or i64 [1, 2], got i32 [1, 3]");
}

TEST_P(PretrainedTest, greedy_text_is_that_of_whole_texts_and_ends_at_the_end_token) {
  const auto model = fresh(decoder_config("mistral", "MistralForCausalLM"));
  model->eval();
  const NoGrad no_grad;
  const std::vector<std::int32_t> prompt{2, 5, 28};
  const auto text = models::generate(*model, prompt, {.tokens = 12, .temperature = 0});
  std::vector<std::int32_t> expected = prompt;
  for (int i = 0; i < 12; ++i) {
    const Array y = (*model)(ids_of(expected));
    expected.push_back(static_cast<std::int32_t>(argmax(slice(y, 1, y.shape()[1] - 1, y.shape()[1])).value()));
  }
  EXPECT_EQ(text, expected);

  const TemporaryFolder folder;
  models::save_pretrained(folder.string(), *model);
  put_config(folder.string(), with(config_in(folder.string()), {{"eos_token_id", {expected[5]}}}));
  const auto ending = models::from_pretrained(folder.string());
  const auto shorter = models::generate(*ending, prompt, {.tokens = 12, .temperature = 0});
  EXPECT_LE(shorter.size(), 6u);
  EXPECT_EQ(shorter.back(), expected[5]);
}

TEST_P(PretrainedTest, texts_that_pass_the_turning_point_of_longrope_are_read_anew) {
  const auto model = fresh(decoders()[8]);
  model->eval();
  ASSERT_EQ(model->turning_point(), 8);
  const NoGrad no_grad;
  std::vector<std::int32_t> expected{2, 5, 28};
  const auto text = models::generate(*model, expected, {.tokens = 12, .temperature = 0});
  for (int i = 0; i < 12; ++i) {
    const Array y = (*model)(ids_of(expected));
    expected.push_back(static_cast<std::int32_t>(argmax(slice(y, 1, y.shape()[1] - 1, y.shape()[1])).value()));
  }
  EXPECT_EQ(text, expected);
}

TEST_P(PretrainedTest, padding_is_not_seen_by_lengths_or_by_a_mask) {
  const auto model = fresh(encoder_config("bert", "BertModel"));
  model->eval();
  const Array short_ids = ids_of({2, 5, 28}), padded = ids_of({2, 5, 28, 7, 7});
  const Array alone = model->run({.x = short_ids}).hidden;
  const Array lengths = array<std::int32_t>({3});
  const Array mask = array<bool>({true, true, true, false, false}, {1, 5});
  EXPECT_LT(difference(slice(model->run({.x = padded, .lengths = lengths}).hidden, 1, 0, 3), alone), 1e-5);
  EXPECT_LT(difference(slice(model->run({.x = padded, .mask = mask}).hidden, 1, 0, 3), alone), 1e-5);
  const Array vector = models::sentence_vectors(*model, {.x = short_ids});
  EXPECT_NEAR(sum(square(vector)).value(), 1.0, 1e-5);
  EXPECT_LT(difference(models::sentence_vectors(*model, {.x = padded, .lengths = lengths}), vector), 1e-5);
  EXPECT_LT(difference(models::sentence_vectors(*model, {.x = padded, .mask = mask}), vector), 1e-5);
  EXPECT_EQ(models::sentence_vectors(*model, {.x = padded}, {.pooling = models::Pooling::model}).shape(),
            (Shape{1, 16}));
}

TEST_P(PretrainedTest, weights_in_several_files_are_found_by_their_index) {
  const TemporaryFolder one, several;
  write_folder(one.string(), decoder_config("llama", "LlamaForCausalLM"));
  const io::TensorFile file(one / "model.safetensors");
  std::vector<HostArray> values;
  std::vector<io::TensorView> parts[2];
  Json map = Json::object();
  for (std::size_t i = 0; i < file.tensors().size(); ++i) values.push_back(file.read(i));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string& name = file.tensors()[i].name;
    parts[i % 2].push_back({name, values[i].dtype, values[i].shape, values[i].bytes});
    map[name] = i % 2 ? "model-2.safetensors" : "model-1.safetensors";
  }
  io::save_tensors(several / "model-1.safetensors", parts[0]);
  io::save_tensors(several / "model-2.safetensors", parts[1]);
  put(several / "model.safetensors.index.json", Json{{"weight_map", map}}.dump());
  put(several / "config.json", get(one / "config.json"));
  const Array ids = ids_of({2, 5, 28, 7});
  const auto a = models::from_pretrained(one.string()), b = models::from_pretrained(several.string());
  EXPECT_TRUE(same_bytes((*a)(ids), (*b)(ids)));
}

TEST_P(PretrainedTest, another_architecture_is_one_class_and_a_call) {
  class Doubling final : public models::Pretrained {
   public:
    Doubling(const models::Config& config, const models::Weights& weights)
        : Pretrained(config), factor_(weights.take("factor", {1}, nn::Layout::plain, models::Initial::ones)) {}
    void visit(nn::Visitor& visitor) override { visitor.parameter("factor", factor_); }

   protected:
    models::ModelOutput compute(const models::ModelInput& input) override {
      return {.hidden = input.x * factor_ * 2.0};
    }

   private:
    nn::Parameter factor_;
  };
  models::add_architecture({{"doubling"}, [](const models::Config& config, const models::Weights& weights) {
                              return std::unique_ptr<models::Pretrained>(std::make_unique<Doubling>(config, weights));
                            }});
  EXPECT_THAT(models::architectures(), Contains("doubling"));
  const TemporaryFolder folder;
  write_folder(folder.string(), {{"model_type", "doubling"}});
  const auto model = models::from_pretrained(folder.string());
  EXPECT_EQ((*model)(array({1.5f})).value(), 3.0);
}

TEST_P(PretrainedTest, what_a_model_cannot_do_is_an_error_that_says_so) {
  const auto encoder = fresh(encoder_config("bert", "BertModel"));
  const std::vector<std::int32_t> prompt{1};
  EXPECT_ERROR((models::generate(*encoder, prompt)), ArgumentError, "generate: expected a decoder, got bert");
  EXPECT_ERROR((encoder->make_cache(1, 4)), ArgumentError, "bert: expected a decoder for a cache, this model is none");
  EXPECT_ERROR(((*encoder)(zeros({1, 3}))), ArgumentError,
               "bert: expected token ids, i32 or i64 [N, T], got f32 [1, 3]");
  EXPECT_ERROR(((*encoder)(zeros({1, 33}, i32))), ArgumentError, "bert: expected at most 32 tokens, got 33");
  const auto vit = fresh(image_models()[1]);
  EXPECT_ERROR(((*vit)(zeros({1, 9, 8, 3}))), ArgumentError,
               "vit: expected images, f32 [N, 8, 8, 3], got f32 [1, 9, 8, 3]");
  const auto decoder = fresh(decoder_config("llama", "LlamaForCausalLM"));
  models::DecoderCache none;
  EXPECT_ERROR((decoder->forward(ids_of({1}), none)), ArgumentError,
               "llama: expected one cache per layer, got 0 for 2 layers");
}

}  // namespace
}  // namespace samebytes::testing

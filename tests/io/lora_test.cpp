// Adapters in files of their own: PEFT's names, the way back, and files that do not fit.
#include "samebytes/io/lora.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "samebytes/io/modules.h"
#include "samebytes/models.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/files.h"
#include "support/gradcheck.h"

namespace samebytes::io {
namespace {

using ::testing::ElementsAre;
using testing::get;
using ::testing::HasSubstr;
using testing::OnDevice;
using testing::put;
using testing::TemporaryFolder;

class LoraFileTest : public OnDevice {
 protected:
  static models::Gpt tiny() {
    return models::gpt(
        models::GptOptions{.vocabulary = 23, .context = 8, .layers = 2, .heads = 2, .width = 16, .dropout = 0.0});
  }
  static Array ids() { return array(std::vector<std::int32_t>{3, 1, 22, 7}, {1, 4}); }
  static void fill(const nn::Module& net) {
    std::uint64_t seed = 5;
    for (const nn::NamedArray& entry : net.state())
      if (entry.is_adapter)
        assign(entry.array,
               testing::real_array(testing::random_values(entry.array.size(), ++seed), entry.array.shape(), f32));
  }
  static std::string message_of(const std::function<void()>& act) {
    try {
      act();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
};
SAMEBYTES_ON_EVERY_DEVICE(LoraFileTest);

TEST_P(LoraFileTest, adapters_come_back_into_a_network_that_has_none) {
  const TemporaryFolder folder;
  const std::string base = folder / "base.safetensors", path = folder / "adapters.safetensors";
  models::Gpt net = tiny(), other = tiny();
  save(base, net);
  nn::apply_lora(net, {.rank = 3, .alpha = 7, .dropout = 0.25, .rank_stabilized = true, .targets = {"c_attn", "c_fc"}});
  fill(net);
  save_lora(path, net);
  EXPECT_LT(std::filesystem::file_size(path), std::filesystem::file_size(base) / 2);
  const TensorFile file(path);
  EXPECT_EQ(file.tensors().size(), 8u);
  EXPECT_EQ(file.tensors()[*file.find("base_model.model.h.0.attn.c_attn.lora_A.weight")].shape, (Shape{3, 16}));
  EXPECT_EQ(file.tensors()[*file.find("base_model.model.h.1.mlp.c_fc.lora_B.weight")].shape, (Shape{64, 3}));

  load(base, other);
  load_lora(path, other);
  const nn::LoraOptions& options = nn::lora_options(other);
  EXPECT_EQ(options.rank, 3);
  EXPECT_EQ(options.alpha, 7);
  EXPECT_EQ(options.dropout, 0.25);
  EXPECT_TRUE(options.rank_stabilized);
  EXPECT_THAT(options.targets, ElementsAre("c_attn", "c_fc"));
  net.eval();
  other.eval();
  EXPECT_TRUE(testing::same_bytes(net(ids()), other(ids())));
}

TEST_P(LoraFileTest, the_base_is_found_by_its_own_names_where_there_are_adapters) {
  const TemporaryFolder folder;
  const std::string base = folder / "base.safetensors", whole = folder / "whole.safetensors";
  models::Gpt net = tiny(), other = tiny(), third = tiny();
  save(base, net);
  nn::apply_lora(other);
  const LoadReport report = load(base, other, {.strict = false});
  EXPECT_THAT(report.missing, ElementsAre("h.0.attn.c_attn.lora_A.weight", "h.0.attn.c_attn.lora_B.weight",
                                          "h.1.attn.c_attn.lora_A.weight", "h.1.attn.c_attn.lora_B.weight"));
  EXPECT_TRUE(testing::same_bytes(net(ids()), other(ids())));
  fill(other);
  save(whole, other);  // base and adapters together
  nn::apply_lora(third);
  load(whole, third);
  EXPECT_TRUE(testing::same_bytes(third(ids()), other(ids())));
}

TEST_P(LoraFileTest, peft_opens_the_folder_and_its_folders_are_opened) {
  const TemporaryFolder folder;
  const std::string path = folder / "adapter_model.safetensors", config = folder / "adapter_config.json";
  models::Gpt net = tiny(), other = tiny();
  save(folder / "base.safetensors", net);
  load(folder / "base.safetensors", other);
  nn::apply_lora(net, {.rank = 2, .alpha = 4, .targets = {"all-linear"}});
  fill(net);
  save_lora(path, net);
  const auto json = nlohmann::json::parse(get(config));
  EXPECT_EQ(json["peft_type"], "LORA");
  EXPECT_EQ(json["r"], 2);
  EXPECT_EQ(json["lora_alpha"], 4);
  EXPECT_EQ(json["target_modules"], "all-linear");
  EXPECT_EQ(json["fan_in_fan_out"], true);
  EXPECT_TRUE(json["modules_to_save"].is_null());

  // As PEFT writes it for a GPT2LMHeadModel: no words in the file, one more part in the names.
  const TemporaryFolder theirs;
  const TensorFile file(path);
  std::vector<HostArray> values;
  std::vector<TensorView> tensors;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) values.push_back(file.read(i));
  for (std::size_t i = 0; i < file.tensors().size(); ++i) {
    TensorView view{file.tensors()[i].name, f32, file.tensors()[i].shape, values[i].bytes};
    view.name.replace(0, std::string("base_model.model.").size(), "base_model.model.transformer.");
    tensors.push_back(view);
  }
  const std::string their_path = theirs / "adapter_model.safetensors";
  save_tensors(their_path, tensors, {{"format", "pt"}});
  EXPECT_THAT(message_of([&] { load_lora(their_path, other); }),
              HasSubstr("expected adapters, or adapter_config.json beside the file"));
  put(theirs / "adapter_config.json",
      R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["c_attn", "c_proj", "c_fc"], "bias": "none"})");
  load_lora(their_path, other);
  EXPECT_TRUE(testing::same_bytes(net(ids()), other(ids())));
}

TEST_P(LoraFileTest, columns_behind_a_flatten_stand_in_the_file_as_pytorch_has_them) {
  const TemporaryFolder folder;
  const std::string path = folder / "adapters.safetensors";
  nn::Sequential net(nn::Conv2d({.in = 1, .out = 2, .kernel = 1}), nn::Flatten(), nn::Linear({.in = 6, .out = 3}));
  nn::apply_lora(net, {.rank = 1});
  EXPECT_EQ(net.state()[2].flattened_channels, 2);
  fill(net);
  save_lora(path, net);
  const TensorFile file(path);
  const HostArray a = file.read(*file.find("base_model.model.2.lora_A.weight"));
  const auto ours = nn::lora_state(net)[0].array.to_vector<float>();  // (position, channel)
  const auto theirs = a.as<float>();                                  // (channel, position)
  for (std::size_t position = 0; position < 3; ++position)
    for (std::size_t channel = 0; channel < 2; ++channel)
      EXPECT_EQ(theirs[channel * 3 + position], ours[position * 2 + channel]);
}

TEST_P(LoraFileTest, files_that_do_not_fit_are_refused) {
  const TemporaryFolder folder;
  const std::string base = folder / "base.safetensors", path = folder / "adapters.safetensors";
  models::Gpt net = tiny(), other = tiny();
  save(base, net);
  EXPECT_THAT(message_of([&] { save_lora(path, net); }), HasSubstr("has no adapters"));
  EXPECT_THAT(message_of([&] { load_lora(base, other); }), HasSubstr("expected adapters, or adapter_config.json"));
  nn::apply_lora(net, {.rank = 2});
  save_lora(path, net);
  nn::apply_lora(other, {.rank = 3});
  EXPECT_THAT(message_of([&] { load_lora(path, other); }),
              HasSubstr("expected 'base_model.model.h.0.attn.c_attn.lora_A.weight' as f32 [3, 16], found f32 [2, 16]"));
  // A rank of which the file has no rows takes no memory.
  const TensorFile file(path);
  std::vector<HostArray> values;
  std::vector<TensorView> tensors;
  for (std::size_t i = 0; i < file.tensors().size(); ++i) values.push_back(file.read(i));
  for (std::size_t i = 0; i < values.size(); ++i)
    tensors.push_back({file.tensors()[i].name, f32, values[i].shape, values[i].bytes});
  const std::string theirs = folder / "adapter_model.safetensors", config = folder / "adapter_config.json";
  save_tensors(theirs, tensors);
  put(config, R"({"r": 1000000000, "lora_alpha": 4, "target_modules": ["c_attn"]})");
  models::Gpt third = tiny();
  EXPECT_THAT(message_of([&] { load_lora(theirs, third); }), HasSubstr("with 1000000000 rows, found [2, 16]"));
  save_tensors(theirs, std::span(tensors).first(0));
  EXPECT_THAT(message_of([&] { load_lora(theirs, third); }),
              HasSubstr("expected adapters, as lora_A.weight, found none"));
  put(config, R"({"r": "2", "lora_alpha": 4})");
  EXPECT_THAT(message_of([&] { load_lora(theirs, third); }),
              ::testing::AllOf(HasSubstr("PEFT's LoraConfig"), ::testing::Not(HasSubstr("json.exception"))));
  nn::Sequential mlp(nn::Linear({.in = 2, .out = 2}));
  EXPECT_THAT(message_of([&] { load_lora(path, mlp); }),
              HasSubstr("expected adapters for Sequential, found apply_lora"));
}

}  // namespace
}  // namespace samebytes::io

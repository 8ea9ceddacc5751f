// Models whose frozen projections are quantised blocks: made when a folder is opened, or as a GGUF file has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/folders.h"
#include "samebytes/models/lora.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Rows of 64 values: blocks of 32 and 64 fit.
Json wide_config() {
  Json config = decoder_config("llama", "LlamaForCausalLM");
  config.update({{"hidden_size", 64}, {"intermediate_size", 128}, {"initializer_range", 0.15}});
  return config;
}

class QuantisedModelTest : public OnDevice {
 protected:
  static Array ids() { return ids_of({2, 5, 28, 7, 11, 3}); }
};
SAMEBYTES_ON_EVERY_DEVICE(QuantisedModelTest);

TEST_P(QuantisedModelTest, folders_open_with_blocks_that_compute_what_their_values_do) {
  const TemporaryFolder folder;
  write_folder(folder.string(), wide_config());
  const struct {
    models::Quantise how;
    QuantisedType type;
    std::size_t bytes;  // of 32 weights
  } rows[] = {{models::Quantise::q8, QuantisedType::q8_0, 34},
              {models::Quantise::q4, QuantisedType::q4_0, 18},
              {models::Quantise::nf4, QuantisedType::nf4, 18}};
  // Two layers of four projections of 64 x 64 (two of 32 rows) and three of 64 x 128.
  constexpr std::size_t kWeights = 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 128);
  for (const auto& row : rows) {
    const auto whole = models::from_pretrained(folder.string());
    for (const nn::NamedArray& entry : whole->named_parameters()) {
      if (!entry.name.ends_with("_proj.weight")) continue;
      const std::int64_t out = entry.array.shape()[0], in = entry.array.shape()[1];
      const std::vector<std::byte> bytes = quantise(entry.array.to_vector<float>(), in, row.type);
      const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
      const Array blocks = array(std::vector<std::uint8_t>(first, first + bytes.size()),
                                 {out, static_cast<std::int64_t>(bytes.size()) / out});
      assign(entry.array, dequantise(blocks, row.type));
    }
    const auto model = models::from_pretrained(folder.string(), {.quantise = row.how});
    EXPECT_LT(difference((*model)(ids()), (*whole)(ids())), 1e-4);
    EXPECT_EQ(model->weights().quantised_bytes, kWeights / 32 * row.bytes);
    EXPECT_THAT(model->weights().unused, IsEmpty());
    EXPECT_ERROR(models::save_pretrained(folder / "again", *model), ArgumentError,
                 "save_pretrained: llama has quantised projections; open the model without them, load its adapters and "
                 "merge them");
  }
}

TEST_P(QuantisedModelTest, rows_that_are_no_whole_blocks_stay_as_they_are) {
  const TemporaryFolder folder;
  write_folder(folder.string(), decoder_config("llama", "LlamaForCausalLM"));
  const auto model = models::from_pretrained(folder.string(), {.quantise = models::Quantise::q8});
  EXPECT_EQ(model->weights().quantised_bytes, 0u);
  EXPECT_TRUE(same_bytes((*model)(ids()), (*models::from_pretrained(folder.string()))(ids())));
}

TEST_P(QuantisedModelTest, adapters_learn_beside_them_and_fit_the_model_without_them) {
  const TemporaryFolder folder;
  write_folder(folder.string(), wide_config());
  const auto model = models::from_pretrained(folder.string(), {.quantise = models::Quantise::q8});
  const auto report = models::apply_lora(*model, {.rank = 2, .targets = {"all-linear"}});
  EXPECT_EQ(report.layers.size(), 14u);
  model->train();
  optim::AdamW adam(model->parameters(), {.rate = 2e-2});
  double first = 0, last = 0;
  for (int step = 0; step < 6; ++step) {
    const Array loss = models::text_loss(*model, {.x = ids()}, ids());
    adam.step(loss);
    (step == 0 ? first : last) = loss.value();
  }
  EXPECT_LT(last, 0.9 * first);
  models::save_lora(folder / "adapters", *model);
  const auto whole = models::from_pretrained(folder.string());
  models::load_lora(folder / "adapters", *whole);
  nn::merge_lora(*whole);
  model->eval();
  const Array y = (*model)(ids());
  EXPECT_LT(difference((*whole)(ids()), y), 0.05 * max(abs(y)).value());
}

}  // namespace
}  // namespace samebytes::testing

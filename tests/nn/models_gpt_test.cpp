// GPT-2: sizes, names, files, generation with and without its cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "samebytes/io/modules.h"
#include "samebytes/models.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using ::testing::ElementsAre;

class GptTest : public OnDevice {
 protected:
  static models::Gpt tiny(std::int64_t context = 16) {
    return models::gpt(
        models::GptOptions{.vocabulary = 29, .context = context, .layers = 2, .heads = 2, .width = 16, .dropout = 0.0});
  }
};
SAMEBYTES_ON_EVERY_DEVICE(GptTest);

TEST_P(GptTest, published_sizes_have_their_parameter_counts_and_cost_nothing_to_make) {
  const auto before = engine().memory().live_bytes;
  EXPECT_EQ(models::gpt(models::GptSize::small).parameter_count(), 124'439'808);
  EXPECT_EQ(models::gpt(models::GptSize::medium).parameter_count(), 354'823'168);
  const models::Gpt nano = models::gpt(models::GptSize::nano);
  EXPECT_EQ(nano.options().context, 64);
  EXPECT_EQ(nano.parameter_count(), 256 * 128 + 64 * 128 + 4 * (12 * 128 * 128 + 13 * 128) + 2 * 128);
  EXPECT_EQ(engine().memory().live_bytes, before);
}

TEST_P(GptTest, names_are_those_of_the_published_files) {
  const models::Gpt model =
      models::gpt(models::GptOptions{.vocabulary = 11, .context = 8, .layers = 1, .heads = 2, .width = 4});
  std::vector<std::string> names;
  for (const auto& entry : model.state()) names.push_back(entry.name);
  EXPECT_THAT(names,
              ElementsAre("wte.weight", "wpe.weight", "h.0.ln_1.weight", "h.0.ln_1.bias", "h.0.attn.c_attn.weight",
                          "h.0.attn.c_attn.bias", "h.0.attn.c_proj.weight", "h.0.attn.c_proj.bias", "h.0.ln_2.weight",
                          "h.0.ln_2.bias", "h.0.mlp.c_fc.weight", "h.0.mlp.c_fc.bias", "h.0.mlp.c_proj.weight",
                          "h.0.mlp.c_proj.bias", "ln_f.weight", "ln_f.bias"));
}

TEST_P(GptTest, weights_start_normal_and_smaller_before_an_addition) {
  const models::Gpt model =
      models::gpt(models::GptOptions{.vocabulary = 101, .context = 32, .layers = 8, .heads = 2, .width = 64});
  const auto deviation = [](const Array& a) { return std::sqrt(mean(square(a)).value()); };
  for (const auto& entry : model.state()) {
    if (entry.name == "wte.weight" || entry.name == "h.3.mlp.c_fc.weight") {
      EXPECT_NEAR(deviation(entry.array), 0.02, 1e-3);
    }
    if (entry.name == "h.3.mlp.c_proj.weight" || entry.name == "h.0.attn.c_proj.weight") {
      EXPECT_NEAR(deviation(entry.array), 0.005, 3e-4);
    }
    if (entry.name == "h.3.attn.c_attn.bias") {
      EXPECT_EQ(deviation(entry.array), 0);
    }
  }
}

TEST_P(GptTest, files_hold_projections_as_in_out) {
  const TemporaryFolder folder;
  const std::string path = folder / "gpt.safetensors";
  models::Gpt model = tiny(), other = tiny();
  io::save(path, model);
  const io::TensorFile file(path);
  EXPECT_EQ(file.tensors()[*file.find("h.1.attn.c_attn.weight")].shape, (Shape{16, 48}));
  EXPECT_EQ(file.tensors()[*file.find("h.1.mlp.c_proj.weight")].shape, (Shape{64, 16}));
  const Array ids = array(std::vector<std::int32_t>{1, 5, 28, 0}, {1, 4});
  EXPECT_FALSE(same_bytes(model(ids), other(ids)));
  io::load(path, other);
  EXPECT_TRUE(same_bytes(model(ids), other(ids)));
}

TEST_P(GptTest, a_token_does_not_see_later_ones) {
  models::Gpt model = tiny();
  const auto a = model(array(std::vector<std::int32_t>{3, 1, 4, 1}, {1, 4})).to_vector<double>();
  const auto b = model(array(std::vector<std::int32_t>{3, 1, 5, 9}, {1, 4})).to_vector<double>();
  for (std::size_t i = 0; i < 2 * 29; ++i) EXPECT_EQ(a[i], b[i]) << i;
  EXPECT_NE(a[2 * 29], b[2 * 29]);
}

// Makes the small logits of a fresh model differ clearly.
void sharpen(models::Gpt& model) {
  for (const auto& entry : model.state())
    if (entry.name.ends_with("weight") && entry.array.shape().rank() == 2) assign(entry.array, entry.array * 20.0);
}

TEST_P(GptTest, generation_with_the_cache_is_generation_without) {
  models::Gpt model = tiny();
  sharpen(model);
  const std::vector<std::int32_t> prompt{7, 2, 19};
  const auto came = models::generate(model, prompt, {.tokens = 13, .temperature = 0});
  std::vector<std::int32_t> want = prompt;
  while (want.size() < 16) {
    const std::int64_t length = static_cast<std::int64_t>(want.size());
    const Array logits = slice(model(array(std::span<const std::int32_t>(want), {1, length})), 1, length - 1, length);
    want.push_back(static_cast<std::int32_t>(argmax(logits).to_vector<std::int32_t>()[0]));
  }
  EXPECT_EQ(came, want);
  EXPECT_GT(std::set<std::int32_t>(came.begin(), came.end()).size(), 3u);  // no constant sequence
  EXPECT_TRUE(model.is_training());
}

TEST_P(GptTest, generation_goes_on_beyond_the_context_and_repeats_by_seed) {
  models::Gpt model = tiny(8);
  sharpen(model);
  const std::vector<std::int32_t> prompt{7, 2, 19, 4, 4, 4, 1, 2, 3, 28};
  const auto run = [&](std::uint64_t seed) {
    return models::generate(model, prompt, {.tokens = 30, .temperature = 3.0, .top_k = 9, .seed = seed});
  };
  const auto first = run(1);
  EXPECT_EQ(first.size(), 40u);
  EXPECT_EQ(first, run(1));
  EXPECT_NE(first, run(2));
  const auto plans = engine().plans().plans_made;
  run(3);
  EXPECT_EQ(engine().plans().plans_made, plans);
}

TEST_P(GptTest, draws_follow_the_probabilities) {
  models::Gpt model = tiny();
  sharpen(model);
  const std::vector<std::int32_t> prompt{7};
  const Array p = softmax(model(array(std::span<const std::int32_t>(prompt), {1, 1})) / 5.0);
  const auto likely = p.to_vector<double>();
  std::vector<double> seen(29);
  constexpr int kDraws = 400;
  for (int i = 0; i < kDraws; ++i)
    seen[static_cast<std::size_t>(models::generate(
        model, prompt, {.tokens = 1, .temperature = 5.0, .seed = static_cast<std::uint64_t>(i)})[1])] += 1;
  for (std::size_t i = 0; i < 29; ++i)
    EXPECT_NEAR(seen[i] / kDraws, likely[i], 5 * std::sqrt(likely[i] * (1 - likely[i]) / kDraws) + 1e-9) << i;
}

TEST_P(GptTest, draws_are_cut_to_the_likely_ones) {
  models::Gpt model = tiny();
  sharpen(model);
  const std::vector<std::int32_t> prompt{7};
  const Array logits = reshape(model(array(std::span<const std::int32_t>(prompt), {1, 1})), {29});
  const auto likely = softmax(logits / 5.0).to_vector<double>();
  std::vector<std::int32_t> order(29);
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
    return likely[static_cast<std::size_t>(a)] > likely[static_cast<std::size_t>(b)];
  });
  const auto share = [&](std::size_t place) { return likely[static_cast<std::size_t>(order[place])]; };
  const auto drawn = [&](models::GenerateOptions options) {
    std::set<std::int32_t> ids;
    options.tokens = 1;
    options.temperature = 5.0;
    for (options.seed = 0; options.seed < 150; ++options.seed) ids.insert(models::generate(model, prompt, options)[1]);
    return ids;
  };
  const std::set<std::int32_t> two(order.begin(), order.begin() + 2), three(order.begin(), order.begin() + 3);
  EXPECT_EQ(drawn({.top_p = share(0) + share(1) + share(2) / 2}), three);
  EXPECT_EQ(drawn({.top_p = (share(0) + share(1)) - 1e-6}), two);
  EXPECT_EQ(drawn({.top_p = 1e-9}), std::set<std::int32_t>{order[0]});
  EXPECT_EQ(drawn({.min_p = (share(1) + share(2)) / 2 / share(0)}), two);
  EXPECT_EQ(drawn({.top_k = 3, .min_p = 1e-12}), three);
  // The share of top_p is one of what top_k leaves.
  EXPECT_EQ(drawn({.top_k = 2, .top_p = share(0) / (share(0) + share(1)) + 1e-6}), two);
}

TEST_P(GptTest, what_was_there_before_becomes_less_likely) {
  models::Gpt model = tiny();
  sharpen(model);
  std::vector<std::int32_t> text{7, 2, 19};
  for (int step = 0; step < 4; ++step) {
    auto logits =
        reshape(slice(model(array(std::span<const std::int32_t>(text), {1, static_cast<std::int64_t>(text.size())})), 1,
                      static_cast<std::int64_t>(text.size()) - 1, static_cast<std::int64_t>(text.size())),
                {29})
            .to_vector<double>();
    for (const std::int32_t id : std::set<std::int32_t>(text.begin(), text.end())) {
      double& x = logits[static_cast<std::size_t>(id)];
      x = x > 0 ? x / 3 : x * 3;
    }
    text.push_back(static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
  }
  const std::vector<std::int32_t> prompt{7, 2, 19};
  EXPECT_EQ(models::generate(model, prompt, {.tokens = 4, .temperature = 0, .repetition_penalty = 3}), text);
  EXPECT_ERROR(models::generate(model, prompt, {.top_p = 0}), ArgumentError,
               "generate: top_p must be above 0 and at most 1, got 0.000000");
  EXPECT_ERROR(models::generate(model, prompt, {.min_p = 2}), ArgumentError,
               "generate: min_p must be from 0 to 1, got 2.000000");
  EXPECT_ERROR(models::generate(model, prompt, {.repetition_penalty = 0}), ArgumentError,
               "generate: the repetition penalty must be above 0, got 0.000000");
}

TEST_P(GptTest, learns_a_sequence_by_heart) {
  models::Gpt model = tiny();
  const Array ids = array(std::vector<std::int32_t>{1, 2, 3, 1, 4, 5, 1, 6, 7, 1, 8}, {1, 11});
  const Array input = contiguous(slice(ids, 1, 0, 10)), target = reshape(contiguous(slice(ids, 1, 1, 11)), {10});
  eval({input, target});
  optim::AdamW adam(model.parameters(), {.rate = 1e-2});
  const auto loss = [&] { return cross_entropy(reshape(model(input), {10, 29}), target); };
  EXPECT_NEAR(loss().value(), std::log(29.0), 0.1);
  for (int i = 0; i < 60; ++i) adam.step(loss());
  EXPECT_LT(loss().value(), 0.3);
}

TEST_P(GptTest, the_loss_of_a_chunked_head_is_that_of_the_logits) {
  models::Gpt model = tiny();
  const Array ids = array(std::vector<std::int32_t>{1, 2, 3, 1, 4, 5, 1, 6, 7, 1, 8, 2}, {2, 6});
  const Array target = array(std::vector<std::int32_t>{2, 3, 1, 4, 5, 1, 6, 7, 1, 8, 2, 1}, {2, 6});
  const std::vector<Array> cells = model.parameters();
  const Array whole = cross_entropy(model(ids), target);
  const std::vector<Array> want = gradients(whole, cells);
  EXPECT_NEAR(whole.value(), std::log(29.0), 0.1);
  for (const bool is_late : {false, true}) {
    const Array loss = model.loss(ids, target, {.chunks = 5, .late_weight_gradient = is_late});
    const std::vector<Array> came = gradients(loss, cells);
    EXPECT_NEAR(loss.value(), whole.value(), 1e-6);
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::vector<float> values = want[i].to_vector<float>();
      EXPECT_TRUE(all_close(came[i], std::vector<double>(values.begin(), values.end()), 1e-5)) << cell_name(cells[i]);
    }
  }
}

TEST_P(GptTest, wrong_arguments_are_refused) {
  models::Gpt model = tiny();
  EXPECT_ERROR((model(zeros({1, 17}, i32))), ArgumentError,
               "Gpt: ids must be [N, T] with 1 to 16 tokens, they are [1, 17]");
  const std::vector<std::int32_t> none, outside{3, 29};
  EXPECT_ERROR((models::generate(model, none)), ArgumentError, "generate: the prompt needs at least one id, got none");
  EXPECT_ERROR((models::generate(model, outside)), ArgumentError, "generate: ids must be in [0, 29), got 29");
  EXPECT_ERROR((models::generate(model, std::vector<std::int32_t>{1}, {.temperature = -1})), ArgumentError,
               "generate: the temperature must be 0 or more, got -1.000000");
  EXPECT_ERROR((models::gpt(models::GptOptions{.layers = 0})), ArgumentError, "Gpt: layers must be at least 1, got 0");
  models::GptCache cache;
  EXPECT_ERROR((model.forward(zeros({1, 1}, i32), cache)), ArgumentError,
               "Gpt: expected one cache per layer, got 0 for 2 layers");
}

}  // namespace
}  // namespace samebytes::testing

// Self-attention, its cache and the block of a transformer.
#include "samebytes/nn/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "samebytes/nn/transformer.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using ::testing::ElementsAre;

class AttentionLayersTest : public OnDevice {
 protected:
  static std::vector<std::string> names(const nn::Module& module) {
    std::vector<std::string> result;
    for (const auto& entry : module.state()) result.push_back(entry.name);
    return result;
  }
};
SAMEBYTES_ON_EVERY_DEVICE(AttentionLayersTest);

TEST_P(AttentionLayersTest, names_shapes_and_start_are_those_of_pytorch) {
  const nn::MultiHeadAttention layer({.width = 96, .heads = 4});
  EXPECT_THAT(names(layer), ElementsAre("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"));
  const auto state = layer.state();
  EXPECT_EQ(state[0].array.shape(), (Shape{288, 96}));
  EXPECT_EQ(state[2].array.shape(), (Shape{96, 96}));
  const auto largest = [](const Array& a) { return max(abs(a)).value(); };
  const double xavier = std::sqrt(6.0 / (96 + 288)), linear = 1 / std::sqrt(96.0);
  EXPECT_LE(largest(state[0].array), xavier * (1 + 1e-6));
  EXPECT_GT(largest(state[0].array), xavier * 0.99);
  EXPECT_LE(largest(state[2].array), linear * (1 + 1e-6));
  EXPECT_GT(largest(state[2].array), linear * 0.99);
  EXPECT_EQ(largest(state[1].array), 0);
  EXPECT_EQ(largest(state[3].array), 0);
  const nn::MultiHeadAttention grouped({.width = 96, .heads = 4, .kv_heads = 2, .bias = false});
  EXPECT_THAT(names(grouped), ElementsAre("in_proj_weight", "out_proj.weight"));
  EXPECT_EQ(grouped.state()[0].array.shape(), (Shape{192, 96}));
  EXPECT_EQ(grouped.describe(), "MultiHeadAttention(96, heads=4, kv_heads=2)");
}

// The same from products and soft-max, with the whole matrix of scores.
TEST_P(AttentionLayersTest, agrees_with_products_and_soft_max) {
  const std::int64_t n = 2, t = 7, heads = 4, kv_heads = 2, depth = 8, width = heads * depth;
  nn::MultiHeadAttention layer({.width = width, .heads = heads, .kv_heads = kv_heads, .causal = true});
  const auto state = layer.state();
  assign(state[1].array, uniform(state[1].array.shape(), -1, 1));
  assign(state[3].array, uniform(state[3].array.shape(), -1, 1));
  const Array x = uniform({n, t, width}, -1, 1);
  const Array qkv = reshape(linear(x, state[0].array, state[1].array), {n, t, heads + 2 * kv_heads, depth});
  const auto by_head = [&](std::int64_t first, std::int64_t count) {
    const Array part = transpose(slice(qkv, 2, first, first + count), {0, 2, 1, 3});  // [N, count, T, D]
    if (count == heads) return part;
    return reshape(broadcast_to(unsqueeze(part, 2), {n, count, heads / count, t, depth}), {n, heads, t, depth});
  };
  const Array scores = matmul(by_head(0, heads), transpose(by_head(heads, kv_heads))) * (1 / std::sqrt(8.0));
  const Array future = greater(reshape(arange(0, t), {1, t}), reshape(arange(0, t), {t, 1}));
  const Array p = softmax(where(broadcast_to(future, scores.shape()), full(scores.shape(), -1e30), scores));
  const Array y = reshape(transpose(matmul(p, by_head(heads + kv_heads, kv_heads)), {0, 2, 1, 3}), {n, t, width});
  const Array want = linear(y, state[2].array, state[3].array);
  EXPECT_TRUE(all_close(layer(x), want.to_vector<double>(), sum_tolerance(f32, 200)));
}

TEST_P(AttentionLayersTest, rotary_positions_turn_queries_and_keys_only) {
  const std::int64_t heads = 2, depth = 4, width = 8;
  nn::MultiHeadAttention layer({.width = width, .heads = heads, .rotary = RotaryOptions{.base = 100}});
  const auto state = layer.state();
  const Array x = uniform({1, 5, width}, -1, 1);
  const Array qkv = reshape(linear(x, state[0].array, state[1].array), {1, 5, 6, depth});
  const Array y = scaled_dot_product_attention(rotary(slice(qkv, 2, 0, 2), {.base = 100}),
                                               rotary(slice(qkv, 2, 2, 4), {.base = 100}), slice(qkv, 2, 4, 6));
  EXPECT_TRUE(
      all_close(layer(x), linear(reshape(y, {1, 5, 8}), state[2].array, state[3].array).to_vector<double>(), 1e-5));
}

TEST_P(AttentionLayersTest, a_cache_gives_token_by_token_what_the_whole_gives) {
  const NoGrad no_grad;
  nn::TransformerBlock block({.width = 24, .heads = 4, .kv_heads = 2, .rotary = RotaryOptions{}});
  const Array x = uniform({2, 11, 24}, -1, 1);
  const std::vector<double> whole = block(x).to_vector<double>();
  nn::KeyValueCache cache = block.make_cache(2, 16);
  std::vector<Array> parts{block.forward(slice(x, 1, 0, 4), cache)};
  eval(parts);
  EXPECT_EQ(cache.length(), 4);
  std::uint64_t plans = 0, programs = 0;
  for (std::int64_t t = 4; t < 11; ++t) {
    if (t == 6) {
      plans = engine().plans().plans_made;
      programs = engine().plans().programs_built;
    }
    const Array token = contiguous(slice(x, 1, t, t + 1)).eval();
    parts.push_back(block.forward(token, cache).eval());
  }
  EXPECT_EQ(engine().plans().programs_built, programs);
  EXPECT_LE(engine().plans().plans_made, plans + 5);  // those of slice, whose start is part of the view
  EXPECT_TRUE(all_close(concat(parts, 1), whole, sum_tolerance(f32, 200)));
  cache.reset();
  EXPECT_TRUE(all_close(block.forward(x, cache), whole, sum_tolerance(f32, 200)));
  EXPECT_ERROR((block.forward(x, cache)), ArgumentError, "KeyValueCache: no room for 11 tokens behind 11 of 16");
  EXPECT_ERROR((cache.reset(12)), ArgumentError, "KeyValueCache: can go back to between 0 and 11 tokens, got 12");
}

TEST_P(AttentionLayersTest, every_further_token_finds_the_plan_of_the_one_before) {
  const NoGrad no_grad;
  nn::TransformerBlock block({.width = 16, .heads = 2});
  nn::KeyValueCache cache = block.make_cache(1, 32);
  const auto step = [&] { return block.forward(full({1, 1, 16}, 0.5), cache).wait(); };
  step();
  step();
  const auto plans = engine().plans().plans_made;
  const auto allocations = engine().memory().allocations;
  for (int i = 0; i < 20; ++i) step();
  EXPECT_EQ(engine().plans().plans_made, plans);
  EXPECT_EQ(engine().memory().allocations, allocations);
}

TEST_P(AttentionLayersTest, padding_changes_nothing_before_it) {
  nn::TransformerBlock block({.width = 16, .heads = 2, .causal = false});
  const Array x = uniform({2, 7, 16}, -1, 1);
  const Array y = block.forward(x, array(std::vector<std::int32_t>{7, 4}, {2}));
  EXPECT_TRUE(all_close(slice(y, 0, 0, 1), slice(block(x), 0, 0, 1).to_vector<double>(), 1e-6));
  const Array alone = block(contiguous(slice(slice(x, 0, 1, 2), 1, 0, 4)));
  EXPECT_TRUE(all_close(slice(slice(y, 0, 1, 2), 1, 0, 4), alone.to_vector<double>(), 1e-5));
}

TEST_P(AttentionLayersTest, a_cache_works_op_by_op) {
  const auto own = make_engine(GetParam(), {.check_nan = true});
  const EngineScope use(*own);
  const NoGrad no_grad;
  nn::TransformerBlock block({.width = 8, .heads = 2});
  const Array x = uniform({1, 3, 8}, -1, 1);
  const std::vector<double> whole = block(x).to_vector<double>();
  nn::KeyValueCache cache = block.make_cache(1, 3);
  block.forward(slice(x, 1, 0, 2), cache).eval();
  EXPECT_TRUE(
      all_close(block.forward(slice(x, 1, 2, 3), cache), std::vector<double>(whole.begin() + 16, whole.end()), 1e-5));
}

TEST_P(AttentionLayersTest, dropout_is_of_training_only) {
  nn::TransformerBlock block({.width = 16, .heads = 2, .dropout = 0.5});
  const Array x = uniform({1, 5, 16}, -1, 1);
  EXPECT_FALSE(same_bytes(block(x), block(x)));
  block.eval();
  EXPECT_TRUE(same_bytes(block(x), block(x)));
}

TEST_P(AttentionLayersTest, block_names_are_those_of_either_world) {
  const nn::TransformerBlock block({.width = 8, .heads = 2});
  EXPECT_THAT(names(block),
              ElementsAre("self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight",
                          "self_attn.out_proj.bias", "linear1.weight", "linear1.bias", "linear2.weight", "linear2.bias",
                          "norm1.weight", "norm1.bias", "norm2.weight", "norm2.bias"));
  const nn::TransformerBlock gpt2({.width = 8, .heads = 2, .names = nn::TransformerNames::gpt2});
  EXPECT_THAT(names(gpt2), ElementsAre("ln_1.weight", "ln_1.bias", "attn.c_attn.weight", "attn.c_attn.bias",
                                       "attn.c_proj.weight", "attn.c_proj.bias", "ln_2.weight", "ln_2.bias",
                                       "mlp.c_fc.weight", "mlp.c_fc.bias", "mlp.c_proj.weight", "mlp.c_proj.bias"));
}

TEST_P(AttentionLayersTest, the_gradient_of_a_block_is_the_numerical_one) {
  SAMEBYTES_NEEDS_F64();
  nn::TransformerBlock block({.width = 4, .heads = 2, .hidden = 6, .rotary = RotaryOptions{}, .dtype = f64});
  EXPECT_TRUE(check_gradients([&](auto x) { return block(x[0]); }, {random_input("x", {1, 3, 4})}));
}

TEST_P(AttentionLayersTest, a_block_learns) {
  nn::TransformerBlock block({.width = 16, .heads = 4});
  const Array x = uniform({4, 9, 16}, -1, 1);
  const Array target = concat({slice(x, 1, 0, 1), slice(x, 1, 0, 8)}, 1);  // the token before
  eval({x, target});
  optim::AdamW adam(block.parameters(), {.rate = 1e-2});
  const double before = mse_loss(block(x), target).value();
  for (int i = 0; i < 60; ++i) adam.step(mse_loss(block(x), target));
  EXPECT_LT(mse_loss(block(x), target).value(), 0.25 * before);
}

TEST_P(AttentionLayersTest, wrong_options_and_shapes_are_named) {
  EXPECT_ERROR(
      (nn::MultiHeadAttention({.width = 10, .heads = 4})), ArgumentError,
      "MultiHeadAttention: heads must divide the width and kv_heads the heads, got width 10, heads 4, kv_heads 4");
  EXPECT_ERROR((nn::MultiHeadAttention({.width = 6, .heads = 2, .rotary = RotaryOptions{}})), ArgumentError,
               "MultiHeadAttention: rotary positions need an even number of values per head, got 3");
  EXPECT_ERROR((nn::TransformerBlock({.width = 8, .heads = 2, .dropout = 1.0})), ArgumentError,
               "MultiHeadAttention: dropout must be in [0, 1), got 1.000000");
  nn::MultiHeadAttention layer({.width = 8, .heads = 2});
  EXPECT_ERROR((layer(zeros({2, 8}))), ArgumentError, "MultiHeadAttention: x must be [N, T, 8], it is [2, 8]");
  nn::KeyValueCache cache = layer.make_cache(1, 4);
  EXPECT_ERROR((layer.forward(zeros({1, 1, 8}), cache)), ArgumentError,
               "MultiHeadAttention: a cache needs causal attention");
  EXPECT_ERROR((cache.append(zeros({2, 1, 4, 4}))), ArgumentError,
               "KeyValueCache: kv must be [1, T, 4, 4], it is [2, 1, 4, 4]");
}

}  // namespace
}  // namespace samebytes::testing

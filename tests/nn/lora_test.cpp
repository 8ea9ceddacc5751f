// LoRA: the base stays bit for bit, adapters learn by the numerical gradient, merging and taking out again, which
// layers are chosen, and what is refused.
#include "samebytes/nn/lora.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "samebytes/estimate.h"
#include "samebytes/models.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using ::testing::ElementsAre;

class LoraTest : public OnDevice {
 protected:
  static models::Gpt tiny(std::int64_t layers = 2) {
    return models::gpt(
        models::GptOptions{.vocabulary = 23, .context = 8, .layers = layers, .heads = 2, .width = 16, .dropout = 0.0});
  }
  static nn::Sequential mlp(Dtype dtype = f32) {
    return nn::Sequential(nn::Linear({.in = 5, .out = 7, .dtype = dtype}), nn::Gelu(),
                          nn::Linear({.in = 7, .out = 3, .dtype = dtype}));
  }
  static Array ids() {
    std::vector<std::int32_t> values;
    for (int i = 0; i < 16; ++i) values.push_back(i * 7 % 23);
    return array(values, {2, 8});
  }
  static Array targets() {
    std::vector<std::int32_t> values;
    for (int i = 0; i < 16; ++i) values.push_back(i * 5 % 23);
    return array(values, {2, 8});
  }
  static std::map<std::string, std::vector<float>> values_of(const nn::Module& module, bool adapters) {
    std::map<std::string, std::vector<float>> values;
    for (const nn::NamedArray& entry : module.state())
      if (entry.is_adapter == adapters) values[entry.name] = entry.array.to_vector<float>();
    return values;
  }
  // Values for lora_B too, which starts as 0.
  static void fill_adapters(const nn::Module& module, double bound = 0.5) {
    std::uint64_t seed = 1;
    for (const nn::NamedArray& entry : module.state())
      if (entry.is_adapter)
        assign(entry.array, real_array(random_values(entry.array.size(), ++seed, -bound, bound), entry.array.shape(),
                                       entry.array.dtype()));
  }
  static std::vector<std::string> names_of(const std::vector<nn::NamedArray>& state) {
    std::vector<std::string> names;
    for (const auto& entry : state) names.push_back(entry.name);
    return names;
  }
  // Every number of every trainable parameter against central differences of `loss`.
  static void check_parameters(const nn::Module& module, const std::function<Array()>& loss) {
    const std::vector<Array> parameters = module.parameters();
    const std::vector<Array> came = gradients(loss(), parameters);
    constexpr double kStep = 1e-5;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const std::vector<double> values = parameters[p].to_vector<double>(), slopes = came[p].to_vector<double>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        const auto at = [&](double moved) {
          std::vector<double> changed = values;
          changed[i] += moved;
          assign(parameters[p], array(changed, parameters[p].shape()));
          return loss().value();
        };
        const double slope = (at(kStep) - at(-kStep)) / (2 * kStep);
        EXPECT_NEAR(slopes[i], slope, 1e-7 * (1 + std::abs(slope))) << cell_name(parameters[p]) << " " << i;
      }
      assign(parameters[p], array(values, parameters[p].shape()));
    }
  }
};
SAMEBYTES_ON_EVERY_DEVICE(LoraTest);

TEST_P(LoraTest, the_network_begins_as_what_it_was_and_follows_the_formula) {
  nn::Linear layer({.in = 5, .out = 3});
  const Array x = real_array(random_values(20, 9), {4, 5}, f32);
  const std::vector<float> before = layer(x).to_vector<float>();
  nn::apply_lora(layer, {.rank = 2, .alpha = 6});
  EXPECT_EQ(layer(x).to_vector<float>(), before);
  fill_adapters(layer);
  const std::vector<nn::NamedArray> state = layer.state();
  ASSERT_THAT(names_of(state), ElementsAre("weight", "bias", "lora_A.weight", "lora_B.weight"));
  EXPECT_EQ(state[2].array.shape(), (Shape{2, 5}));
  EXPECT_EQ(state[3].array.shape(), (Shape{3, 2}));
  const auto a = state[2].array.to_vector<double>(), b = state[3].array.to_vector<double>(),
             inputs = x.to_vector<double>();
  std::vector<double> want(before.begin(), before.end());
  for (std::size_t n = 0; n < 4; ++n)
    for (std::size_t o = 0; o < 3; ++o)
      for (std::size_t r = 0; r < 2; ++r)
        for (std::size_t i = 0; i < 5; ++i) want[n * 3 + o] += 3.0 * b[o * 2 + r] * a[r * 5 + i] * inputs[n * 5 + i];
  EXPECT_TRUE(all_close(layer(x), want, sum_tolerance(f32, 10)));
}

TEST_P(LoraTest, the_first_matrix_starts_as_kaiming_uniform_does_and_the_second_as_zeros) {
  nn::Linear layer({.in = 64, .out = 40});
  nn::apply_lora(layer, {.rank = 16});
  const auto a = layer.state()[2].array.to_vector<double>();
  double most = 0, squares = 0;
  for (const double v : a) most = std::max(most, std::abs(v)), squares += v * v;
  EXPECT_LE(most, 0.125);
  EXPECT_GT(most, 0.12);
  EXPECT_NEAR(squares / static_cast<double>(a.size()), 0.125 * 0.125 / 3, 0.0005);
  EXPECT_EQ(max(layer.state()[3].array).value(), 0);
}

TEST_P(LoraTest, training_leaves_the_base_bit_for_bit_and_learns) {
  models::Gpt net = tiny(1);
  const auto report = nn::apply_lora(net, {.rank = 4, .targets = {"all-linear"}});
  EXPECT_EQ(report.layers.size(), 4u);
  const auto base = values_of(net, false), first = values_of(net, true);
  const std::vector<Array> parameters = net.parameters();
  EXPECT_EQ(parameters.size(), 8u);
  optim::AdamW adam(parameters, {.rate = 1e-2, .weight_decay = 0.1, .clip_norm = 1.0});
  std::vector<double> losses;
  for (int step = 0; step < 30; ++step) {
    const Array loss = cross_entropy(net(ids()), targets());
    adam.step(loss);
    losses.push_back(loss.value());
  }
  EXPECT_LT(losses.back(), 0.95 * losses.front());
  EXPECT_EQ(values_of(net, false), base);
  for (const auto& [name, values] : values_of(net, true)) EXPECT_NE(values, first.at(name)) << name;
  // Only adapters have gradients and state.
  std::int64_t numbers = 0;
  for (const Array& parameter : parameters) numbers += parameter.size();
  EXPECT_EQ(numbers, report.trainable);
  EXPECT_EQ(net.trainable_parameter_count(), report.trainable);
  EXPECT_EQ(net.parameter_count(), report.all);
  ASSERT_EQ(adam.arenas().size(), 1u);
  EXPECT_LT(adam.arenas()[0].size(), report.trainable + 32 * 16);
}

TEST_P(LoraTest, adapters_have_the_numerical_gradient) {
  SAMEBYTES_NEEDS_F64();
  nn::TransformerBlock block({.width = 4, .heads = 2, .dtype = f64});
  nn::apply_lora(block, {.rank = 2, .alpha = 3, .targets = {"all-linear"}});
  fill_adapters(block);
  const Array x = real_array(random_values(24, 5), {2, 3, 4}, f64);
  check_parameters(block, [&] { return sum(square(block(x))); });
}

TEST_P(LoraTest, adapters_with_dropout_and_of_linear_layers_have_the_numerical_gradient) {
  SAMEBYTES_NEEDS_F64();
  nn::Sequential net = mlp(f64);
  nn::apply_lora(net, {.rank = 3, .rank_stabilized = true});
  fill_adapters(net);
  const Array x = real_array(random_values(20, 5), {4, 5}, f64);
  check_parameters(net, [&] { return sum(square(net(x))); });
}

TEST_P(LoraTest, merged_adapters_compute_the_same_and_come_out_again) {
  models::Gpt net = tiny();
  nn::apply_lora(net, {.rank = 4, .targets = {"c_attn", "c_proj"}});
  fill_adapters(net, 0.1);
  const auto weights = values_of(net, false);
  const Array apart = net(ids());
  const std::vector<double> want = apart.to_vector<double>();
  nn::merge_lora(net);
  EXPECT_NE(values_of(net, false), weights);
  EXPECT_TRUE(all_close(net(ids()), want, 2e-5));
  const auto merged = values_of(net, false);
  nn::merge_lora(net);  // nothing twice
  EXPECT_EQ(values_of(net, false), merged);
  nn::unmerge_lora(net);
  for (const auto& [name, values] : values_of(net, false))
    for (std::size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], weights.at(name)[i], 1e-6) << name;
  EXPECT_TRUE(all_close(net(ids()), want, 2e-5));
  nn::merge_lora(net);
  nn::unload_lora(net);
  EXPECT_FALSE(nn::has_lora(net));
  EXPECT_EQ(net.parameters().size(), 28u);
  EXPECT_TRUE(all_close(net(ids()), want, 2e-5));
}

TEST_P(LoraTest, a_network_without_merged_adapters_is_the_old_one_again) {
  models::Gpt net = tiny();
  const std::vector<float> before = net(ids()).to_vector<float>();
  nn::apply_lora(net);
  fill_adapters(net);
  EXPECT_NE(net(ids()).to_vector<float>(), before);
  nn::unload_lora(net);
  EXPECT_EQ(net(ids()).to_vector<float>(), before);
}

TEST_P(LoraTest, targets_are_names_from_a_dot_on) {
  const auto layers = [](std::vector<std::string> targets) {
    models::Gpt net = tiny();
    return nn::apply_lora(net, {.targets = std::move(targets)}).layers;
  };
  EXPECT_THAT(layers({}), ElementsAre("h.0.attn.c_attn", "h.1.attn.c_attn"));
  EXPECT_THAT(layers({"c_proj"}),
              ElementsAre("h.0.attn.c_proj", "h.0.mlp.c_proj", "h.1.attn.c_proj", "h.1.mlp.c_proj"));
  EXPECT_THAT(layers({"mlp.c_proj", "h.1.mlp.c_fc"}), ElementsAre("h.0.mlp.c_proj", "h.1.mlp.c_fc", "h.1.mlp.c_proj"));
  nn::TransformerBlock block({.width = 8, .heads = 2});
  EXPECT_THAT(nn::apply_lora(block).layers, ElementsAre("self_attn.in_proj"));
  nn::Sequential net = mlp();
  const nn::LoraReport report = nn::apply_lora(net, {.rank = 1});
  EXPECT_THAT(report.layers, ElementsAre("0", "2"));
  EXPECT_EQ(report.to_text(), "22 of 88 parameters are trained (25.00 %), in 2 layers");
}

TEST_P(LoraTest, a_layer_that_shares_its_weight_shares_its_adapter) {
  const nn::Linear layer({.in = 6, .out = 6});
  nn::Sequential net(nn::tied(layer), nn::Relu(), nn::tied(layer));
  EXPECT_EQ(nn::apply_lora(net, {.rank = 2}).trainable, 24);
  EXPECT_EQ(net.parameters().size(), 2u);
  fill_adapters(net);
  const Array x = real_array(random_values(12, 3), {2, 6}, f32);
  const std::vector<double> want = net(x).to_vector<double>();
  nn::merge_lora(net);
  EXPECT_TRUE(all_close(net(x), want, 1e-5));
}

TEST_P(LoraTest, modules_to_save_are_trained_whole) {
  nn::Sequential net = mlp();
  const auto report = nn::apply_lora(net, {.rank = 2, .targets = {"all-linear"}, .modules_to_save = {"2"}});
  EXPECT_THAT(report.layers, ElementsAre("0"));
  EXPECT_EQ(report.trainable, 2 * (5 + 7) + 7 * 3 + 3);
  EXPECT_THAT(names_of(nn::lora_state(net)), ElementsAre("0.lora_A.weight", "0.lora_B.weight", "2.weight", "2.bias"));
  nn::unload_lora(net);
  EXPECT_EQ(net.trainable_parameter_count(), net.parameter_count());
}

TEST_P(LoraTest, adapters_know_modes_and_may_be_frozen) {
  nn::Sequential net = mlp();
  net.eval();
  nn::apply_lora(net, {.rank = 2, .dropout = 0.5});
  fill_adapters(net);
  const Array x = real_array(random_values(20, 5), {4, 5}, f32);
  const std::vector<float> plain = net(x).to_vector<float>();
  EXPECT_EQ(net(x).to_vector<float>(), plain);
  net.train();
  EXPECT_NE(net(x).to_vector<float>(), plain);
  net.freeze();
  EXPECT_TRUE(net.parameters().empty());
  EXPECT_EQ(nn::lora_state(net).size(), 4u);
}

TEST_P(LoraTest, composes_with_checkpointing_sixteen_bits_and_accumulation) {
  const auto train = [&](const std::function<void(models::Gpt&)>& prepare, bool in_bf16, bool in_pieces) {
    const auto own = make_engine(GetParam(), {.seed = 3});
    const EngineScope use(*own);
    models::Gpt net = tiny(1);
    nn::apply_lora(net, {.rank = 4, .dropout = 0.2, .targets = {"all-linear"}});
    prepare(net);
    if (in_bf16) {
      std::vector<Array> all;
      for (const nn::NamedArray& entry : net.named_parameters()) all.push_back(entry.array);
      keep_working_copies(all, bf16);
    }
    optim::AdamW adam(net.parameters(), {.rate = 1e-2});
    std::optional<optim::Accumulator> sums;
    if (in_pieces) sums.emplace(adam);
    double last = 0;
    for (int step = 0; step < 4; ++step) {
      std::optional<Autocast> scope;
      if (in_bf16) scope.emplace(AutocastOptions{.dtype = bf16});
      const Array loss = cross_entropy(net(ids()), targets());
      if (in_pieces) {
        sums->add(loss, 2.0);
        sums->step();
      } else {
        adam.step(loss);
      }
      last = loss.value();
    }
    return last;
  };
  const double plain = train([](models::Gpt&) {}, false, false);
  EXPECT_EQ(train([](models::Gpt& net) { net.gradient_checkpointing(); }, false, false), plain);
  EXPECT_NEAR(train([](models::Gpt&) {}, false, true), plain, 1e-5);
  EXPECT_NEAR(train([](models::Gpt&) {}, true, false), plain, 0.05);
}

TEST_P(LoraTest, frozen_weights_take_no_memory_for_gradients_and_moments) {
  const auto need = [&](bool with_adapters) {
    return plan_memory({.device = engine().device().name}, [&] {
      nn::Sequential net(nn::Linear({.in = 512, .out = 512}), nn::Relu(), nn::Linear({.in = 512, .out = 512}));
      if (with_adapters) nn::apply_lora(net, {.rank = 4});
      optim::AdamW adam(net.parameters());
      for (int step = 0; step < 2; ++step) adam.step(mean(square(net(zeros({8, 512})))));
    });
  };
  const MemoryParts whole = need(false), adapted = need(true);
  constexpr std::size_t kBase = 2 * (512 * 512 + 512) * 4, kAdapters = 4 * 4 * 512 * 4;
  EXPECT_GE(whole.total(), 4 * kBase);  // weights, gradients, two moments
  EXPECT_LT(adapted.total(), kBase + 4 * kAdapters + (std::size_t{1} << 19));
}

TEST_P(LoraTest, wrong_arguments_are_named_and_change_nothing) {
  models::Gpt net = tiny();
  EXPECT_ERROR((nn::apply_lora(net, {.rank = 0})), ArgumentError, "Lora: rank must be at least 1, got 0");
  EXPECT_ERROR((nn::apply_lora(net, {.alpha = 0})), ArgumentError, "Lora: alpha must be above 0, got 0.000000");
  EXPECT_ERROR((nn::apply_lora(net, {.dropout = 1})), ArgumentError, "Lora: dropout must be in [0, 1), got 1.000000");
  EXPECT_ERROR((nn::apply_lora(net, {.targets = {"c_attn", "q_proj"}})), ArgumentError,
               "apply_lora: targets has q_proj, which matches no linear layer; there are c_attn, c_proj, c_fc");
  EXPECT_ERROR((nn::apply_lora(net, {.modules_to_save = {"head"}})), ArgumentError,
               "apply_lora: modules_to_save has head, which matches no module; there are 0, ln_1, attn, ln_2, 1, ln_f");
  EXPECT_FALSE(nn::has_lora(net));
  EXPECT_EQ(net.parameters().size(), 28u);
  nn::Relu relu;
  EXPECT_ERROR(nn::apply_lora(relu), ArgumentError, "apply_lora: Relu has no linear layer");
  EXPECT_ERROR(nn::merge_lora(net), ArgumentError,
               "merge_lora: Gpt(23, context=8, layers=2, heads=2, width=16) has no adapters; apply_lora() first");
  EXPECT_ERROR(nn::lora_state(net), ArgumentError,
               "lora_state: Gpt(23, context=8, layers=2, heads=2, width=16) has no adapters; apply_lora() first");
  nn::apply_lora(net);
  EXPECT_ERROR(nn::apply_lora(net), ArgumentError,
               "apply_lora: Gpt(23, context=8, layers=2, heads=2, width=16) has adapters already; unload_lora() first");
  EXPECT_ERROR((nn::Lora(zeros({3}), {})), ArgumentError, "Lora: the weight must be floating [out, in], got f32 [3]");
}

}  // namespace
}  // namespace samebytes::testing

// Modules with several inputs, children that a module forgets to name, lists, cross-attention, and the first call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

class SeveralInputsTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(SeveralInputsTest);

class TwoTowers final : public nn::Module {
 public:
  Array forward_all(std::span<const Array> x) override {
    if (x.size() != 2) return Module::forward_all(x);
    return head_(relu(left_(x[0])) + relu(right_(x[1])));
  }
  void visit(nn::Visitor& v) override {
    v.child("left", left_);
    v.child("right", right_);
    v.child("head", head_);
  }
  std::string kind() const override { return "TwoTowers"; }

 private:
  nn::Linear left_{{.in = 3, .out = 4}}, right_{{.in = 5, .out = 4}}, head_{{.in = 4, .out = 2}};
};

TEST_P(SeveralInputsTest, a_module_takes_several_arrays_and_trains_clones_and_sums_up) {
  TwoTowers net;
  nn::Module& any = net;
  const Array a = uniform({6, 3}, -1, 1), b = uniform({6, 5}, -1, 1);
  eval({a, b});
  const std::vector<Array> both{a, b};
  EXPECT_EQ(any(a, b).shape(), (Shape{6, 2}));
  EXPECT_TRUE(same_bytes(any(a, b), any({a, b})));
  EXPECT_TRUE(same_bytes(any(a, b), any(both)));
  TwoTowers copy = nn::clone(net);
  EXPECT_TRUE(same_bytes(any(a, b), copy(a, b)));
  optim::Sgd sgd(net.parameters(), {.rate = 0.1});
  sgd.step(sum(square(net(a, b))));
  for (std::size_t i = 0; i < net.state().size(); ++i)
    EXPECT_NE(net.state()[i].array.to_vector<float>(), copy.state()[i].array.to_vector<float>()) << i;
  const std::string text = nn::summary(net, {{.shape = {6, 3}}, {.shape = {6, 5}}});
  EXPECT_THAT(text, HasSubstr("right  Linear(5, 4)"));
  EXPECT_THAT(text, HasSubstr("inputs [6, 3], [6, 5], 50 parameters\n"));
  EXPECT_ERROR((any(a)), ArgumentError, "TwoTowers: takes several inputs, got 1; call it with all of them: net(a, b)");
  nn::Linear one({.in = 3, .out = 1});
  EXPECT_ERROR((one(a, b)), ArgumentError,
               "Linear(3, 1): takes one input, got 2; a module with several inputs overrides forward_all()");
}

class Forgetful final : public nn::Module {
 public:
  Array forward(const Array& x) override { return second_(first_(x)); }
  void visit(nn::Visitor& v) override { v.child("first", first_); }
  std::string kind() const override { return "Forgetful"; }
  nn::Linear& second() { return second_; }

 private:
  nn::Linear first_{{.in = 2, .out = 2}}, second_{{.in = 2, .out = 2}};
};

TEST_P(SeveralInputsTest, a_child_that_visit_forgets_is_an_error_before_it_silently_does_not_train) {
  nn::Sequential net(nn::Linear({.in = 2, .out = 2}), Forgetful());
  const Array x = ones({1, 2});
  optim::Sgd sgd(net.parameters(), {.rate = 0.1});
  EXPECT_ERROR((net(x)), ArgumentError,
               "layer 1, Forgetful: Sequential: calls Linear(2, 2), which no visit() names, so it would never train; "
               "add visitor.child(\"name\", member) to the visit() of its owner, or freeze() it if it must not train");
  {
    const NoGrad no_grad;
    EXPECT_NO_THROW(net(x));
  }
  dynamic_cast<Forgetful&>(net[1]).second().freeze();
  EXPECT_NO_THROW(net(x));
}

class Branches final : public nn::Module {
 public:
  Branches() {
    for (int i = 0; i < 3; ++i) list_.add(nn::Linear({.in = 2, .out = 2}));
  }
  Array forward(const Array& x) override {
    Array y = list_[0](x);
    for (std::size_t i = 1; i < list_.size(); ++i) y = y + list_[i](x);
    return y;
  }
  void visit(nn::Visitor& v) override { v.child("branches", list_); }

 private:
  nn::ModuleList list_;
};

TEST_P(SeveralInputsTest, a_list_names_its_modules) {
  Branches net;
  EXPECT_EQ(net.parameters().size(), 6u);
  EXPECT_EQ(net.state()[5].name, "branches.2.bias");
  const Array x = ones({1, 2});
  Branches copy = nn::clone(net);
  EXPECT_TRUE(same_bytes(net(x), copy(x)));
  nn::ModuleList list;
  EXPECT_ERROR((list[0]), ArgumentError, "ModuleList: has 0 modules, number 0 was asked for");
}

TEST_P(SeveralInputsTest, cross_attention_of_an_array_to_itself_is_self_attention) {
  for (const bool rotates : {false, true}) {
    nn::MultiHeadAttentionOptions options{.width = 16, .heads = 4, .kv_heads = 2};
    if (rotates) options.rotary.emplace();
    nn::MultiHeadAttention layer(options);
    nn::Module& any = layer;
    assign(layer.state()[1].array, uniform(layer.state()[1].array.shape(), -1, 1));
    const Array x = uniform({2, 5, 16}, -1, 1), lengths = array(std::vector<std::int32_t>{5, 3}, {2});
    eval({x});
    const auto want = layer(x).to_vector<double>();
    EXPECT_TRUE(all_close(any(x, x, x), want, 1e-5));
    EXPECT_TRUE(all_close(any(x, x, x, lengths), any(x, lengths).to_vector<double>(), 1e-5));
  }
}

TEST_P(SeveralInputsTest, a_decoder_block_has_pytorchs_names_and_sees_the_memory_up_to_its_length) {
  nn::TransformerDecoderBlock block({.width = 8, .heads = 2, .hidden = 12});
  EXPECT_EQ(block.state()[4].name, "multihead_attn.in_proj_weight");
  EXPECT_EQ(block.state()[8].name, "linear1.weight");
  EXPECT_EQ(block.state().back().name, "norm3.bias");
  const Array x = uniform({2, 3, 8}, -1, 1), memory = uniform({2, 6, 8}, -1, 1);
  const Array lengths = array(std::vector<std::int32_t>{4, 4}, {2});
  eval({x, memory});
  const Array y = block(x, memory, lengths);
  EXPECT_EQ(y.shape(), (Shape{2, 3, 8}));
  EXPECT_TRUE(all_close(y, block(x, slice(memory, 1, 0, 4)).to_vector<double>(), 1e-5));
  const auto grads = gradients(sum(square(y)), block.parameters());
  for (const Array& grad : grads) EXPECT_GT(sum(abs(grad)).value(), 0);
  // Query t sees x up to t alone.
  const Array first = block(slice(x, 1, 0, 1), memory, lengths);
  EXPECT_TRUE(all_close(slice(y, 1, 0, 1), first.to_vector<double>(), 1e-5));
}

TEST_P(SeveralInputsTest, a_channels_first_image_is_named_with_its_remedy) {
  nn::Conv2d conv({.in = 3, .out = 4, .kernel = 3});
  EXPECT_ERROR((conv(zeros({2, 3, 8, 9}))), ArgumentError,
               "Conv2d(3, 4, kernel=3): x must be channels last, [N, H, W, 3], it is [2, 3, 8, 9], which looks like "
               "channels first, [N, 3, H, W]; call contiguous(transpose(x, {0, 2, 3, 1})) before the network, once");
  EXPECT_THAT(message_of<ArgumentError>([] {
                nn::Conv1d({.in = 3, .out = 4})(zeros({2, 3, 8}));
              }),
              HasSubstr("channels first, [N, 3, L]; call contiguous(transpose(x, {0, 2, 1}))"));
  EXPECT_THAT(message_of<ArgumentError>([] {
                nn::BatchNorm2d({.features = 3})(zeros({2, 3, 8, 9}));
              }),
              HasSubstr("BatchNorm(3): x must be channels last"));
}

TEST_P(SeveralInputsTest, a_warmed_network_plans_and_builds_nothing_at_its_first_call) {
  nn::Sequential net(nn::Linear({.in = 7, .out = 11}), nn::BatchNorm({.features = 11}), nn::Gelu(),
                     nn::Linear({.in = 11, .out = 3}));
  net.eval();
  nn::warm(net, {{.shape = {5, 7}}});
  const auto plans = engine().plans();
  const NoGrad no_grad;
  const Array x = array(std::vector<float>(35, 0.5f), {5, 7});
  net(x).wait();
  EXPECT_EQ(engine().plans().plans_made, plans.plans_made);
  EXPECT_EQ(engine().plans().programs_built, plans.programs_built);
}

}  // namespace
}  // namespace samebytes::testing

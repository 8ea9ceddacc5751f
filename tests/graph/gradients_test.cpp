// Reverse mode on graphs: shared nodes, views, several results, cut gradients, and what cannot be differentiated.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "graph/node.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class GradientsTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(GradientsTest);

TEST_P(GradientsTest, a_node_used_twice_gets_both_gradients) {
  const Array x = array({3.0f});
  const Array y = x * x + x;
  const std::vector<Array> dx = gradients(sum(y * y), std::vector<Array>{x});  // d (x^2 + x)^2 = 2 (x^2 + x) (2 x + 1)
  EXPECT_EQ(dx[0].value(), 2 * 12 * 7);
}

TEST_P(GradientsTest, views_carry_gradients_back_to_their_place) {
  SAMEBYTES_NEEDS_F64();
  EXPECT_TRUE(check_gradients(
      [](std::span<const Array> in) {
        const Array& x = in[0];
        return square(transpose(reshape(x, {4, 6}))) * transpose(reshape(transpose(x, {2, 0, 1}), {4, 6}));
      },
      {random_input("x", {2, 3, 4})}));
}

TEST_P(GradientsTest, slices_with_steps_and_broadcasts_have_gradients) {
  SAMEBYTES_NEEDS_F64();
  EXPECT_TRUE(check_gradients([](std::span<const Array> in) { return square(slice(in[0], 1, 1, 7, 3)); },
                              {random_input("x", {3, 7})}));
  EXPECT_TRUE(check_gradients(
      [](std::span<const Array> in) {
        return square(broadcast_to(in[0], {4, 3, 5}));
      },
      {random_input("x", {3, 1})}));
  EXPECT_TRUE(check_gradients([](std::span<const Array> in) { return square(squeeze(unsqueeze(in[0], 1), 1)) * in[0]; },
                              {random_input("x", {3, 2})}));
}

TEST_P(GradientsTest, what_the_loss_does_not_depend_on_gets_zeros_where_that_is_allowed) {
  const Array x = array({1.0f, 2.0f}), other = array({5.0f, 6.0f, 7.0f});
  EXPECT_THROW(gradients(sum(x), std::vector<Array>{x, other}), ArgumentError);
  const std::vector<Array> dx = gradients(sum(x), std::vector<Array>{x, other}, {.allow_unused = true});
  EXPECT_EQ(dx[1].to_vector<float>(), (std::vector<float>{0, 0, 0}));
}

TEST_P(GradientsTest, no_grad_and_stop_gradient_cut_the_graph) {
  const Array x = array({2.0f});
  Array constant;
  {
    const NoGrad no_grad;
    EXPECT_FALSE(is_grad_enabled());
    constant = x * 3.0;
  }
  EXPECT_TRUE(is_grad_enabled());
  EXPECT_EQ(gradients(sum(constant * x), std::vector<Array>{x})[0].value(), 6.0);
  EXPECT_EQ(gradients(sum(stop_gradient(x) * x), std::vector<Array>{x})[0].value(), 2.0);
}

TEST_P(GradientsTest, what_is_made_of_whole_numbers_and_truths_is_constant) {
  const Array x = array({1.5f, -2.5f, 3.0f});
  for (const Dtype dtype : {u8, i32, i64, bool_}) {
    const Array whole = astype(abs(x), dtype);
    EXPECT_EQ(gradients(sum(x * whole), {x})[0].to_vector<float>(), astype(whole, f32).to_vector<float>());
    EXPECT_EQ(gradients(sum(x + astype(whole, f32)), {x})[0].to_vector<float>(), (std::vector<float>{1, 1, 1}));
    EXPECT_THROW(gradients(sum(astype(whole, f32)), {x}), ArgumentError);
  }
}

TEST_P(GradientsTest, second_derivatives_are_gradients_of_gradients) {
  const Array x = array({0.5f});
  const Array first = gradients(sum(x * x * x), std::vector<Array>{x})[0];
  EXPECT_FLOAT_EQ(static_cast<float>(gradients(sum(first), std::vector<Array>{x})[0].value()), 3.0f);
}

TEST_P(GradientsTest, the_derivative_of_a_loss_by_itself_is_made_once_and_belongs_to_nobody) {
  const auto gradient = [] {
    const Array x = array({3.0f});
    return gradients(sum(x + 1.0), std::vector<Array>{x})[0];
  };
  const Array first = gradient();
  first.eval();
  first.mutable_host<float>()[0] = 5;  // no later gradient begins with it
  EXPECT_EQ(gradient().value(), 1.0);
  const Array x = array({1, 2}, {2});
  const auto before = engine().plans().launches;
  gradients(sum(square(x)), std::vector<Array>{x})[0].eval();
  EXPECT_EQ(engine().plans().launches - before, 1u);
}

TEST_P(GradientsTest, the_derivative_of_a_sum_is_one_value_for_all_its_elements) {
  const Array x = uniform({300, 400}).wait();
  const Array d = gradients(sum(x), std::vector<Array>{x})[0];
  d.wait();  // before a copy of it is asked for
  EXPECT_TRUE(d.node()->is_view);
  EXPECT_EQ(d.node()->base().shape.size(), 1);
  EXPECT_EQ(d.to_vector<float>(), std::vector<float>(300 * 400, 1));
}

// What is not chosen gets no gradient, also where the one of the result is infinite or not a number.
TEST_P(GradientsTest, a_choice_gives_nothing_to_what_it_leaves_out) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Array x = array({1.0f, -2.0f, 3.0f}), y = array({0.5f, 4.0f, -1.0f});
  const Array upstream = array({kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()});
  const auto zeros_at = [&](const Array& result, const Array& wrt, std::initializer_list<std::size_t> places) {
    const auto d = gradients(result, std::vector<Array>{wrt}, upstream)[0].to_vector<float>();
    return std::all_of(places.begin(), places.end(), [&](std::size_t i) { return d[i] == 0; });
  };
  const Array is_large = greater(x, y);
  EXPECT_TRUE(zeros_at(where(is_large, x, y), x, {1}));
  EXPECT_TRUE(zeros_at(where(is_large, x, y), y, {0, 2}));
  EXPECT_TRUE(zeros_at(maximum(x, y), x, {1}));
  EXPECT_TRUE(zeros_at(maximum(x, y), y, {0, 2}));
  EXPECT_TRUE(zeros_at(minimum(x, y), x, {0, 2}));
  EXPECT_TRUE(zeros_at(minimum(x, y), y, {1}));
  EXPECT_TRUE(zeros_at(maximum(x, 0.0), x, {1}));
  EXPECT_TRUE(zeros_at(minimum(x, 0.0), x, {0, 2}));
  EXPECT_TRUE(zeros_at(clip(x, 0, 2), x, {1, 2}));
  EXPECT_TRUE(zeros_at(masked_fill(x, is_large, 0.0), x, {0, 2}));
}

TEST_P(GradientsTest, an_intermediate_array_can_be_asked_for) {
  const Array x = array({2.0f});
  const Array y = x * x;
  const std::vector<Array> d = gradients(sum(y * y), std::vector<Array>{y, x});
  EXPECT_EQ(d[0].value(), 8.0);
  EXPECT_EQ(d[1].value(), 32.0);
}

TEST_P(GradientsTest, mistakes_are_errors_that_say_what_to_do) {
  const Array x = array({1.0f, 2.0f});
  EXPECT_THROW(gradients(x, std::vector<Array>{x}), ArgumentError);
  EXPECT_THROW(gradients(sum(x), std::vector<Array>{Array()}), ArgumentError);
  EXPECT_THROW(gradients(sum(x), std::vector<Array>{array(std::vector<std::int32_t>{1}, {1})}), ArgumentError);
  EXPECT_THROW(gradients(array({1.0f}), std::vector<Array>{x}), ArgumentError);
}

TEST_P(GradientsTest, a_custom_op_runs_the_users_kernel_and_gradient) {
  const CustomOp twice_plus_one{
      .name = "twice_plus_one",
      .entry = "twice_plus_one",
      .source =
          "__kernel void twice_plus_one(ARRAY(const real, x), ARRAY(real, y), const int n) {\n"
          "  START(x); START(y);\n  const int i = get_global_id(0);\n  if (i < n) y[i] = x[i] * 2 + 1;\n}\n",
      .gradient = [](const Array& dy, std::span<const Array>, const Array&) { return std::vector<Array>{dy * 2.0}; }};
  const Array x = array({1.0f, -2.0f, 3.5f});
  const Array y = custom_op(twice_plus_one, std::vector<Array>{x}, x.shape());
  const Array dx = gradients(sum(y * y), std::vector<Array>{x})[0];
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{3, -3, 8}));
  EXPECT_EQ(dx.to_vector<float>(), (std::vector<float>{12, -12, 32}));
}

// values is one of two results of its op.
TEST_P(GradientsTest, one_of_several_results_is_differentiated_by) {
  const Array x = array({1, 5, 3});
  const std::vector<Array> pending{top_k(x, 2).values};
  EXPECT_EQ(gradients(sum(square(pending[0])), pending)[0].to_vector<float>(), (std::vector<float>{10, 6}));
  const std::vector<Array> both{pending[0], x};
  const std::vector<Array> d = gradients(sum(square(pending[0])), both);
  EXPECT_EQ(d[0].to_vector<float>(), (std::vector<float>{10, 6}));
  EXPECT_EQ(d[1].to_vector<float>(), (std::vector<float>{0, 10, 6}));
  const std::vector<Array> evaluated{top_k(array({1, 5, 3}), 2).values.wait()};  // nobody holds what it was made of
  EXPECT_EQ(gradients(sum(square(evaluated[0])), evaluated)[0].to_vector<float>(), (std::vector<float>{10, 6}));
}

TEST_P(GradientsTest, a_custom_op_computes_in_the_widest_type_of_its_arrays) {
  const CustomOp product{
      .name = "product",
      .entry = "product",
      .source =
          "__kernel void product(ARRAY(const real, a), ARRAY(const real, b), ARRAY(real, y), const int n) {\n"
          "  START(a); START(b); START(y);\n"
          "  for (long i = SB_BEGIN(n); i < SB_END(n); ++i) y[i] = a[i] * b[i];\n}\n",
      .gradient = [](const Array& dy, std::span<const Array> in, const Array&) {
        return std::vector<Array>{dy * in[1], dy * in[0]};
      }};
  const std::vector<double> values{1.1, -2.3, 1e-9}, squares{1.1 * 1.1, 2.3 * 2.3, 1e-9 * 1e-9};
  const Array wide = array(values, {3}), narrow = astype(wide, f32);
  const Array y = custom_op(product, std::vector<Array>{wide, wide}, {3});
  EXPECT_EQ(y.dtype(), f64);
  EXPECT_EQ(y.to_vector<double>(), squares);
  const std::vector<Array> mixed{narrow, wide};
  const Array of_both = custom_op(product, mixed, {3}, f32);
  EXPECT_EQ(of_both.dtype(), f32);
  const std::vector<Array> slopes = gradients(sum(of_both), mixed);
  EXPECT_EQ(slopes[0].dtype(), f32);
  EXPECT_EQ(slopes[1].dtype(), f64);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_FLOAT_EQ(of_both.to_vector<float>()[i], static_cast<float>(squares[i]));
    EXPECT_FLOAT_EQ(slopes[0].to_vector<float>()[i], static_cast<float>(values[i]));
  }
  const Array half = astype(narrow, f16);
  EXPECT_EQ(custom_op(product, std::vector<Array>{half, half}, {3}).dtype(), f16);
}

TEST_P(GradientsTest, a_custom_op_takes_integers_and_numbers_and_names_what_its_kernel_does_not_take) {
  CustomOp op{
      .name = "shift",
      .entry = "shift_by",
      .source =
          "// shift_by(x)\n__kernel void shift_by(ARRAY(const real, x), ARRAY(real, y), const int n, const "
          "int by, const real plus) {\n"
          "  START(x);\n  START(y);\n"
          "  for (long i = SB_BEGIN(n); i < SB_END(n); ++i) y[i] = x[(i + by) % n] + plus;\n}\n",
      .gradient = [](const Array& dy, std::span<const Array>, const Array&) { return std::vector<Array>{sum(dy)}; },
      .sizes = {1}};
  const std::vector<Array> x{array({1.0f, 2.0f, 3.0f})};
  const double half[] = {0.5};
  EXPECT_EQ(custom_op(op, x, {3}, f32, half).to_vector<float>(), (std::vector<float>{2.5f, 3.5f, 1.5f}));
  op.sizes = {2};
  const Array y = custom_op(op, x, {3}, f32, half);
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{3.5f, 1.5f, 2.5f}));
  EXPECT_ERROR((gradients(sum(y), x)), ArgumentError,
               "shift: its gradient of input 0 must be f32 [3], as the input is, it is f32 []");
  const std::vector<Array> index{array(std::vector<std::int32_t>{1, 2, 3}, {3})};
  EXPECT_ERROR((custom_op(op, index, {3}, f32, half)), ArgumentError,
               "shift: kernel shift_by: parameter 0, \"ARRAY(const real, x)\", takes an array of real, it is passed an "
               "array of int (input 0)");
  EXPECT_ERROR((custom_op(op, x, {3})), ArgumentError,
               "shift: kernel shift_by: parameter 4, \"const real plus\", is passed nothing; integers come from "
               "CustomOp::sizes, numbers from the call");
  op.sizes.clear();
  EXPECT_ERROR(
      (custom_op(op, x, {3}, f32, half)), ArgumentError,
      "shift: kernel shift_by: parameter 3, \"const int by\", takes an int, it is passed a real (parameter 0)");
}

TEST_P(GradientsTest, a_custom_op_that_does_not_build_names_itself_and_its_log) {
  const CustomOp broken{.name = "broken",
                        .entry = "broken",
                        .source = "__kernel void broken(ARRAY(const real, x), ARRAY(real, y), const int n) { oops; }"};
  const Array y = custom_op(broken, std::vector<Array>{array({1.0f})}, {1});
  try {
    y.eval();
    FAIL() << "nothing was thrown";
  } catch (const BuildError& error) {
    EXPECT_NE(std::string(error.what()).find("broken"), std::string::npos) << error.what();
    EXPECT_NE(error.log().find("oops"), std::string::npos) << error.log();
    EXPECT_FALSE(error.defines().empty());
  }
  EXPECT_EQ((array({1.0f}) + 1.0).value(), 2.0);  // the engine goes on
}

TEST_P(GradientsTest, the_name_of_a_custom_op_cannot_become_source) {
  const CustomOp twice{.name = "twice\"\n#error injected\n#line 1 \"\\",
                       .entry = "twice",
                       .source =
                           "__kernel void twice(ARRAY(const real, x), ARRAY(real, y), const int n) {\n"
                           "  START(x);\n  START(y);\n"
                           "  for (long i = SB_BEGIN(n); i < SB_END(n); ++i) y[i] = 2 * x[i];\n}\n"};
  EXPECT_EQ(custom_op(twice, std::vector<Array>{array({1.5f})}, {1}).value(), 3.0);
  CustomOp other = twice;
  other.entry = "twice -D ARRAY=none\n#error injected\n";
  EXPECT_THROW(custom_op(other, std::vector<Array>{array({1.5f})}, {1}).value(), Error);
}

// Names of layers stand in errors and in profiles; a compiler that got this one would refuse it.
class OddlyNamed final : public nn::Module {
 public:
  static constexpr const char* kName = "fc\"\n#error injected\n#line 1 \"\\ -D real=none */ %s";
  Array forward(const Array& x) override { return exp(gelu(linear_(x)) * 0.125); }
  void visit(nn::Visitor& visitor) override { visitor.child(kName, linear_); }

 private:
  nn::Linear linear_{{.in = 3, .out = 2}};
};

TEST_P(GradientsTest, the_name_of_a_layer_cannot_become_source_or_an_option) {
  OddlyNamed net;
  EXPECT_EQ(net.named_parameters().front().name, OddlyNamed::kName + std::string(".weight"));
  const Array loss = sum(net(ones({4, 3})));
  const std::vector<Array> parameters = net.parameters();
  EXPECT_EQ(gradients(loss, parameters)[0].shape(), (Shape{2, 3}));
  EXPECT_GT(loss.value(), 0);
  EXPECT_LT(loss.value(), 100);
}

}  // namespace
}  // namespace samebytes::testing

// Autocast scopes, their policy, and the 16-bit working copies of parameters.
#include <gtest/gtest.h>

#include <regex>
#include <vector>

#include "graph/autocast.h"
#include "graph/launch.h"
#include "graph/op.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"
#include "support/source_tree.h"

namespace samebytes::testing {
namespace {

using Floats = std::vector<float>;

class AutocastTest : public OnDevice {
 protected:
  // Small whole numbers, which 16 bits hold exactly, as do their short sums of products.
  static Array whole_numbers(const Shape& shape, int seed) {
    Floats values(static_cast<std::size_t>(shape.size()));
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<float>((static_cast<int>(i) * 7 + seed * 3) % 5 - 2);
    return array(values, shape);
  }
};
SAMEBYTES_ON_EVERY_DEVICE(AutocastTest);

TEST_P(AutocastTest, the_policy_can_be_read_and_changed) {
  AutocastPolicy policy;
  EXPECT_EQ(policy.rule("linear"), CastRule::lower);
  EXPECT_EQ(policy.rule("mse_loss"), CastRule::keep_f32);
  EXPECT_EQ(policy.rule("concat"), CastRule::widest);
  EXPECT_EQ(policy.rule("layer_norm"), CastRule::as_given);
  EXPECT_EQ(policy.set("linear", CastRule::keep_f32).rule("linear"), CastRule::keep_f32);
  EXPECT_EQ(AutocastPolicy().rule("linear"), CastRule::lower);
  try {
    policy.set("liner", CastRule::lower);
    ADD_FAILURE() << "an op that is not in the table was taken";
  } catch (const ArgumentError& error) {
    EXPECT_EQ(
        std::string(error.what()).find("AutocastPolicy: there is no rule for liner; there are rules for batch_norm"),
        0u);
  }
  const Array x = whole_numbers({2, 3}, 1), w = whole_numbers({4, 3}, 2);
  {
    const Autocast use({.dtype = f16, .policy = policy});
    EXPECT_EQ(linear(astype(x, f16), w).dtype(), f32);
  }
  set_autocast_policy(policy);
  EXPECT_EQ(autocast_policy().rule("linear"), CastRule::keep_f32);
  {
    const Autocast use({.dtype = f16});
    EXPECT_EQ(linear(x, w).dtype(), f32);
  }
  set_autocast_policy(AutocastPolicy());
}

TEST(AutocastPolicyTest, every_op_that_asks_stands_in_the_table) {
  const AutocastPolicy policy;
  const std::regex row("\\{\"([a-z0-9_]+)\", CastRule::(\\w+)\\}");
  int found = 0;
  for (const SourceFile& file : source_files({"engine/ops"}, {".cpp"}))
    for (auto it = std::sregex_iterator(file.text.begin(), file.text.end(), row); it != std::sregex_iterator(); ++it) {
      ++found;
      const std::string op = (*it)[1].str();
      EXPECT_NO_THROW(policy.rule(op)) << file.path;
      EXPECT_EQ(policy.rule(op), AutocastPolicy().rule(op));
      EXPECT_EQ(name_of(policy.rule(op)), (*it)[2].str()) << op;
    }
  EXPECT_EQ(found, 56);
}

// Ops as docs/adding_an_op.md has them: of a kernel, of an expression, and of a kernel with a rule of its own.
class Cubed final : public detail::Op {
 public:
  std::string_view name() const override { return "cubed"; }
  void launch(detail::Launch& run) const override {
    run.generated(
           "__kernel void cubed(ARRAY(const stored, src), ARRAY(stored, dst), const long n) {\n"
           "  START(src); START(dst);\n"
           "  const long i = get_global_id(0);\n"
           "  if (i >= n) return;\n"
           "  const real v = LOAD(src + i);\n"
           "  STORE(v * v * v, dst + i);\n"
           "}\n",
           "cubed", run.dst_dtype(), "cubed")
        .args(run.src(0), run.dst(), run.dst_shape().size())
        .over_items(run.dst_shape().size());
  }
  std::vector<Array> gradient(const detail::GradientRequest& request) const override {
    return {request.dy[0] * square(request.src[0]) * 3.0};
  }
};

class Tripled final : public detail::Op {
 public:
  Tripled() : Op({.takes_strides = detail::InputSet::all(), .expression = "$0 + $0 + $0"}) {}
  std::string_view name() const override { return "tripled"; }
  void launch(detail::Launch&) const override { throw Error("tripled: launched by the planner"); }
  std::vector<Array> gradient(const detail::GradientRequest& request) const override { return {request.dy[0] * 3.0}; }
};

template <class T>
Array apply_own(const Array& a) {
  return detail::make_array(detail::make_op<T>(), a.shape(), a.dtype(), std::span<const Array>(&a, 1));
}

const detail::CastRow kSafelyCubedCast{"safely_cubed", CastRule::keep_f32};
Array safely_cubed(const Array& a) {
  if (const detail::Casts cast(kSafelyCubedCast); cast) return safely_cubed(cast(a));
  return apply_own<Cubed>(a);
}

TEST_P(AutocastTest, an_op_that_nobody_knows_runs_in_the_type_of_its_inputs_or_by_its_own_rule) {
  const Array x = whole_numbers({2, 3}, 1), w = whole_numbers({4, 3}, 2);
  const Array wrt[] = {w};
  const auto loss = [&](const auto& op) { return sum(op(linear(x, w))); };
  for (const Dtype dtype : {f16, bf16}) {
    for (Array (*const op)(const Array&) : {&apply_own<Cubed>, &apply_own<Tripled>, &safely_cubed}) {
      const Floats want = op(linear(x, w)).to_vector<float>();
      const Floats slope = gradients(loss(op), wrt)[0].to_vector<float>();
      const Autocast use({.dtype = dtype});
      const Array y = op(linear(x, w));
      EXPECT_EQ(y.dtype(), op == &safely_cubed ? f32 : dtype);
      EXPECT_EQ(y.to_vector<float>(), want);  // whole numbers of few bits
      EXPECT_EQ(gradients(loss(op), wrt)[0].to_vector<float>(), slope);
    }
  }
}

TEST_P(AutocastTest, a_custom_op_reads_and_gives_16_bit_arrays_as_real_ones) {
  const CustomOp halved{.name = "halved",
                        .entry = "halved",
                        .source =
                            "__kernel void halved(ARRAY(const real, src), ARRAY(real, dst), const int n) {\n"
                            "  START(src); START(dst);\n"
                            "  const int i = get_global_id(0);\n"
                            "  if (i < n) dst[i] = src[i] / 2;\n"
                            "}\n",
                        .gradient = [](const Array& dy, auto, const Array&) { return std::vector<Array>{dy * 0.5}; }};
  const Array x = whole_numbers({2, 3}, 1), w = whole_numbers({4, 3}, 2);
  const Array wrt[] = {w};
  const auto apply = [&] {
    const Array a = linear(x, w), inputs[] = {a};
    return custom_op(halved, inputs, a.shape(), a.dtype());
  };
  const Floats want = apply().to_vector<float>(), slope = gradients(sum(apply()), wrt)[0].to_vector<float>();
  for (const Dtype dtype : {f16, bf16}) {
    const Autocast use({.dtype = dtype});
    EXPECT_EQ(apply().dtype(), dtype);
    EXPECT_EQ(apply().to_vector<float>(), want);
    EXPECT_EQ(gradients(sum(apply()), wrt)[0].to_vector<float>(), slope);
  }
}

TEST_P(AutocastTest, a_policy_changes_the_rule_of_an_op_that_nobody_knows) {
  const Array x = astype(whole_numbers({2, 3}, 1), bf16);
  EXPECT_EQ(AutocastPolicy().rule("safely_cubed"), CastRule::keep_f32);
  const Autocast use({.dtype = bf16, .policy = AutocastPolicy().set("safely_cubed", CastRule::as_given)});
  EXPECT_EQ(safely_cubed(x).dtype(), bf16);
}

TEST_P(AutocastTest, a_scope_decides_what_ops_give) {
  const Array x = whole_numbers({2, 3}, 1), w = whole_numbers({4, 3}, 2), bias = whole_numbers({4}, 3);
  const Floats want = linear(x, w, bias).to_vector<float>();
  EXPECT_FALSE(autocast_dtype());
  for (const Dtype dtype : {f16, bf16}) {
    const Autocast use({.dtype = dtype});
    EXPECT_EQ(autocast_dtype(), dtype);
    const Array y = linear(x, w, bias);
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(y.to_vector<float>(), want);
    EXPECT_EQ(relu(y).dtype(), dtype);
    EXPECT_EQ(layer_norm(y).dtype(), dtype);
    EXPECT_EQ((y + whole_numbers({2, 4}, 5)).dtype(), f32);
    EXPECT_EQ(concat({y, whole_numbers({2, 4}, 5)}, 0).dtype(), f32);
    EXPECT_EQ(exp(y).dtype(), f32);
    EXPECT_EQ(sum(y).dtype(), f32);
    EXPECT_EQ(mse_loss(y, whole_numbers({2, 4}, 5)).dtype(), f32);
    EXPECT_EQ(cross_entropy(y, array(std::vector<std::int32_t>{1, 2}, {2})).dtype(), f32);
    {
      const Autocast off({.dtype = dtype, .enabled = false});
      EXPECT_FALSE(autocast_dtype());
      EXPECT_EQ(linear(x, w, bias).dtype(), f32);
    }
    EXPECT_EQ(autocast_dtype(), dtype);
    if (has_f64()) {
      EXPECT_EQ(matmul(astype(x, f64), transpose(astype(w, f64))).dtype(), f64);
    }
  }
  EXPECT_EQ(linear(x, w, bias).dtype(), f32);
  EXPECT_ERROR(Autocast({.dtype = f32}), ArgumentError, "Autocast: the dtype must be f16 or bf16, got f32");
}

TEST_P(AutocastTest, a_cell_is_cast_once_for_all_that_read_the_same_value) {
  const Array w = cell(whole_numbers({3, 3}, 2), "w"), x = whole_numbers({2, 3}, 1);
  {
    const Autocast use({.dtype = f16});
    const Array y = linear(linear(x, w), w);
    EXPECT_EQ(use.casts(), 2);  // x and w
    assign(w, w * 2.0);
    EXPECT_EQ(linear(x, w).to_vector<float>(), linear(x, astype(w * 1.0, f32)).to_vector<float>());
  }
  const NoGrad none;
  const Autocast use({.dtype = f16});
  const Floats before = linear(x, w).to_vector<float>();
  const std::int64_t casts = use.casts();
  EXPECT_EQ(linear(x, w).to_vector<float>(), before);
  EXPECT_EQ(use.casts(), casts + 1);  // x is no cell, and its cast is gone
  assign(w, w * 2.0);
  Floats twice = before;
  for (float& v : twice) v *= 2;
  EXPECT_EQ(linear(x, w).to_vector<float>(), twice);
}

TEST_P(AutocastTest, working_copies_follow_their_parameters) {
  const Array w = cell(real_array(random_values(6, 3), {2, 3}, f32), "w"), b = cell(whole_numbers({2}, 1), "b");
  const Array both[] = {w, b};
  keep_working_copies(both, bf16);
  const Array copy = working_copy(w);
  EXPECT_EQ(copy.dtype(), bf16);
  EXPECT_FALSE(working_copy(b).defined());
  const auto agrees = [&] { return same_bytes(working_copy(w), astype(w, bf16)); };
  EXPECT_TRUE(agrees());
  assign(w, w * 1.7);
  EXPECT_TRUE(agrees());
  eval({update(w, w - 0.3), update(b, b + 1.0)});
  EXPECT_TRUE(agrees());

  const Array x = whole_numbers({5, 3}, 2);
  const Autocast use({.dtype = bf16});
  const auto product = [&] { return linear(x, w, b).to_vector<float>(); };
  const auto want = [&] {
    const Autocast off({.enabled = false});
    return astype(linear(x, astype(astype(w, bf16), f32), b), bf16).to_vector<float>();
  };
  EXPECT_EQ(product(), want());
  {
    const auto view = w.mutable_host<float>();
    for (float& v : view) v += 1;
  }
  EXPECT_EQ(product(), want()) << "after the host wrote";
  EXPECT_TRUE(agrees());
  const Autocast other({.dtype = f16});
  EXPECT_EQ(linear(x, w).dtype(), f16) << "a copy of another dtype is not read";
}

TEST_P(AutocastTest, gradients_come_in_the_dtype_of_what_they_belong_to) {
  const Array w = cell(whole_numbers({4, 3}, 2), "w"), b = cell(whole_numbers({4}, 3), "b");
  const Array x = whole_numbers({2, 3}, 1), both[] = {w, b};
  const auto loss = [&] { return sum(linear(x, w, b) * whole_numbers({2, 4}, 4)) + sum(w) * 2.0; };
  const std::vector<Array> plain = gradients(loss(), both);
  const auto same_values = [&](const std::vector<Array>& came) {
    for (std::size_t i = 0; i < came.size(); ++i)
      EXPECT_EQ(came[i].to_vector<float>(), plain[i].to_vector<float>()) << i;
  };
  {
    const Autocast use({.dtype = f16});
    const std::vector<Array> cast = gradients(loss(), both);
    EXPECT_EQ(cast[0].dtype(), f32);
    same_values(cast);
  }
  keep_working_copies(both, f16);
  const Autocast use({.dtype = f16});
  const std::vector<Array> kept = gradients(loss(), both);  // of the copy, and of w where the sum reads it
  EXPECT_EQ(kept[0].dtype(), f16);
  EXPECT_EQ(kept[1].dtype(), f32);
  same_values(kept);
  const std::vector<Array> none = gradients(sum(b), both, {.allow_unused = true});
  EXPECT_EQ(none[0].dtype(), f16);
  EXPECT_EQ(none[0].to_vector<float>(), Floats(12, 0.0f));
}

TEST_P(AutocastTest, copies_are_refused_where_they_cannot_be) {
  const Array w = cell(whole_numbers({4, 3}, 2), "w"), x = whole_numbers({2, 2}, 1);
  EXPECT_ERROR(keep_working_copies(std::span(&w, 1), f32), ArgumentError,
               "keep_working_copies: the copies must be f16 or bf16, got f32");
  EXPECT_ERROR(keep_working_copies(std::span(&x, 1), f16), ArgumentError,
               "keep_working_copies: a parameter must be a cell, one is f32 [2, 2]");
  const optim::Sgd sgd(std::span(&w, 1));
  EXPECT_ERROR(keep_working_copies(std::span(&w, 1), f16), ArgumentError,
               "keep_working_copies: w already belongs to an optimizer; make the copies first");
}

}  // namespace
}  // namespace samebytes::testing

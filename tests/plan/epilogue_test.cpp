// Epilogues: what follows an op that offers it is done by the op's own launch, and by nothing else where it must not.
#include <gtest/gtest.h>

#include <limits>

#include "graph/launch.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes::testing {
namespace {

using detail::Launch;
using detail::Operand;

// y = 2 x, and what the planner asks for on top.
class Twice final : public detail::Op {
 public:
  // The gradient is an op of this class, too, where it is `whole`.
  explicit Twice(bool offers, bool whole = false)
      : Op({.takes_epilogue = offers, .takes_gate = offers}), offers_(offers), whole_(whole) {}
  std::string_view name() const override { return "twice"; }
  void hash(detail::Hasher& hasher) const override { hasher.add(std::uint64_t{offers_}); }
  void launch(Launch& run) const override {
    const auto& epilogue = run.epilogue();
    const std::int64_t n = run.dst_shape().size();
    run.generated(
           "__kernel void twice(ARRAY(const real, x), ARRAY(const real, residual), ARRAY(const real, gate), "
           "ARRAY(real, y), "
           "const int relu) {\n"
           "  START(x); START(residual); START(gate); START(y);\n"
           "  const long i = get_global_id(0);\n"
           "  real v = 2 * x[i];\n"
           "  if (residual) v += residual[i];\n"
           "  if (gate && !(gate[i] > 0)) v = 0;\n"
           "  y[i] = relu && v < 0 ? 0 : v;\n"
           "}\n",
           "twice", run.dst_dtype(), "twice")
        .args(run.src(0), epilogue.residual, epilogue.gate, run.dst(), int{epilogue.relu})
        .over_items(n);
  }
  std::vector<Array> gradient(const detail::GradientRequest& request) const override;

 private:
  bool offers_, whole_;
};

Array twice(const Array& x, bool offers = true, bool whole = false) {
  return detail::make_array(detail::make_op<Twice>(offers, whole), x.shape(), x.dtype(), std::span<const Array>(&x, 1));
}

std::vector<Array> Twice::gradient(const detail::GradientRequest& request) const {
  return {whole_ ? twice(request.dy[0], offers_) : request.dy[0] * 2.0};
}

class EpilogueTest : public OnDevice {
 protected:
  static Array mixed(const Shape& shape) {
    const Array x = uniform(shape, -1, 1);
    x.eval();
    return x;
  }
  // The launches that `make` needs and its values, which must be those of an op that offers no epilogue.
  template <class Make>
  std::uint64_t launches_of(const Make& make) {
    const std::vector<float> plain = make(false).template to_vector<float>();
    const auto before = engine().plans().launches;
    const Array y = make(true);
    y.eval();
    const auto launches = engine().plans().launches - before;
    EXPECT_EQ(y.to_vector<float>(), plain);
    return launches;
  }
};
SAMEBYTES_ON_EVERY_DEVICE(EpilogueTest);

TEST_P(EpilogueTest, a_sum_and_a_relu_are_appended_to_the_launch_before) {
  const Array x = mixed({6, 5}), r = mixed({6, 5});
  EXPECT_EQ(launches_of([&](bool offers) { return relu(twice(x, offers) + r); }), 1u);
  EXPECT_EQ(launches_of([&](bool offers) { return relu(twice(x, offers)); }), 1u);
  EXPECT_EQ(launches_of([&](bool offers) { return r + twice(x, offers); }), 1u);
}

TEST_P(EpilogueTest, a_residual_may_be_made_after_the_op_and_shapes_may_change_between) {
  const Array x = mixed({6, 5}), z = mixed({2, 3, 5});
  EXPECT_EQ(launches_of([&](bool offers) {
              const Array y = twice(x, offers);
              const Array r = twice(z, false);
              return relu(reshape(reshape(y, {2, 3, 5}) + r, {30}));
            }),
            2u);
  // Of two that offer it the later one appends the sum.
  EXPECT_EQ(launches_of([&](bool offers) { return relu(twice(x, offers) + twice(reshape(z, {6, 5}), offers)); }), 2u);
}

TEST_P(EpilogueTest, what_others_read_or_the_user_wants_is_stored) {
  const Array x = mixed({6, 5}), r = mixed({6, 5});
  const auto before = engine().plans().launches;
  const Array y = twice(x);
  const Array z = relu(y);
  z.eval();
  EXPECT_EQ(engine().plans().launches - before, 2u);
  EXPECT_EQ(y.to_vector<float>()[3], 2 * x.to_vector<float>()[3]);
  EXPECT_EQ(launches_of([&](bool offers) {
              const Array shared = twice(x, offers);
              return relu(shared) + transpose(reshape(shared, {5, 6}));
            }),
            2u);
}

TEST_P(EpilogueTest, what_is_no_dense_sum_keeps_its_own_launch) {
  const Array x = mixed({6, 6}), row = mixed({6}), other = mixed({6, 6});
  EXPECT_EQ(launches_of([&](bool offers) { return twice(x, offers) + row; }), 2u);
  EXPECT_EQ(launches_of([&](bool offers) { return twice(x, offers) + transpose(other); }), 2u);
  EXPECT_EQ(launches_of([&](bool offers) { return relu(twice(x, offers)) + other; }), 2u);
  EXPECT_EQ(launches_of([&](bool offers) { return twice(x, offers) + other * 0.5; }), 2u);
  EXPECT_EQ(launches_of([&](bool offers) { return twice(x, offers) * other; }), 2u);
}

TEST_P(EpilogueTest, a_launch_does_not_move_behind_an_overwrite_of_what_it_reads) {
  const Array c = cell(full({4, 3}, -1.5), "c");
  c.eval();
  const auto run = [&] {
    const Array old = twice(reshape(c, {12}));
    const Array written = update_slice(c, full({2, 3}, 7.0), 0, 1);
    return relu(old + reshape(twice(written, false), {12})).to_vector<float>();
  };
  EXPECT_EQ(run(), (std::vector<float>{0, 0, 0, 11, 11, 11, 11, 11, 11, 0, 0, 0}));
}

TEST_P(EpilogueTest, a_replay_binds_the_residual_of_its_own_graph) {
  const auto before = engine().plans().plans_made;
  for (const float value : {1.0f, -9.0f, 3.0f}) {
    const Array x = array({1, 2}, {2}), r = array({value, value}, {2});
    EXPECT_EQ(relu(twice(x) + r).to_vector<float>(),
              (std::vector<float>{std::max(0.0f, 2 + value), std::max(0.0f, 4 + value)}));
  }
  EXPECT_EQ(engine().plans().plans_made - before, 1u);
}

TEST_P(EpilogueTest, the_gradient_of_relu_reads_its_result_so_its_operand_is_never_stored) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const Array x = array({-1, 0, 2, kNaN}, {4});
  const auto gradient = [&](bool offers) {
    const Array y = relu(twice(x, offers));
    return gradients(sum(y * array({1, 10, 100, 1000}, {4})), std::vector<Array>{x})[0];
  };
  EXPECT_EQ(gradient(true).to_vector<float>(), (std::vector<float>{0, 0, 200, 0}));
  EXPECT_EQ(launches_of(gradient), 2u);  // y, and all the rest as one
}

TEST_P(EpilogueTest, the_gradient_of_a_relu_is_appended_to_the_launch_that_makes_its_operand) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const Array x = array({-1, 0, 2, kNaN}, {4}), r = mixed({4});
  const auto gradient = [&](bool offers) {
    const Array z = twice(relu(twice(x, offers)), offers, true);
    return gradients(sum(z * array({1, 10, 100, 1000}, {4})), std::vector<Array>{x})[0];
  };
  EXPECT_EQ(gradient(true).to_vector<float>(), (std::vector<float>{0, 0, 400, 0}));
  EXPECT_EQ(launches_of(gradient), 4u);  // y, the derivative of z, that of y with the gate, that of x
  // Behind a sum.
  const auto of_two = [&](bool offers) {
    const Array y = relu(twice(x, offers));
    return gradients(sum(twice(y, offers, true) * array({1, 10, 100, 1000}, {4}) + y * r), std::vector<Array>{x})[0];
  };
  const std::vector<float> more = r.to_vector<float>(), d = of_two(true).to_vector<float>();
  EXPECT_EQ(d, (std::vector<float>{0, 0, 2 * (200 + more[2]), 0}));
  EXPECT_EQ(of_two(false).to_vector<float>(), d);
}

TEST_P(EpilogueTest, nothing_is_appended_where_every_op_is_checked) {
  const auto checked = make_engine(GetParam(), {.check_nan = true});
  const EngineScope use(*checked);
  const Array x = array({1, -2}, {2});
  EXPECT_EQ(relu(twice(x) + x).to_vector<float>(), (std::vector<float>{3, 0}));
}

}  // namespace
}  // namespace samebytes::testing

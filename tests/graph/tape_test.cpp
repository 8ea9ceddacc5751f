// Evaluating an array changes no later gradient; what cannot be differentiated any more is an error that says so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

class TapeTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(TapeTest);

using Floats = std::vector<float>;
using ::testing::HasSubstr;

struct Net {
  Array w = cell(array({1, -2, 3, 0.5f}, {2, 2}), "w"), v = cell(array({2, 1}, {2, 1}), "v");
  Array hidden(const Array& x) const { return tanh(matmul(x, w)); }
  std::vector<Array> parameters() const { return {w, v}; }
};

const Array& x() {
  thread_local Array value;
  value = array({0.1f, 0.2f, -0.3f, 0.4f, 0.5f, -0.6f}, {3, 2});
  return value;
}

std::vector<Floats> values(const std::vector<Array>& arrays) {
  std::vector<Floats> result;
  for (const Array& a : arrays) result.push_back(a.to_vector<float>());
  return result;
}

TEST_P(TapeTest, evaluating_an_intermediate_keeps_the_gradient_behind_it) {
  const Net net;
  const auto gradient = [&](auto look) {
    const Array h = net.hidden(x());
    const Array y = matmul(h, net.v);
    look(h, y);
    return values(gradients(mean(y * y), net.parameters()));
  };
  const auto want = gradient([](const Array&, const Array&) {});
  EXPECT_EQ(gradient([](const Array& h, const Array&) { h.eval(); }), want);
  EXPECT_EQ(gradient([](const Array&, const Array& y) { static_cast<void>(y.to_string()); }), want);
  EXPECT_EQ(gradient([](const Array& h, const Array& y) {
              static_cast<void>(h.to_vector<float>());
              static_cast<void>(sum(y).value());
            }),
            want);
}

TEST_P(TapeTest, an_evaluated_loss_can_be_differentiated_and_again) {
  const Net net;
  const Array loss = mean(square(matmul(net.hidden(x()), net.v)));
  const auto want = values(gradients(loss, net.parameters()));
  static_cast<void>(loss.value());
  EXPECT_EQ(values(gradients(loss, net.parameters())), want);
  EXPECT_EQ(values(gradients(loss, net.parameters())), want);
}

TEST_P(TapeTest, a_metric_before_the_step_changes_nothing_about_the_step) {
  const auto train = [&](bool looks) {
    const Net net;
    optim::Sgd sgd(net.parameters(), {.rate = 0.1f});
    Accuracy accuracy;
    const Array label = array({0, 1, 0}, {3});
    const Array classes = astype(label, i32);
    for (int step = 0; step < 5; ++step) {
      const Array logits = net.hidden(x());
      const Array loss = cross_entropy(logits, classes) + mean(square(matmul(logits, net.v)));
      if (looks) accuracy.add(logits, classes);
      sgd.step(loss);
    }
    return values(net.parameters());
  };
  EXPECT_EQ(train(true), train(false));
}

TEST_P(TapeTest, a_generator_learns_from_a_sample_that_the_discriminator_has_seen) {
  const auto train = [&](bool looks) {
    const Net generator, discriminator;
    optim::Sgd of_generator(generator.parameters(), {.rate = 0.1f});
    optim::Sgd of_discriminator(discriminator.parameters(), {.rate = 0.1f});
    of_generator.set_allow_unused(true);
    for (int step = 0; step < 3; ++step) {
      const Array fake = generator.hidden(x());
      if (looks) fake.eval();
      const auto judged = [&](const Array& sample) { return matmul(discriminator.hidden(sample), discriminator.v); };
      of_discriminator.step(mean(judged(stop_gradient(fake))));
      of_generator.step(-mean(judged(fake)));
    }
    auto result = values(generator.parameters());
    for (Floats& one : values(discriminator.parameters())) result.push_back(std::move(one));
    return result;
  };
  EXPECT_EQ(train(true), train(false));
}

TEST_P(TapeTest, results_of_several_and_views_keep_their_gradient) {
  const Array w = cell(array({1, 2, 3, 4}, {2, 2}), "w");
  const Array gamma = cell(ones({2}), "gamma"), beta = cell(zeros({2}), "beta");
  const std::vector<Array> wrt{w, gamma, beta};
  const auto gradient = [&](bool looks) {
    const Array y = layer_norm(matmul(x(), w), gamma, beta);
    const Array t = transpose(y), part = slice(t, 0, 0, 1);
    if (looks) {
      y.eval();
      static_cast<void>(part.to_vector<float>());
    }
    return values(gradients(sum(part * part) + sum(exp(t)), wrt));
  };
  EXPECT_EQ(gradient(true), gradient(false));
}

TEST_P(TapeTest, second_derivatives_go_through_evaluated_first_ones) {
  const Array w = array({0.5f, -1, 2});
  const auto second = [&](bool looks) {
    const Array first = gradients(sum(w * w * w), std::vector<Array>{w})[0];
    if (looks) first.eval();
    return gradients(sum(first * first), std::vector<Array>{w})[0].to_vector<float>();  // d (3 w^2)^2 = 36 w^3
  };
  EXPECT_EQ(second(true), (Floats{4.5f, -36, 288}));
  EXPECT_EQ(second(false), second(true));
}

TEST_P(TapeTest, a_checkpointed_part_that_was_looked_at_has_the_same_gradient) {
  const Net net;
  const auto gradient = [&](bool looks) {
    Array inside;
    const Array y = checkpoint(
        [&](const Array& in) {
          inside = net.hidden(in);
          return matmul(inside, net.v);
        },
        x());
    if (looks) static_cast<void>(inside.to_vector<float>());
    inside = Array();
    return values(gradients(mean(y * y), net.parameters()));
  };
  EXPECT_EQ(gradient(true), gradient(false));
}

// ---- what cannot be differentiated

TEST_P(TapeTest, what_was_made_of_overwritten_parameters_is_an_error) {
  const Net net;
  const Array h = net.hidden(x());
  h.eval();
  assign(net.w, net.w * 0.5);
  EXPECT_THAT(message_of<ArgumentError>([&] { gradients(sum(h), std::vector<Array>{net.w}); }),
              AllOf(HasSubstr("made of w, which evaluation"), HasSubstr("stop_gradient()")));
  // What has nothing to do with it goes on.
  EXPECT_EQ(gradients(sum(matmul(h, net.v)), std::vector<Array>{net.v})[0].shape(), net.v.shape());
  EXPECT_EQ(gradients(sum(matmul(stop_gradient(h), net.w)), std::vector<Array>{net.w})[0].shape(), net.w.shape());
}

TEST_P(TapeTest, a_write_by_the_host_into_what_a_loss_reads_is_an_error_that_names_the_line) {
  const Net net;
  const Array in = array({1, 2}, {1, 2});
  const Array loss = sum(net.hidden(in));
  in.mutable_host<float>()[0] = 5;
  EXPECT_THAT(message_of<ArgumentError>([&] { gradients(loss, std::vector<Array>{net.w}); }),
              HasSubstr("tape_test.cpp:"));
}

TEST_P(TapeTest, a_loss_under_no_grad_is_an_error) {
  const Net net;
  optim::Sgd sgd(net.parameters(), {.rate = 0.1f});
  Array loss;
  {
    const NoGrad no_grad;
    loss = mean(matmul(net.hidden(x()), net.v));
  }
  EXPECT_THAT(message_of<ArgumentError>([&] { sgd.step(loss); }), HasSubstr("built under NoGrad"));
}

TEST_P(TapeTest, a_loss_that_reaches_no_parameter_is_an_error) {
  const Net net;
  optim::Sgd sgd(net.parameters(), {.rate = 0.1f});
  EXPECT_THAT(message_of<ArgumentError>([&] { sgd.step(mean(x() * 2.0)); }),
              HasSubstr("depends on none of the 2 arrays"));
  EXPECT_THAT(message_of<ArgumentError>([&] { sgd.step(mean(stop_gradient(net.hidden(x())))); }),
              HasSubstr("depends on none"));
}

TEST_P(TapeTest, a_parameter_without_a_gradient_is_an_error_unless_allowed) {
  const Net net;
  optim::Sgd sgd(net.parameters(), {.rate = 0.1f});
  EXPECT_THAT(message_of<ArgumentError>([&] { sgd.step(mean(net.hidden(x()))); }),
              AllOf(HasSubstr("does not depend on 1 of the 2"), HasSubstr("(v)"), HasSubstr("allow_unused")));
  const Floats before = net.v.to_vector<float>();
  sgd.set_allow_unused(true);
  sgd.step(mean(net.hidden(x())));
  EXPECT_EQ(net.v.to_vector<float>(), before);
}

TEST_P(TapeTest, a_batch_of_no_samples_has_zero_gradients) {
  const Array w = cell(ones({3, 4}), "w"), b = cell(ones({3}), "b");
  const Array logits = linear(zeros({0, 4}), w, b);
  for (const Array& loss : {sum(logits), mean(logits), cross_entropy(logits, array(std::vector<std::int32_t>{}, {0}))})
    for (const Array& gradient : gradients(loss, std::vector<Array>{w, b}))
      EXPECT_EQ(gradient.to_vector<float>(), Floats(static_cast<std::size_t>(gradient.size()), 0.0f));
}

// ---- memory

TEST_P(TapeTest, a_training_loop_that_looks_at_its_values_keeps_no_more_of_them) {
  const Net net;
  optim::Sgd sgd(net.parameters(), {.rate = 0.01f});
  std::vector<Array> losses;
  std::weak_ptr<detail::Node> batch;
  for (int step = 0; step < 4; ++step) {
    const Array in = x() * 1.0;
    in.eval();
    batch = in.node();
    const Array h = net.hidden(in);
    h.eval();
    losses.push_back(mean(matmul(h, net.v)));
    sgd.step(losses.back());
    EXPECT_EQ(in.node().use_count(), 1) << "the loss of a step that was taken holds its batch";
  }
}

TEST_P(TapeTest, a_value_that_nobody_can_differentiate_by_holds_nothing) {
  Array state = array({1, 2, 3});
  for (int i = 0; i < 300; ++i) {
    state = state * 0.5 + 1.0;
    state.eval();
  }
  EXPECT_LT(engine().memory().live_bytes, std::size_t{1} << 20);
  const NoGrad no_grad;
  const Net net;
  const Array in = x() * 1.0, y = net.hidden(in);
  eval({in, y});
  EXPECT_EQ(in.node().use_count(), 1);
}

}  // namespace
}  // namespace samebytes::testing

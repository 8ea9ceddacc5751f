// Engines and the arrays that belong to them: two at a time, arrays that outlive theirs, borrows of their bytes.
#include <gtest/gtest.h>

#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes::testing {
namespace {

TEST(Engines, two_live_side_by_side_and_do_not_mix) {
  Engine first, second;
  const Array a = array({1.0f});
  Array b;
  {
    const EngineScope use(second);
    b = array({2.0f});
    EXPECT_EQ((b + 1.0).value(), 3.0);
  }
  EXPECT_EQ((a + 1.0).value(), 2.0);
  EXPECT_THROW(a + b, ArgumentError);
}

TEST(Engines, a_moved_from_array_is_empty_and_what_was_assigned_over_is_gone) {
  Engine engine;
  const auto held = [&] { return engine.memory().live_bytes; };
  const std::size_t before = held();
  Array a = zeros({1 << 20}).eval(), b = ones({256}).eval();
  EXPECT_GE(held(), before + 4 * (1u << 20));
  a = std::move(b);
  EXPECT_FALSE(b.defined());  // NOLINT(bugprone-use-after-move): a moved-from handle is an empty one
  EXPECT_LT(held(), before + 4 * (1u << 20));
  EXPECT_EQ(a.to_vector<float>()[255], 1.0f);
  Array& same = a;
  a = std::move(same);
  EXPECT_TRUE(a.defined());
}

TEST(Engines, a_view_that_is_assigned_over_ends_at_once) {
  Engine engine;
  const Array a = zeros({4}).eval(), b = zeros({4}).eval();
  auto of_a = a.mutable_host<float>();
  auto of_b = b.mutable_host<float>();
  of_a = std::move(of_b);
  EXPECT_EQ((a + 1.0).to_vector<float>(), (std::vector<float>{1, 1, 1, 1}));  // a is not borrowed any more
}

TEST(Engines, an_array_may_outlive_its_engine_but_not_be_used) {
  Array a;
  {
    Engine engine;
    a = array({1.0f}) + 1.0;
    a.eval();
  }
  Engine other;
  EXPECT_THROW(a.value(), ArgumentError);
  EXPECT_THROW(a + 1.0, ArgumentError);
}

TEST(Engines, without_one_the_error_says_how_to_make_it) {
  try {
    zeros({1});
    FAIL() << "nothing was thrown";
  } catch (const ArgumentError& error) {
    EXPECT_NE(std::string(error.what()).find("samebytes::Engine engine"), std::string::npos);
  }
}

TEST(Engines, a_writing_view_keeps_launches_away_and_names_its_place) {
  Engine engine;
  const Array a = array({1, 2, 3});
  {
    const auto view = a.mutable_host<float>();
    view[0] = 10;
    try {
      (a + 1.0).eval();
      FAIL() << "nothing was thrown";
    } catch (const ArgumentError& error) {
      EXPECT_NE(std::string(error.what()).find("engines_test.cpp:"), std::string::npos) << error.what();
    }
  }
  EXPECT_EQ((a + 1.0).to_vector<float>(), (std::vector<float>{11, 3, 4}));
  const auto reading = a.host<float>();
  EXPECT_EQ((a * 2.0).to_vector<float>()[0], 20.0f);  // readers may share
}

TEST(Engines, results_of_ops_cannot_be_written_before_they_are_evaluated) {
  Engine engine;
  const Array y = array({1, 2}) * 2.0;
  EXPECT_THROW(y.mutable_host<float>(), ArgumentError);
  y.eval();
  y.mutable_host<float>()[0] = 7;
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{7, 4}));
}

TEST(Engines, check_nan_names_the_first_op_that_made_one) {
  Engine engine({.check_nan = true});
  const Array x = array({1.0f, 0.0f});
  const Array y = sum(log(x) * 2.0) + 1.0;
  try {
    y.eval();
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("log produced the first NaN or infinity"), std::string::npos)
        << error.what();
  }
  EXPECT_EQ(sum(x).value(), 1.0);
}

}  // namespace
}  // namespace samebytes::testing

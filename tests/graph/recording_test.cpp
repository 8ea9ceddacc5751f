// A recorded graph gives, over other inputs, what the code that built it would give.
#include "graph/recording.h"

#include <gtest/gtest.h>

#include <vector>

#include "samebytes/samebytes.h"

namespace samebytes::detail {
namespace {

class Recordings : public ::testing::Test {
 protected:
  Engine engine_;
  const EngineScope scope_{engine_};
  const NoGrad no_grad_;
};

// What `results` are made of, as if code that began before anything had built it.
std::optional<Recording> recorded(const std::vector<Array>& inputs, const std::vector<Array>& results) {
  return Recording::of({.next_node = 0, .host_reads = host_reads()}, inputs, results);
}

std::vector<float> built(const Recording& recording, const std::vector<Array>& inputs) {
  const auto results = recording.build(inputs);
  EXPECT_TRUE(results);
  return results ? contiguous((*results)[0]).to_vector<float>() : std::vector<float>{};
}

TEST_F(Recordings, views_several_results_and_scalars_are_built_again) {
  const Array w = array({1, 2, 3, 4, 5, 6}, {2, 3});
  w.wait();
  const auto code = [&](const Array& x, const Array& y) {
    const auto [values, places] = top_k(matmul(x, w), 2);
    return transpose(slice(values, 1, 0, 1)) * 0.5 + sum(transpose(y) + 1.0, {0}) + astype(sum(places), f32);
  };
  const auto input = [](float a) { return array({a, 2, 0, -1, 3, a}, {3, 2}); };
  const Array x = input(1), y = input(2);
  const std::vector<Array> results{code(x, y)};
  const auto recording = recorded({x, y}, results);
  ASSERT_TRUE(recording);
  for (const float a : {5.0F, -4.0F}) {
    const Array p = input(a), q = input(-a).wait();
    EXPECT_EQ(built(*recording, {p, q}), contiguous(code(p, q)).to_vector<float>());
  }
  EXPECT_EQ(contiguous(results[0]).to_vector<float>(), contiguous(code(x, y)).to_vector<float>());
}

TEST_F(Recordings, leaves_have_the_values_of_now) {
  const Array w = cell(array({1, 2}, {2}), "w");
  const Array x = array({10, 20}, {2});
  const std::vector<Array> results{x * w};
  const auto recording = recorded({x}, results);
  ASSERT_TRUE(recording);
  const Array other = array({1, 1}, {2});
  EXPECT_EQ(built(*recording, {other}), (std::vector<float>{1, 2}));
  assign(w, array({3, 4}, {2}));
  EXPECT_EQ(built(*recording, {other}), (std::vector<float>{3, 4}));
}

TEST_F(Recordings, an_input_that_is_a_result_or_lazy) {
  const Array x = zeros({2});
  const auto recording = recorded({x}, {x, x + 1.0});
  ASSERT_TRUE(recording);
  const Array lazy = array({1, 2}, {2}) * 2.0;
  const auto results = recording->build(std::vector<Array>{lazy});
  ASSERT_TRUE(results);
  EXPECT_EQ((*results)[1].to_vector<float>(), (std::vector<float>{3, 5}));
  EXPECT_EQ((*results)[0].to_vector<float>(), (std::vector<float>{2, 4}));
}

TEST_F(Recordings, what_cannot_be_built_again_is_refused) {
  const Array x = array({1, 2}, {2}), whole = array({1, 2, 3, 4}, {4});
  const Array part = slice(whole, 0, 1, 3);
  const Moment begin = Moment::now();
  const Array early = (x + 1.0).wait();
  EXPECT_FALSE(Recording::of(begin, std::vector<Array>{x}, std::vector<Array>{early * 2.0})) << "evaluated meanwhile";
  EXPECT_TRUE(Recording::of(Moment::now(), std::vector<Array>{x}, std::vector<Array>{x * early})) << "... or before";
  const float first = x.to_vector<float>()[0];
  EXPECT_FALSE(Recording::of(begin, std::vector<Array>{x}, std::vector<Array>{x * first})) << "looked at a value";
  EXPECT_FALSE(recorded({x, x}, {x + 1.0})) << "an input that comes twice";
  EXPECT_FALSE(recorded({part}, {part + 1.0})) << "a view";
  const auto recording = recorded({x}, {x + 1.0});
  ASSERT_TRUE(recording);
  EXPECT_FALSE(recording->build(std::vector<Array>{part}));
  EXPECT_EQ(built(*recording, {part + 0.0}), (std::vector<float>{3, 4}));
}

// What a split keeps, and what is left to do.
TEST_F(Recordings, what_follows_from_leaves_alone_is_kept) {
  const Array w = cell(array({1, 2, 3, 4}, {2, 2}), "w"), shift = cell(array({1, 1}, {2}), "shift");
  const Array x = array({1, 0, 0, 1}, {2, 2});
  const auto code = [&](const Array& input) {
    const Array scaled = w * 2.0 + shift;              // kept
    return matmul(input, transpose(scaled)) + shift +  // a view of it is not, nor a leaf
           reshape(exp(arange(4)), {2, 2});            // nothing that a leaf has a part in
  };
  const auto recording = recorded({x}, std::vector<Array>{code(x)});
  ASSERT_TRUE(recording);
  const auto parts = recording->split(std::vector<Array>{x});
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->bytes, 16U);
  const auto kept = parts->constants.build({});
  ASSERT_TRUE(kept);
  ASSERT_EQ(kept->size(), 1U);
  (*kept)[0].wait();
  EXPECT_EQ((*kept)[0].to_vector<float>(), (std::vector<float>{3, 5, 7, 9}));
  const Array other = array({2, 1, -1, 5}, {2, 2});
  EXPECT_EQ(built(parts->rest, {other, (*kept)[0]}), code(other).to_vector<float>());
  EXPECT_FALSE(recorded({x}, {relu(x) + 1.0})->split(std::vector<Array>{x})) << "nothing to keep";
}

TEST_F(Recordings, equal_keys_are_equal_values) {
  const Array w = cell(array({1, 2}, {2}), "w"), v = cell(array({1, 2}, {2}), "v");
  const Array x = array({1, 1}, {2}), y = array({1, 1, 1, 1}, {2, 2});
  const auto key = [&](const Array& input, const Array& made) {
    return recorded({input}, {input * made})->split(std::vector<Array>{input})->constants.keys().at(0);
  };
  const auto first = key(x, w * 2.0);
  EXPECT_EQ(first, key(y, w * 2.0)) << "whatever reads it";
  EXPECT_NE(first, key(x, w * 3.0));
  EXPECT_NE(first, key(x, w + 2.0));
  EXPECT_NE(first, key(x, v * 2.0));
  assign(w, array({1, 2}, {2}));
  EXPECT_NE(first, key(x, w * 2.0)) << "overwritten since";
}

}  // namespace
}  // namespace samebytes::detail

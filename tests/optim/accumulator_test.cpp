// Accumulator: many micro-batches are one large batch, in the memory of one of them and of one flat gradient.
#include "samebytes/optim/accumulator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

class AccumulatorTest : public OnDevice {
 protected:
  static constexpr std::int64_t kRows = 50, kWidth = 24;

  // Parameters after four steps of batches of 50 rows in pieces of so many; 0: not accumulated. The last piece is added
  // and the step taken in one evaluation, or in two.
  std::vector<float> train(std::int64_t piece, bool at_once = true, double clip_norm = 0.0) {
    const auto own = make_engine(GetParam(), {.seed = 3});
    const EngineScope scope(*own);
    nn::Sequential net(nn::Linear({.in = kWidth, .out = 32}), nn::LayerNorm({.features = 32}), nn::Relu(),
                       nn::Linear({.in = 32, .out = 10}));
    optim::Sgd sgd(net.parameters(), {.rate = 0.1, .momentum = 0.9, .clip_norm = clip_norm});
    optim::Accumulator accumulator(sgd);
    for (int step = 0; step < 4; ++step) {
      const auto seed = static_cast<std::uint64_t>(step);
      const Array x = uniform({kRows, kWidth}, -1, 1, f32, {seed, 1});
      const Array labels = astype(uniform({kRows}, 0, 10, f32, {seed, 90000}), i32);
      eval({x, labels});
      if (piece == 0) {
        sgd.step(cross_entropy(net(x), labels));
        continue;
      }
      const auto plans = own->plans().plans_made;
      for (std::int64_t begin = 0; begin < kRows; begin += piece) {
        const std::int64_t end = std::min(kRows, begin + piece);
        const auto loss = [&] { return cross_entropy(net(share_rows(x, begin, end)), share_rows(labels, begin, end)); };
        const auto samples = static_cast<double>(end - begin);
        if (at_once && end == kRows)
          accumulator.step(loss(), samples);
        else
          accumulator.add(loss(), samples);
      }
      accumulator.step();  // does nothing where that was done
      if (step > 0) {
        EXPECT_EQ(own->plans().plans_made, plans) << "pieces share their plans";
      }
    }
    EXPECT_EQ(own->transfers().bytes_copied, 0u);
    return sgd.arenas()[0].values().to_vector<float>();
  }
};
SAMEBYTES_ON_EVERY_DEVICE(AccumulatorTest);

TEST_P(AccumulatorTest, pieces_of_a_batch_train_as_the_batch_does) {
  const std::vector<float> whole = train(0);
  const float largest = std::abs(
      *std::max_element(whole.begin(), whole.end(), [](float a, float b) { return std::abs(a) < std::abs(b); }));
  for (const std::int64_t piece : {16, 50}) {  // 16, 16, 16 and 2
    const std::vector<float> came = train(piece);
    float difference = 0;
    for (std::size_t i = 0; i < whole.size(); ++i) difference = std::max(difference, std::abs(came[i] - whole[i]));
    EXPECT_LE(difference, 1e-6f * largest) << piece;
  }
}

TEST_P(AccumulatorTest, the_last_piece_and_the_step_are_one_evaluation_with_the_same_bytes) {
  EXPECT_EQ(train(25, true), train(25, false));
  EXPECT_EQ(train(25, true, 0.01), train(25, false, 0.01));
}

// The first piece's gradients are made in the cell of the means itself, whatever it held.
TEST_P(AccumulatorTest, the_first_piece_needs_no_pass_over_its_gradients) {
  const auto own = make_engine(GetParam());
  const EngineScope scope(*own);
  const Array w = cell(uniform({24, 32}, -1, 1, f32, {1, 1}), "w");
  optim::Sgd sgd(std::vector<Array>{w}, {.rate = 0.1});
  optim::Accumulator accumulator(sgd);
  const Array x = uniform({16, 32}, -1, 1, f32, {1, 9});
  x.wait();
  const auto loss = [&] { return mean(square(linear(x, w))); };
  const auto launches = [&](const auto& work) {
    work();
    accumulator.reset();
    const auto before = own->plans().launches;
    work();
    return own->plans().launches - before;
  };
  const auto first = launches([&] { accumulator.add(loss(), 16); });
  const auto both = launches([&] {
    accumulator.add(loss(), 16);
    accumulator.add(loss(), 16);
  });
  EXPECT_EQ(both, 2 * first + 1) << "the second piece is added";
  accumulator.reset();
  accumulator.add(loss(), 16);
  const std::vector<float> once = accumulator.means()[0].to_vector<float>();
  accumulator.add(loss(), 16);
  EXPECT_EQ(accumulator.means()[0].to_vector<float>(), once) << "the mean of two equal gradients";
}

// A loss that somebody holds while pieces are added up is there without a forward pass of its own.
TEST_P(AccumulatorTest, losses_that_are_held_cost_nothing) {
  const auto own = make_engine(GetParam());
  const EngineScope scope(*own);
  const Array w = cell(uniform({10, 24}, -1, 1, f32, {1, 1}), "w");
  optim::Sgd sgd(std::vector<Array>{w}, {.rate = 0.1});
  optim::Accumulator accumulator(sgd);
  const Array x = uniform({16, 24}, -1, 1, f32, {1, 9});
  const Array labels = astype(uniform({16}, 0, 10, f32, {1, 90000}), i32);
  eval({x, labels});
  const auto launches = [&](bool holds) {
    std::vector<Array> held;
    const auto before = own->plans().launches;
    for (int i = 0; i < 4; ++i) {
      const Array loss = cross_entropy(linear(x, w), labels);
      if (i == 3)
        accumulator.step(loss, 16);
      else
        accumulator.add(loss, 16);
      if (holds) held.push_back(loss);
    }
    for (const Array& loss : held) EXPECT_EQ(loss.value(), held[0].value());
    return own->plans().launches - before;
  };
  launches(false);  // cells at their first use
  const auto first = launches(false);
  EXPECT_EQ(launches(true), first);
}

// Five layers of 1024 x 1024: parameters and gradients of 20 MiB each.
TEST_P(AccumulatorTest, gradients_are_never_there_beside_their_sums) {
  if (is_simulated()) GTEST_SKIP() << "megabytes are many for an interpreter";
  constexpr std::int64_t kSide = 1024, kLayers = 5;
  constexpr std::size_t kBytes = std::size_t{kSide * kSide * kLayers * 4};
  const auto peak = [&](bool accumulates) {
    const auto own = make_engine(GetParam());
    const EngineScope scope(*own);
    std::vector<Array> cells;
    for (int i = 0; i < kLayers; ++i)
      cells.push_back(cell(uniform({kSide, kSide}, -0.05, 0.05, f32, {1, static_cast<std::uint64_t>(i)}), "w"));
    optim::Sgd sgd(cells, {.rate = 1e-3, .clip_norm = accumulates ? 0.0 : 1.0});
    const Array x = uniform({16, kSide}, -1, 1, f32, {1, 9});
    x.wait();
    const auto loss = [&] {
      Array y = x;
      for (const Array& c : cells) y = relu(linear(y, c));
      return mean(square(y));
    };
    if (accumulates) {
      optim::Accumulator accumulator(sgd);
      for (int i = 0; i < 3; ++i) accumulator.add(loss(), 16);
      accumulator.step();
    } else {
      sgd.step(loss());
    }
    own->wait();
    return own->memory().peak_bytes;
  };
  EXPECT_LE(peak(true), peak(false) + kBytes / 2) << "the sums are in the gradient's place";
}

TEST_P(AccumulatorTest, rows_are_shared_and_what_they_cannot_be_of_is_named) {
  const Array x = array({1, 2, 3, 4, 5, 6}, {3, 2});
  const Array rows = share_rows(x, 1, 3);
  EXPECT_EQ(rows.shape(), (Shape{2, 2}));
  EXPECT_EQ(rows.to_vector<float>(), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_EQ(share_rows(rows, 1, 2).to_vector<float>(), (std::vector<float>{5, 6}));
  EXPECT_EQ(share_rows(x, 2, 2).shape(), (Shape{0, 2}));
  EXPECT_EQ(share_rows(x * 2.0, 0, 1).to_vector<float>(), (std::vector<float>{2, 4}));
  x.mutable_host<float>()[4] = 9;
  EXPECT_EQ(rows.to_vector<float>(), (std::vector<float>{3, 4, 9, 6}));
  EXPECT_ERROR((share_rows(x, 1, 4)), ArgumentError, "share_rows: rows [1, 4) are not in src f32 [3, 2]");
  EXPECT_ERROR((share_rows(transpose(x), 0, 1)), ArgumentError,
               "share_rows: needs a contiguous array that shows no cell, src is f32 [2, 3]");
  EXPECT_ERROR((share_rows(cell(zeros({2}), "c"), 0, 1)), ArgumentError,
               "share_rows: needs a contiguous array that shows no cell, src is f32 [2]");
}

}  // namespace
}  // namespace samebytes::testing

// Gradient release: parameters are the same bit for bit, gradients are never all there at once, and what needs them all
// is refused. Large flat gradients share the arena with activations also where they are not released.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string_view>

#include "plan/arena.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using detail::ArenaRequest;
using Values = std::vector<std::vector<float>>;

class ReleaseTest : public OnDevice {
 protected:
  // A small language model whose embedding is its output layer as well: that parameter has two contributions to its
  // gradient, and all sizes leave gaps between parameters.
  struct Model {
    std::vector<Array> cells;
    Model() {
      const Shape shapes[] = {{37, 19}, {19, 23}, {23}, {23, 19}, {19}, {19}};
      std::uint64_t seed = 1;
      for (const Shape& shape : shapes) {
        cells.push_back(cell(real_array(random_values(shape.size(), seed), shape, f32), "p" + std::to_string(seed)));
        ++seed;
      }
    }
    Array loss(const Array& ids, const Array& target) const {
      const Array x = take(cells[0], ids, 0);
      const Array y = relu(matmul(x, cells[1]) + cells[2]);
      const Array z = (matmul(y, cells[3]) + cells[4]) * cells[5];
      return cross_entropy(matmul(z, transpose(cells[0])), target);
    }
  };

  struct Run {
    Values values;
    std::uint64_t launches = 0;  // of the last step
  };
  static Run train(Engine& engine,
                   const std::function<std::unique_ptr<optim::Optimizer>(std::span<const Array>)>& make) {
    const Model model;
    const auto optimizer = make(model.cells);
    const Array ids = array({3, 36, 3, 0, 17}), target = array({1, 2, 3, 36, 0});
    const Array ids_i32 = astype(ids, i32), target_i32 = astype(target, i32);
    eval({ids_i32, target_i32});
    Run run;
    for (int step = 0; step < 3; ++step) {
      const std::uint64_t before = engine.plans().launches;
      optimizer->step(model.loss(ids_i32, target_i32));
      run.launches = engine.plans().launches - before;
    }
    for (const auto& arena : optimizer->arenas()) run.values.push_back(arena.values().to_vector<float>());
    for (const auto& entry : optimizer->state()) run.values.push_back(entry.array.to_vector<float>());
    return run;
  }

  void is_the_same(const std::function<std::unique_ptr<optim::Optimizer>(std::span<const Array>, bool)>& make) {
    const Run together = train(engine(), [&](auto cells) { return make(cells, false); });
    const Run released = train(engine(), [&](auto cells) { return make(cells, true); });
    EXPECT_EQ(together.values, released.values);  // gaps included
    EXPECT_GT(released.launches, together.launches + 1);
  }
};
SAMEBYTES_ON_EVERY_DEVICE(ReleaseTest);

TEST_P(ReleaseTest, adamw_ends_with_the_same_bytes) {
  is_the_same([](std::span<const Array> cells, bool release) {
    return std::make_unique<optim::AdamW>(
        cells, optim::AdamWOptions{.rate = 0.01, .clip_value = 0.02, .release_gradients = release});
  });
}

TEST_P(ReleaseTest, sgd_with_momentum_ends_with_the_same_bytes) {
  is_the_same([](std::span<const Array> cells, bool release) {
    return std::make_unique<optim::Sgd>(
        cells, optim::SgdOptions{.rate = 0.1, .momentum = 0.9, .weight_decay = 0.01, .release_gradients = release});
  });
}

TEST_P(ReleaseTest, moments_in_16_bits_end_with_the_same_bytes) {
  is_the_same([](std::span<const Array> cells, bool release) {
    return std::make_unique<optim::AdamW>(
        cells, optim::AdamWOptions{.rate = 0.01, .release_gradients = release, .moments = bf16});
  });
}

TEST_P(ReleaseTest, what_reads_the_old_parameters_reads_them_before_they_change) {
  const auto run = [&](bool release) {
    const Model model;
    optim::Sgd sgd(model.cells, {.rate = 1.0, .release_gradients = release});
    const Array ids = astype(array({3, 5}), i32);
    const Array sums = sum(model.cells[3], {0}), kept = sgd.arenas()[0].values() * 2.0;
    sgd.step(model.loss(ids, ids));
    return Values{sums.to_vector<float>(), kept.to_vector<float>(), model.cells[3].to_vector<float>()};
  };
  EXPECT_EQ(run(false), run(true));
}

TEST_P(ReleaseTest, gradients_of_the_caller_are_taken_as_well) {
  const auto run = [&](bool release) {
    const Model model;
    optim::Sgd sgd(model.cells, {.rate = 0.5, .release_gradients = release});
    std::vector<Array> slopes;
    std::uint64_t seed = 20;
    for (const Array& c : model.cells) slopes.push_back(real_array(random_values(c.size(), seed++), c.shape(), f32));
    slopes[1] = transpose(transpose(slopes[1]) * 2.0);
    sgd.step(slopes);
    return sgd.arenas()[0].values().to_vector<float>();
  };
  EXPECT_EQ(run(false), run(true));
}

TEST_P(ReleaseTest, what_needs_all_gradients_is_refused) {
  const Model model;
  EXPECT_ERROR((optim::AdamW(model.cells, {.clip_norm = 1.0, .release_gradients = true})), ArgumentError,
               "AdamW: release_gradients updates parameters before all gradients are there, so clip_norm must be 0, "
               "got 1.000000; clip_value can be used");
  optim::Sgd sgd(model.cells, {.release_gradients = true});
  EXPECT_ERROR(
      (optim::Accumulator(sgd)), ArgumentError,
      "Accumulator: the optimizer has release_gradients, which updates parameters before their gradients can be "
      "added up; use one of the two");
  const Array flat = zeros({sgd.arenas()[0].size()});
  EXPECT_ERROR((sgd.step_flat(std::span<const Array>(&flat, 1))), ArgumentError,
               "Sgd: release_gradients never has a flat gradient; use step(loss), or step_flat without it");
}

// Five layers of 1024 x 1024: a flat gradient of 20 MiB.
class LargeGradients : public ReleaseTest {
 protected:
  static constexpr std::int64_t kWidth = 1024, kLayers = 5, kRows = 16;
  static constexpr std::size_t kBytes = std::size_t{kWidth * kWidth * kLayers * 4};

  struct Result {
    std::vector<float> values;
    std::size_t peak = 0;
  };
  Result step(const optim::AdamWOptions& options, bool packs = true) {
    const auto engine = make_engine(GetParam());
    const EngineScope use(*engine);
    std::vector<Array> cells;
    for (int i = 0; i < kLayers; ++i)
      cells.push_back(cell(uniform({kWidth, kWidth}, -0.05, 0.05, f32, {1, static_cast<std::uint64_t>(i)}), "w"));
    optim::AdamW adam(cells, options);
    const Array x = uniform({kRows, kWidth}, -1.0, 1.0, f32, {1, 9});
    x.wait();
    for (int i = 0; i < 2; ++i) {
      const auto loss = [&] {
        Array y = x;
        for (const Array& w : cells) y = tanh(matmul(y, w));
        return mean(square(y));
      };
      if (packs)
        adam.step(loss());
      else
        adam.step(gradients(loss(), cells));
    }
    return {adam.arenas()[0].values().to_vector<float>(), engine->memory().peak_bytes};
  }
};
SAMEBYTES_ON_EVERY_DEVICE(LargeGradients);

TEST_P(LargeGradients, share_the_arena_with_activations_and_leave_it_when_they_are_released) {
  if (is_simulated()) GTEST_SKIP() << "interpreted";
  const Result apart = step({}, false), packed = step({.clip_norm = 1e9}), released = step({.release_gradients = true});
  EXPECT_EQ(apart.values, released.values);
  EXPECT_EQ(apart.values, packed.values);  // the norm is far from its limit
  const char* const allocator = std::getenv("SAMEBYTES_ALLOCATOR");
  if (allocator && std::string_view(allocator) == "exact") return;  // nothing shares bytes
  EXPECT_GE(packed.peak, 4 * kBytes);                               // parameters, moments, gradients
  EXPECT_LE(packed.peak, 4 * kBytes + kBytes / 8);
  EXPECT_LE(released.peak + kBytes / 2, packed.peak);
}

TEST(ArenaGroups, keep_their_distances_and_only_block_what_meets_them) {
  // A flat gradient whose parts are written from the last to the first, over activations that die in that order.
  std::vector<ArenaRequest> requests;
  constexpr int kCount = 12;
  constexpr std::size_t kSize = 1280;
  for (int i = 0; i < kCount; ++i) requests.push_back({kSize, i, 2 * kCount - 1 - i});
  for (int i = 0; i < kCount; ++i)
    requests.push_back({kSize, 2 * kCount - i, 3 * kCount, 7, static_cast<std::size_t>(i) * kSize});
  const auto layout = detail::lay_out(requests, 1 << 20);
  const std::size_t least = detail::least_bytes(requests);
  EXPECT_EQ(least, kSize * kCount);
  ASSERT_EQ(layout.segments.size(), 1u);
  EXPECT_LE(layout.segments[0], least + 2 * kSize);
  for (int i = 0; i < kCount; ++i)
    EXPECT_EQ(layout.places[static_cast<std::size_t>(kCount + i)].offset - layout.places[kCount].offset,
              static_cast<std::size_t>(i) * kSize);
  for (std::size_t a = 0; a < requests.size(); ++a)
    for (std::size_t b = a + 1; b < requests.size(); ++b) {
      const bool meet = requests[a].first <= requests[b].last && requests[b].first <= requests[a].last;
      const std::size_t p = layout.places[a].offset, q = layout.places[b].offset;
      EXPECT_TRUE(!meet || p + requests[a].bytes <= q || q + requests[b].bytes <= p) << a << " and " << b;
    }
}

}  // namespace
}  // namespace samebytes::testing

// What a loader draws has nothing to do with what the engine draws, however their seeds are.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes::testing {
namespace {

class RandomStreams : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(RandomStreams);

constexpr std::int64_t kNumbers = 8;

// Fills the field with the numbers that it gets.
class Draws final : public data::Transform {
 public:
  void check(std::span<const data::FieldSpec>) const override {}
  void apply(std::span<const data::Field> sample, const SequenceKey& key) const override {
    Random random(key);
    for (float& value : sample[0].as<float>()) value = random.uniform();
  }
};

// Puts its own numbers into the batch.
class DrawingCollate final : public data::Collate {
 public:
  std::vector<data::FieldSpec> fields(const data::Dataset&, std::span<const std::int64_t> indices) const override {
    return {{"x", Shape{static_cast<std::int64_t>(indices.size()), kNumbers}}};
  }
  std::int64_t fill(const data::Dataset&, std::span<const std::int64_t> indices, const data::ReadSample&,
                    std::span<data::Field> batch, const SequenceKey& key) const override {
    SequenceKey first = key;
    first.lane = 0;
    Random random(first);
    for (float& value : batch[0].as<float>()) value = random.uniform();
    return static_cast<std::int64_t>(indices.size());
  }
};

std::vector<float> first_batch(Engine& engine, const data::DatasetPtr& set, const data::LoaderOptions& options) {
  data::Loader loader(engine, set, options);
  return (*loader.begin())[0].to_vector<float>();
}

TEST_P(RandomStreams, equal_seeds_give_transforms_collates_sets_and_arrays_different_numbers) {
  const auto own = make_engine(GetParam(), {.seed = 5});
  const EngineScope scope(*own);
  const auto zeros = data::in_memory({{"x", HostArray(Shape{4, kNumbers}, f32)}});
  const auto draws = std::make_shared<Draws>();
  std::vector<std::vector<float>> all{
      uniform({kNumbers}).to_vector<float>(),
      uniform({kNumbers}, 0, 1, f32, {.seed = 5, .domain = RandomDomain::initialisation}).to_vector<float>(),
      first_batch(*own, zeros, {.seed = 5, .transforms = {draws}}),
      first_batch(*own, data::transformed(zeros, {draws}, 5), {}),
      first_batch(*own, zeros, {.seed = 5, .collate = std::make_shared<DrawingCollate>()}),
      {},
  };
  Random random({.seed = 5});
  for (std::int64_t i = 0; i < kNumbers; ++i) all.back().push_back(random.uniform());
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(all[i], all[j]) << j << " and " << i;
}

TEST_P(RandomStreams, an_engine_s_first_parameters_are_not_the_first_array_of_an_engine_of_equal_seed) {
  const auto first = make_engine(GetParam(), {.seed = 5}), second = make_engine(GetParam(), {.seed = 5});
  std::vector<float> array, weights;
  {
    const EngineScope scope(*first);
    array = uniform({6}).to_vector<float>();
  }
  {
    const EngineScope scope(*second);
    nn::Linear layer({.in = 1, .out = 6});
    for (const float w : layer.parameters()[0].to_vector<float>()) weights.push_back((w + 1) / 2);  // in +-1
  }
  for (std::size_t i = 0; i < array.size(); ++i) EXPECT_GT(std::abs(array[i] - weights[i]), 1e-6f) << i;
}

}  // namespace
}  // namespace samebytes::testing

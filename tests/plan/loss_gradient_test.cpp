// Losses and their gradients in one launch: where the upstream gradient is there, and nowhere else.
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes::testing {
namespace {

class LossGradientTest : public OnDevice {
 protected:
  struct Came {
    std::vector<float> loss, gradient;
    std::uint64_t launches = 0;
  };
  // Loss, gradient and launches, with the logits made by a kernel, so that the gradient may lie in their place.
  Came run(const Array& x, const std::function<Array(const Array&)>& loss_of) {
    const auto before = engine().plans().launches;
    const Array loss = loss_of(cumsum(x, 1));
    const Array gradient = gradients(loss, std::vector<Array>{x})[0];
    eval({loss, gradient});
    Came came{loss.to_vector<float>(), gradient.to_vector<float>()};
    came.launches = engine().plans().launches - before;
    return came;
  }
  static Array logits(const Shape& shape) { return uniform(shape, -2, 2).wait(); }
  static Array labels(std::int64_t rows, std::int64_t classes) {
    std::vector<std::int32_t> values;
    for (std::int64_t i = 0; i < rows; ++i) values.push_back(static_cast<std::int32_t>((i * 3 + 1) % classes));
    return array(values, {rows});
  }
};
SAMEBYTES_ON_EVERY_DEVICE(LossGradientTest);

TEST_P(LossGradientTest, one_launch_gives_what_two_give) {
  for (const Shape& shape : {Shape{37, 7}, Shape{5, 67}, Shape{3, 1531}}) {
    const Array x = logits(shape), label = labels(shape[0], shape[1]), weight = uniform({shape[1]}, 0.5, 2).wait();
    for (const float smoothing : {0.0f, 0.1f})
      for (const bool is_weighted : {false, true})
        for (const std::optional<int> ignored : {std::optional<int>(), std::optional<int>(0)}) {
          // Long rows take the same ways through everything but the row itself.
          if (shape[1] > 7 && (is_weighted != ignored.has_value() || (smoothing > 0) != is_weighted)) continue;
          CrossEntropyOptions options{.label_smoothing = smoothing, .ignore_index = ignored};
          if (is_weighted) options.class_weight = weight;
          const Came together = run(x, [&](const Array& y) { return cross_entropy(y, label, options); });
          // An upstream gradient that is made from the loss comes too late: the square of s has the derivative 2 s.
          const Came apart = run(x, [&](const Array& y) {
            const Array loss = cross_entropy(y, label, options);
            return loss + 0.0 * square(loss);
          });
          EXPECT_EQ(together.loss, apart.loss) << shape.to_string();
          EXPECT_EQ(together.gradient, apart.gradient) << shape.to_string() << smoothing << is_weighted;
          EXPECT_LT(together.launches, apart.launches);
        }
  }
}

TEST_P(LossGradientTest, rows_and_probabilities_have_it_too) {
  const Array x = logits({9, 21}), t = softmax(logits({9, 21})).wait();
  const auto both = [&](const CrossEntropyOptions& options) {
    const Came together = run(x, [&](const Array& y) { return cross_entropy(y, t, options); });
    const Came apart = run(x, [&](const Array& y) {
      const Array loss = cross_entropy(y, t, options);
      return loss + 0.0 * square(loss);
    });
    EXPECT_EQ(together.loss, apart.loss);
    EXPECT_EQ(together.gradient, apart.gradient);
  };
  both({});
  both({.label_smoothing = 0.2f, .reduction = Reduction::sum});
}

TEST_P(LossGradientTest, logits_that_somebody_keeps_stay_as_they_are) {
  const Array x = logits({19, 11}), label = labels(19, 11);
  const Array kept = cumsum(x, 1);
  const Array loss = cross_entropy(kept, label);
  const Array gradient = gradients(loss, std::vector<Array>{x})[0];
  eval({loss, gradient});
  EXPECT_EQ(kept.to_vector<float>(), cumsum(x, 1).to_vector<float>());
}

TEST_P(LossGradientTest, logits_that_are_their_own_target_are_not_written_over) {
  const Array x = logits({6, 33});
  const auto loss_of = [](const Array& y) { return cross_entropy(y, stop_gradient(y)); };
  const Came together = run(x, loss_of);
  const Came apart = run(x, [&](const Array& y) {
    const Array loss = loss_of(y);
    return loss + 0.0 * square(loss);
  });
  EXPECT_EQ(together.gradient, apart.gradient);
}

TEST_P(LossGradientTest, the_place_of_the_logits_is_enough) {
  const auto engine = make_engine(GetParam());
  const EngineScope use(*engine);
  const Array x = full({256, 1024}, 0.001), label = labels(256, 1024);  // 1 MiB
  eval({x, label});
  const std::size_t before = engine->memory().live_bytes;
  const auto step = [&] {
    const Array y = cumsum(x, 1);
    return sum(gradients(cross_entropy(y, label), std::vector<Array>{y})[0]);
  };
  step().wait();
  EXPECT_LE(engine->memory().live_bytes - before, (std::size_t{1} << 20) * 3 / 2);
}

}  // namespace
}  // namespace samebytes::testing

// Sums are split by shape, never by the number of cores.
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/gradcheck.h"
#include "support/quirks.h"

namespace samebytes::testing {
namespace {

class Threads : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(Threads);

TEST_P(Threads, one_core_gives_the_same_bytes_as_all_of_them) {
  SAMEBYTES_NEEDS_PARTS();
  const auto part = make_engine(GetParam(), {.split = {1}});
  const auto draw = [](const Shape& shape) { return normal(shape, 0, 1, f32, {.seed = 11, .counter = 3}); };
  const std::vector<std::function<Array()>> functions{
      [&] { return draw({100003}); },
      [&] { return sum(draw({1000003})); },
      [&] {
        return sum(draw({100003, 10}), {0});
      },
      [&] {
        return sum(draw({3001, 301}), {0});
      },
      [&] {
        return mean(draw({31, 7, 501}), {0, 2});
      },
      [&] {
        return softmax(draw({1003, 101}));
      },
      [&] { return dropout(draw({100003}), 0.5, {.seed = 1, .counter = 2}); },
      [&] {
        const std::vector<Array> logits{draw({5003, 10})};
        return gradients(cross_entropy(logits[0], argmax(draw({5003, 10}))), logits)[0];
      },
  };
  for (std::size_t i = 0; i < functions.size(); ++i) {
    const std::vector<float> all = functions[i]().to_vector<float>();
    const EngineScope scope(*part);
    EXPECT_EQ(functions[i]().to_vector<float>(), all) << "function " << i;
  }
}

}  // namespace
}  // namespace samebytes::testing

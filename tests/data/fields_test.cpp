// Batches of any number of fields in a loop.
#include <gtest/gtest.h>

#include <vector>

#include "samebytes/data/array_set.h"
#include "samebytes/data/loader.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

class FieldsTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(FieldsTest);

TEST_P(FieldsTest, a_loop_binds_as_many_arrays_as_a_batch_has) {
  const auto column = [](const char* name, float first) {
    return data::ArrayColumn{name, array({first, first + 1, first + 2, first + 3})};
  };
  data::Loader batches(engine(), data::from_arrays({column("a", 0), column("b", 10), column("c", 20)}), {.batch = 2});
  std::vector<double> seen;
  for (const auto& [a, b, c] : data::fields<3>(batches))
    for (const Array* one : {&a, &b, &c}) seen.push_back(one->to_vector<double>()[0]);
  EXPECT_EQ(seen, (std::vector<double>{0, 10, 20, 2, 12, 22}));
  EXPECT_THROW(
      {
        for (const auto& [a, b] : data::fields<2>(batches)) a.wait();
      },
      ArgumentError);
}

}  // namespace
}  // namespace samebytes::testing

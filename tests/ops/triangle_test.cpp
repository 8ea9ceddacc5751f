// tril and triu against plain loops: all types, odd shapes, far diagonals, batches, views, gradients.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/small_shapes.h"

namespace samebytes::testing {
namespace {

class TriangleTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(TriangleTest);

std::vector<double> triangle(const std::vector<double>& a, const Shape& shape, std::int64_t diagonal, bool is_lower) {
  std::vector<double> result = a;
  const std::int64_t rows = shape[-2], columns = shape[-1];
  for (std::int64_t i = 0; i < shape.size(); ++i) {
    const std::int64_t apart = i % columns - i / columns % rows;
    if (is_lower ? apart > diagonal : apart < diagonal) result[static_cast<std::size_t>(i)] = 0;
  }
  return result;
}

TEST_P(TriangleTest, keeps_one_side_in_one_launch) {
  for (const Shape& shape : {Shape{1, 1}, Shape{5, 3}, Shape{3, 67}, Shape{2, 3, 40, 33}})
    for (const std::int64_t diagonal : {-std::int64_t{1} << 40, std::int64_t{-2}, std::int64_t{0}, std::int64_t{1},
                                        std::int64_t{17}, std::int64_t{1} << 40}) {
      SCOPED_TRACE(shape.to_string() + " " + std::to_string(diagonal));
      const auto values = random_values(shape.size(), 3, 1, 100);
      std::vector<Array> all{real_array(values, shape, f32)};
      for (const Dtype dtype : {f16, i32, u8}) all.push_back(astype(all[0], dtype));
      if (has_f64()) all.push_back(astype(all[0], f64));
      for (const Array& a : all) {
        SCOPED_TRACE(name_of(a.dtype()));
        const std::vector<double> of_a = astype(a.wait(), f32).to_vector<double>();
        const Array lower = tril(a, diagonal), upper = triu(a, diagonal);
        const std::uint64_t before = engine().plans().launches;
        lower.wait();
        EXPECT_EQ(engine().plans().launches - before, 1u);
        EXPECT_EQ(lower.dtype(), a.dtype());
        EXPECT_TRUE(all_close(astype(lower, f32), triangle(of_a, shape, diagonal, true), 0));
        EXPECT_TRUE(all_close(astype(upper, f32), triangle(of_a, shape, diagonal, false), 0));
      }
    }
  EXPECT_EQ(tril(ones({2, 2}, bool_)).dtype(), bool_);
}

TEST_P(TriangleTest, reads_views_and_leaves_nothing_of_what_it_drops) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Array a = real_array(random_values(12), {3, 4}, f32);
  EXPECT_TRUE(same_bytes(tril(transpose(a)), transpose(triu(a))));
  EXPECT_TRUE(same_bytes(triu(slice(a, 1, 1, 4), 1), slice(triu(a, 2), 1, 1, 4)));
  const Array bad = full({2, 2}, infinity);
  EXPECT_TRUE(all_close(tril(bad), std::vector<double>{infinity, 0, infinity, infinity}, 0));
  EXPECT_EQ(triu(zeros({2, 0})).shape(), (Shape{2, 0}));
  const std::vector<Array> wrt{a};
  EXPECT_TRUE(same_bytes(gradients(tril(a, 1), wrt, a)[0], tril(a, 1)));
  EXPECT_ERROR(tril(zeros({3})), ArgumentError, "tril: needs two axes or more, src is f32 [3]");
}

class SmallShapesTriangleTest : public SmallShapes {};
SAMEBYTES_ON_EVERY_DEVICE(SmallShapesTriangleTest);

TEST_P(SmallShapesTriangleTest, runs_forward_and_backward) {
  run([&](auto x) { return tril(x[0], 1) + triu(x[0]); }, {{2, 5, 3}});
}

}  // namespace
}  // namespace samebytes::testing

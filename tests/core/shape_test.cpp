#include "samebytes/shape.h"

#include <gtest/gtest.h>

#include "samebytes/error.h"

namespace samebytes {
namespace {

TEST(Shape, knows_its_sizes) {
  const Shape s{64, 28, 28, 1};
  EXPECT_EQ(s.rank(), 4);
  EXPECT_EQ(s.size(), 64 * 28 * 28);
  EXPECT_EQ(s[-1], 1);
  EXPECT_EQ(s.to_string(), "[64, 28, 28, 1]");
  EXPECT_EQ(Shape{}.size(), 1);
  EXPECT_EQ((Shape{3, 0}).size(), 0);
}

TEST(Shape, refuses_more_elements_than_can_be_counted_in_bytes) {
  constexpr std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_THROW((Shape{huge, huge}), ArgumentError);
  EXPECT_THROW((Shape{huge, huge, 0}), ArgumentError);  // as NumPy: no product of some sizes overflows
  EXPECT_THROW((Shape{Shape::kMostElements + 1}), ArgumentError);
  EXPECT_EQ((Shape{Shape::kMostElements}).size(), Shape::kMostElements);
  Shape s{huge};
  EXPECT_THROW(s.push_back(huge), ArgumentError);
  Shape assigned{huge, 1};
  assigned[1] = huge;
  EXPECT_THROW(assigned.size(), ArgumentError);
  assigned[1] = -1;
  EXPECT_THROW(assigned.size(), ArgumentError);
  EXPECT_THROW(Shape{}.push_back(-1), ArgumentError);
  EXPECT_THROW(broadcast_shapes("add", {huge, 1}, {1, huge}), ArgumentError);
}

TEST(Shape, broadcasts_as_numpy_does) {
  EXPECT_EQ(broadcast_shapes("add", {64, 1, 5}, {3, 1}), (Shape{64, 3, 5}));
  EXPECT_EQ(broadcast_shapes("add", {0, 3}, {1, 3}), (Shape{0, 3}));
  EXPECT_THROW(broadcast_shapes("add", {2, 3}, {4, 3}), ArgumentError);
}

TEST(Shape, refuses_what_is_not_a_shape) {
  EXPECT_THROW(Shape({-1}), ArgumentError);
  EXPECT_THROW(Shape({1, 1, 1, 1, 1, 1, 1, 1, 1}), ArgumentError);
}

}  // namespace
}  // namespace samebytes

// Eigen and the device on the same bytes, both ways.
#include <gtest/gtest.h>

#include "samebytes/interop/eigen.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class EigenTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(EigenTest);

TEST_P(EigenTest, reads_what_the_device_wrote) {
  const Array a = reshape(arange(0, 12), {3, 4}) * 2.0;
  const auto view = interop::eigen_view<const float>(a);
  EXPECT_EQ(view.matrix().rows(), 3);
  EXPECT_EQ(view.matrix()(2, 1), 18.0f);
  EXPECT_EQ(view.matrix().sum(), 132.0f);
}

TEST_P(EigenTest, writes_where_the_device_reads) {
  const Array a = array({1, 2, 3, 4, 5, 6}, {2, 3});
  const auto copied = engine().transfers().bytes_copied;
  {
    const auto view = interop::eigen_view<float>(a);
    view.matrix() = view.matrix() * 10.0f;
    view.matrix().row(0).setZero();
    EXPECT_THROW((a + 1.0).wait(), ArgumentError);  // the borrow excludes the device
  }
  EXPECT_TRUE(all_close(a + 1.0, std::vector<double>{1, 1, 1, 41, 51, 61}, 1e-6));
  if (engine().device().memory_mode == MemoryMode::fine) {
    EXPECT_EQ(engine().transfers().bytes_copied, copied);
  }
}

TEST_P(EigenTest, maps_a_view_by_any_two_sizes) {
  const Array a = arange(0, 6);
  const HostView<const float> view = a.host<float>();
  EXPECT_EQ(interop::eigen_map(view, 2, 3)(1, 0), 3.0f);
  EXPECT_EQ(interop::eigen_map(view, 3, 2)(1, 0), 2.0f);
  EXPECT_THROW(interop::eigen_map(view, 4, 2), ArgumentError);
}

TEST_P(EigenTest, adopts_matrices_of_both_orders) {
  Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> rows(2, 3);
  rows << 1, 2, 3, 4, 5, 6;
  Eigen::MatrixXf columns = rows;
  Adoption verdict;
  const Array a = interop::adopt(std::move(rows), &verdict);
  EXPECT_FALSE(verdict.reason.empty());
  const Array b = interop::adopt(std::move(columns));
  EXPECT_EQ(a.shape(), (Shape{2, 3}));
  EXPECT_EQ(b.shape(), (Shape{2, 3}));
  EXPECT_TRUE(all_close(a, std::vector<double>{1, 2, 3, 4, 5, 6}, 0));
  EXPECT_TRUE(all_close(b - a, std::vector<double>(6, 0.0), 0));
}

TEST_P(EigenTest, views_column_major_matrices) {
  Eigen::MatrixXf matrix(2, 3);
  matrix << 1, 2, 3, 4, 5, 6;
  const Array a = interop::adopt(Eigen::MatrixXf(matrix));
  {
    const auto view = interop::eigen_column_view<const float>(a);
    EXPECT_TRUE(view.matrix().isApprox(matrix));
    EXPECT_FALSE(view.matrix().IsRowMajor);
  }
  Array b = array({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {3, 2});
  interop::eigen_view<float>(b).matrix()(2, 0) = 7;
  const auto turned = interop::eigen_column_view<const float>(transpose(b));
  EXPECT_EQ(turned.matrix()(0, 2), 7);
  EXPECT_EQ(turned.matrix().data(), interop::eigen_view<const float>(b).matrix().data());
  EXPECT_THROW(interop::eigen_column_view<const float>(zeros({3})), ArgumentError);
}

TEST_P(EigenTest, another_element_type_is_refused) {
  const Array a = arange(0, 6);
  EXPECT_THROW(interop::eigen_view<const double>(a), ArgumentError);
}

}  // namespace
}  // namespace samebytes::testing

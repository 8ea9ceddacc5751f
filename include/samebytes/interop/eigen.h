// Eigen over the very bytes of an Array, and an Array over the bytes of an Eigen matrix. Header only; needs Eigen 3.
//   auto view = interop::eigen_view<float>(weights);          // waits, borrows, copies nothing
//   view.matrix() = view.matrix() * 0.5f;                     // device launches that write these bytes throw until
//   `view` is gone Array features = interop::adopt(std::move(matrix));       // the matrix lives as long as the array
// Maps are unaligned and row-major: an array [..., C] is a matrix of size / C rows and C columns.
#pragma once

#include <Eigen/Core>
#include <memory>
#include <type_traits>
#include <utility>

#include "samebytes/array.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::interop {

template <class T>
using RowMatrix = Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using MatrixMap =
    Eigen::Map<std::conditional_t<std::is_const_v<T>, const RowMatrix<T>, RowMatrix<T>>, Eigen::Unaligned>;

// A HostView as a matrix of rows x columns; the map is valid while the view lives. Throws ArgumentError where the sizes
// differ.
template <class T>
MatrixMap<T> eigen_map(const HostView<T>& view, std::int64_t rows, std::int64_t columns) {
  if (rows < 0 || columns < 0 || static_cast<std::size_t>(rows * columns) != view.size())
    throw ArgumentError("eigen_map: a view of " + std::to_string(view.size()) + " elements is no matrix of " +
                        std::to_string(rows) + " x " + std::to_string(columns));
  return MatrixMap<T>(view.data(), static_cast<Eigen::Index>(rows), static_cast<Eigen::Index>(columns));
}
template <class T>
MatrixMap<T> eigen_map(HostView<T>&& view, std::int64_t rows,
                       std::int64_t columns) = delete;  // the borrow would end at once

// An array's bytes as a matrix together with the borrow that keeps them. Move-only. T is const for reading.
template <class T>
class EigenView {
 public:
  EigenView(HostView<T> view, std::int64_t rows, std::int64_t columns)
      : view_(std::move(view)), rows_(rows), columns_(columns) {}
  MatrixMap<T> matrix() const { return eigen_map(view_, rows_, columns_); }

 private:
  HostView<T> view_;
  std::int64_t rows_, columns_;
};

// Evaluates, waits for the last writer and borrows: eigen_view<const float>(a) to read, eigen_view<float>(a) to write.
// Throws as Array::host and Array::mutable_host do.
template <class T>
EigenView<T> eigen_view(const Array& array, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  const std::int64_t rows = array.shape().rows(), columns = array.shape().back();
  if constexpr (std::is_const_v<T>)
    return EigenView<T>(array.host<std::remove_const_t<T>>(file, line), rows, columns);
  else
    return EigenView<T>(array.mutable_host<T>(file, line), rows, columns);
}

// A column-major matrix over the bytes of an array of two axes whose columns are dense: what adopt() makes of a
// column-major matrix, and any transpose(b) of a dense b; of another array, over a dense copy. To read only: writes go
// through eigen_view() of the array that was transposed.
template <class T>
class EigenColumnView {
 public:
  static_assert(std::is_const_v<T>,
                "eigen_column_view reads: ask for const T, and write through eigen_view(transpose)");
  using Map = Eigen::Map<const Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>,
                         Eigen::Unaligned>;
  explicit EigenColumnView(EigenView<T> rows) : rows_(std::move(rows)) {}
  Map matrix() const {
    const auto transposed = rows_.matrix();
    return Map(transposed.data(), transposed.cols(), transposed.rows());
  }

 private:
  EigenView<T> rows_;  // of the transposed array
};
template <class T>
EigenColumnView<T> eigen_column_view(const Array& array, const char* file = __builtin_FILE(),
                                     int line = __builtin_LINE()) {
  if (array.shape().rank() != 2)
    throw ArgumentError("eigen_column_view: expected an array of two axes, got " + array.shape().to_string());
  const Array rows = transpose(array);
  rows.eval();
  return EigenColumnView<T>(eigen_view<T>(rows, file, line));
}

// The matrix's own memory as an array [rows, columns]; `verdict` says whether it was adopted or had to be copied, and
// why. A column-major matrix becomes a transposed view of the same bytes.
template <class T, int Rows, int Columns, int Options, int MaxRows, int MaxColumns>
Array adopt(Eigen::Matrix<T, Rows, Columns, Options, MaxRows, MaxColumns>&& matrix, Adoption* verdict = nullptr) {
  using Matrix = Eigen::Matrix<T, Rows, Columns, Options, MaxRows, MaxColumns>;
  auto kept = std::make_shared<Matrix>(std::move(matrix));
  const std::int64_t rows = kept->rows(), columns = kept->cols();
  void* data = kept->data();
  const auto release = [kept]() mutable { kept.reset(); };
  if constexpr (Matrix::IsRowMajor)
    return samebytes::adopt(data, Shape{rows, columns}, dtype_of<T>, release, verdict);
  else
    return transpose(samebytes::adopt(data, Shape{columns, rows}, dtype_of<T>, release, verdict));
}

}  // namespace samebytes::interop

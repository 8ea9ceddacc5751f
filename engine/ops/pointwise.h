// Pointwise ops as data: one row says the name, the expression and the gradient. The planner fuses chains of them.
// In an expression $0 to $5 are the operands and #0 #1 the changing scalars, both already of the compute type: vectors
// of `real` (kind real), or, where no operand is floating, of long if one is i64 and else of int. Truth values are 0 or
// 1 of the compute type. PLACE_OF_1 are the places of the elements of operand 1, a flat cell, in its storage (uint).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "graph/op.h"
#include "graph/written.h"

namespace samebytes::detail {

// Of two operands (docs/types.md).
Dtype promoted(Dtype a, Dtype b);

struct PointwiseRow {
  enum class Result : std::uint8_t {
    same,
    truth,
    asked
  };  // promoted dtype of the operands, bool, or the dtype of the node
  const char* name;
  int arity;
  int scalars;
  const char* expression;
  const char* written;  // in ONNX, as "Mul($0, Sigmoid($0))"; numbers in brackets are attributes. Null: it cannot be
  Result result;
  std::vector<Array> (*gradient)(const GradientRequest&);  // null: none is written, asking for it is an error
  // One bit for each operand in which the result is piecewise constant, or that gets no gradient. Rows of truth values
  // need none: it holds for all their operands.
  std::uint8_t flat = 0;
  static constexpr std::uint8_t kAllFlat = 0xff;
  bool is_cut = false;  // the result counts as a constant (OpTraits::cuts_gradient)
  EpilogueStep epilogue_step = EpilogueStep::none;
  bool is_copy = false;
};

class Pointwise final : public Op, public Written {
 public:
  explicit Pointwise(const PointwiseRow& row);
  const PointwiseRow& row() const { return row_; }

  std::string_view name() const override { return row_.name; }
  void hash(Hasher& hasher) const override { hasher.add(std::string_view(row_.expression)); }
  void launch(Launch& run) const override;  // never called: the planner generates the kernels of pointwise nodes
  std::vector<Array> gradient(const GradientRequest& request) const override;
  void write(NodeWriter& writer) const override;  // pointwise_written.cpp

 private:
  const PointwiseRow& row_;
};

// A node of the row, for tables in other files: broadcasts the operands and uses the row's dtype.
Array apply_row(const PointwiseRow& row, const OpPtr& op, std::initializer_list<Array> operands,
                std::vector<Scalar> scalars = {});
// For a row with linkage: its op object is made once and shared by all its nodes.
template <const PointwiseRow& kRow>
Array apply_row(std::initializer_list<Array> operands, std::vector<Scalar> scalars = {}) {
  static const OpPtr op = make_op<Pointwise>(kRow);
  return apply_row(kRow, op, operands, std::move(scalars));
}
// Whether a dtype has that value; floating ones have every one, rounded.
bool is_representable(const Number& number, Dtype dtype);
std::string text_of(double value);  // "300", "0.5"
std::string text_of(const Number& number);
// The array, as f32 where it is not floating.
Array as_floating(const Array& a);

// If `gradient` is that of relu(x), the gradient behind the ReLU; else an empty handle.
Array relu_gradient_source(const Array& gradient, const Array& x);

// dy where y, the result of a ReLU, is above 0, else 0.
Array relu_gradient(const Array& dy, const Array& y);

// Copies: the dense form of a view, or a value that needs its own storage.
Array copy_of(const Array& a);

// update(cell, value): pointwise in $1 and written into the storage of the cell $0. Runs after every other reader.
class Update final : public Op {
 public:
  Update()
      : Op({.takes_strides = InputSet::all(),
            .is_state = {0},
            .in_place = {.result = 0, .input = 0},
            .expression = "$1",
            .updates_cell = true}) {}
  std::string_view name() const override { return "update"; }
  void launch(Launch& run) const override;
  std::vector<Array> gradient(const GradientRequest& request) const override { return {Array(), request.dy[0]}; }
  Array companion(const Node& node) const override;  // the update of the cell's working copy
};

// pack: several arrays side by side; the planner lets their producers write there directly. As update_parts it has one
// more input, the flat cell that they are written into: the bytes between them stay unchanged.
class Pack final : public Op {
 public:
  enum class Into : std::uint8_t { fresh, released, cell };  // released: PackLayout::is_released
  // `sizes` of the arrays: packs that share their places must have the same gaps, which are zeroed once.
  Pack(std::vector<std::int64_t> offsets, std::int64_t n, std::vector<std::int64_t> sizes, Into into = Into::fresh);
  std::string_view name() const override { return into_ == Into::cell ? "update_parts" : "pack"; }
  void hash(Hasher& hasher) const override;
  void launch(Launch& run) const override;
  std::vector<Array> gradient(const GradientRequest& request) const override;

 private:
  const PackLayout& layout() const { return *traits().pack; }
  std::vector<std::int64_t> sizes_;
  Into into_;
};

}  // namespace samebytes::detail

// all_finite: whether several arrays hold neither NaN nor infinity. Each array is cut into parts by its size; a second
// launch folds the parts of all arrays into one truth value.
#include <vector>

#include "graph/launch.h"
#include "samebytes/ops/finite.h"

namespace samebytes {

namespace detail {
namespace {

constexpr PerPersonality<std::int64_t> kPart{1 << 16, 1 << 14};  // elements of a work-group
constexpr int kFiniteGroup = 256;                                // FINITE_GROUP of cl/gpu/finite.cl

std::int64_t exponent_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16: return 0x7c00;
    case Dtype::bf16: return 0x7f80;
    case Dtype::f64: return 0x7ff0000000000000;
    default: return 0x7f800000;
  }
}

class AllFinite final : public Op {
 public:
  AllFinite() : Op({.is_flat = InputSet::all()}) {}
  std::string_view name() const override { return "all_finite"; }
  void launch(Launch& run) const override {
    const std::int64_t per_part = run.pick(kPart);
    const auto parts_of = [&](int i) { return (run.src_shape(i).size() + per_part - 1) / per_part; };
    std::int64_t parts = 0;
    for (int i = 0; i < run.src_count(); ++i) parts += parts_of(i);
    const Operand each = run.temp(parts, Dtype::i32);
    int first = 0;
    for (int i = 0; i < run.src_count(); ++i) {
      const std::string bits = std::to_string(8 * bytes_of(run.src_dtype(i)));
      run.kernel("finite_parts_" + bits)
          .args(run.src(i), each, run.src_shape(i).size(), per_part, first, exponent_of(run.src_dtype(i)))
          .over_rows(parts_of(i), kFiniteGroup);
      first += static_cast<int>(parts_of(i));
    }
    run.kernel("finite_all").args(each, run.dst(), first).over_rows(1, kFiniteGroup);
  }
};

}  // namespace
}  // namespace detail

Array all_finite(const Inputs& arrays) {
  std::vector<Array> filled;
  for (const Array& a : arrays) {
    detail::require(a.defined() && is_floating(a.dtype()), "all_finite", "needs floating arrays", a, "one");
    if (a.size() > 0) filled.push_back(a);
  }
  if (filled.empty()) return full({1}, 1.0, bool_);
  static const auto op = detail::make_op<detail::AllFinite>();
  return detail::make_array(op, Shape{1}, bool_, filled);
}

}  // namespace samebytes

// Draws by the Gumbel-max trick: the place of the largest of log-weights plus noise; the largest k are a draw without
// replacement (W. Kool et al., "Stochastic beams and where to find them", 2019). With replacement: the place of a
// uniform number in the running sum of the weights (cl/*/scan.cl).
#include "samebytes/ops/sampling.h"

#include <limits>
#include <string>

#include "graph/launch.h"
#include "graph/op.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"
#include "samebytes/ops/sorting.h"

namespace samebytes {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// -1 where the largest value says that there was nothing to draw.
Array or_none(const Array& places, const Array& largest) {
  return where(greater(largest, full({}, -kInfinity, largest.dtype())), places, full({}, -1, i32));
}

// logits of `shape` plus noise; f32 or f64.
Array disturbed(const Array& logits, const Shape& shape, RandomKey key) {
  key.domain = RandomDomain::sampling;
  return logits - log(-log(uniform(shape, 0.0, 1.0, logits.dtype(), key)));
}

Array checked(const char* op, const Array& a, const char* name) {
  detail::require(a.defined() && is_floating(a.dtype()) && a.shape().rank() >= 1 && a.shape().back() > 0, op,
                  "needs a floating array of at least one class", a, name);
  const Dtype real = a.dtype() == f64 ? f64 : f32;
  return stop_gradient(a.dtype() == real ? a : astype(a, real));
}

// Inputs: weights, their running sum, numbers from 0 to 1.
class ScanPlaces final : public detail::Op {
 public:
  ScanPlaces() : Op({.is_flat = detail::InputSet::all()}) {}
  std::string_view name() const override { return "scan_places"; }
  void launch(detail::Launch& run) const override {
    const std::int64_t classes = run.src_shape(0).back(), samples = run.dst_shape().back();
    const std::int64_t draws = run.dst_shape().size();
    run.kernel("scan_places", run.src_dtype(0))
        .args(run.src(0), run.src(1), run.src(2), run.dst(), draws / samples, classes, samples)
        .over_elements(draws);
  }
};

Array drawn(const Array& disturbed_logits) {
  return or_none(argmax(disturbed_logits, -1), max(disturbed_logits, {-1}));
}

}  // namespace

Array categorical(const Input& logits, RandomKey key) {
  const Array wide = checked("categorical", logits, "logits");
  return drawn(disturbed(wide, wide.shape(), key));
}
Array categorical(const Input& logits) { return categorical(logits, next_random_key()); }

Array multinomial(const Input& weights, const MultinomialOptions& options, RandomKey key) {
  const Array wide = checked("multinomial", weights, "weights");
  const std::int64_t classes = wide.shape().back();
  if (options.samples < 1 || (!options.replacement && options.samples > classes))
    throw ArgumentError(
        "multinomial: samples must be at least 1 and, without replacement, at most the number of "
        "classes, got " +
        std::to_string(options.samples) + ", weights is " + detail::describe(weights));
  // A weight that is none spoils its row: the sum is NaN.
  const Array spoilt = sum(where(greater_equal(wide, zeros({}, wide.dtype())), zeros({}, wide.dtype()),
                                 full({}, std::numeric_limits<double>::quiet_NaN(), wide.dtype())),
                           {-1}, true);
  if (options.replacement) {
    Shape shape = wide.shape();
    shape[-1] = options.samples;
    const Array rows = wide + spoilt;
    key.domain = RandomDomain::sampling;
    const Array inputs[] = {rows, cumsum(rows, -1), uniform(shape, 0.0, 1.0, wide.dtype(), key)};
    static const auto op = detail::make_op<ScanPlaces>();
    return detail::make_array(op, shape, i32, inputs);
  }
  const Array logits = log(wide) + spoilt;
  const SortResult best = top_k(disturbed(logits, logits.shape(), key), options.samples);
  // NaN is the largest, so a spoilt row shows in every sample.
  return or_none(best.indices, best.values);
}
Array multinomial(const Input& weights, const MultinomialOptions& options) {
  return multinomial(weights, options, next_random_key());
}

}  // namespace samebytes

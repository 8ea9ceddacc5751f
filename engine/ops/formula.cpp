#include "ops/formula.h"

#include "graph/launch.h"
#include "ops/dtypes.h"
#include "ops/pointwise.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes::detail {

std::vector<Array> formula_gradient(const GradientRequest& request, const Formula& formula) {
  // Copies cut the inputs from each other: dy depends on x as well, and each has its own derivative.
  std::vector<Array> inputs, wanted;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < request.src.size(); ++i) {
    const bool is_wanted = request.wanted[i] && is_floating(request.src[i].dtype());
    inputs.push_back(is_wanted ? copy_of(request.src[i]) : request.src[i]);
    if (!is_wanted) continue;
    wanted.push_back(inputs.back());
    places.push_back(i);
  }
  std::vector<Array> result(request.src.size());
  if (wanted.empty()) return result;
  const std::vector<Array> results = formula(inputs);
  Array total;
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (!request.dy[k].defined()) continue;
    const Array part = sum(as_dtype(results[k], real_of(results[k].dtype())) * request.dy[k]);
    total = total.defined() ? total + part : part;
  }
  const std::vector<Array> dx = gradients(total, wanted, {.allow_unused = true});
  for (std::size_t i = 0; i < dx.size(); ++i) result[places[i]] = dx[i];
  return result;
}

Array rstd_of(const Array& var, const Array& rstd) { return rsqrt(var + stop_gradient(1.0 / square(rstd) - var)); }

}  // namespace samebytes::detail

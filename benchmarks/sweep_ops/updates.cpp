// Updates of cells, random draws; those of Lars, Lamb and Adafactor, which are no public ops, by their own headers.
#include "ops/adafactor.h"
#include "ops/trust.h"
#include "samebytes/ops.h"
#include "sweep_ops/sweep.h"

namespace samebytes::benchmarks {
namespace {

Array state(std::int64_t n) { return cell(uniform({n}, 0.5, 1), "state"); }

}  // namespace

void add_updates(std::vector<Row>& rows) {
  rows.push_back({"dropout", [](int s) {
                    return takes_gradient({values(plane(s))}, [](Inputs x) { return dropout(x[0], 0.5); });
                  }});
  rows.push_back({"categorical",
                  [](int s) { return no_gradient({values(plane(s))}, [](Inputs x) { return categorical(x[0]); }); }});
  for (const bool replacement : {false, true})
    rows.push_back({replacement ? "multinomial/replacement" : "multinomial", [=](int s) {
                      return no_gradient({values(plane(s), 0.1, 1)}, [=](Inputs x) {
                        return multinomial(x[0], {.samples = 8, .replacement = replacement});
                      });
                    }});
  rows.push_back({"round_stochastic", [](int s) {
                    return no_gradient({values(plane(s)), values(plane(s))},
                                       [](Inputs x) { return round_stochastic(x[0], x[1], next_random_key()); });
                  }});
  rows.push_back({"update_slice", [](int s) {
                    const Shape shape = plane(s);
                    const Array cache = cell(zeros(shape), "cache");
                    return no_gradient({values({shape[0] / 4, shape[1]})},
                                       [=](Inputs x) { return update_slice(cache, x[0], 0, shape[0] / 2); });
                  }});
  rows.push_back({"update_parts", [](int s) {
                    const std::int64_t n = plane(s).size();
                    const Array flat = state(n);
                    return no_gradient({values({n / 4}), values({n / 4})}, [=](Inputs x) {
                      const Array parts[] = {x[0], x[1]};
                      const std::int64_t offsets[] = {0, n / 2};
                      return update_parts(flat, parts, offsets);
                    });
                  }});
  rows.push_back({"adafactor_update", [](int s) {
                    const Shape shape = plane(s);
                    const std::int64_t offsets[] = {0};
                    const detail::AdafactorLayout layout(offsets, std::span<const Shape>(&shape, 1), shape.size());
                    const Array p = state(shape.size()), r = state(layout.rows()), c = state(layout.columns());
                    return no_gradient({values({shape.size()})}, [=](Inputs x) {
                      return detail::adafactor_update(p, r, c, x[0], layout,
                                                      {.rate = 1e-3, .rest = 0.1, .eps = 1e-30, .least_scale = 1e-3});
                    });
                  }});
  rows.push_back({"lars_update", [](int s) {
                    const std::int64_t n = plane(s).size(), offsets[] = {0}, sizes[] = {n};
                    const detail::TrustSegments segments(offsets, sizes, n);
                    const Array p = state(n), m = state(n);
                    return no_gradient({values({n})}, [=](Inputs x) {
                      return detail::lars_update(p, m, x[0], segments,
                                                 {.rate = 1e-4, .momentum = 0.9, .weight_decay = 1e-4, .trust = 1e-3});
                    });
                  }});
  rows.push_back({"lamb_update", [](int s) {
                    const std::int64_t n = plane(s).size(), offsets[] = {0}, sizes[] = {n};
                    const detail::TrustSegments segments(offsets, sizes, n);
                    const Array p = state(n), m = state(n), v = state(n);
                    return no_gradient({values({n})}, [=](Inputs x) {
                      return detail::lamb_update(
                          p, m, v, x[0], segments,
                          {.rate = 1e-4, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-6, .weight_decay = 0.01});
                    });
                  }});
}

}  // namespace samebytes::benchmarks

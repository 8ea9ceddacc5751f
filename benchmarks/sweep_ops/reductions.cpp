// Reductions, norms, order along an axis.
#include "samebytes/ops.h"
#include "sweep_ops/sweep.h"

namespace samebytes::benchmarks {
namespace {

using Unary = std::function<Array(const Array&)>;

}  // namespace

void add_reductions(std::vector<Row>& rows) {
  const auto one = [&](const std::string& name, Unary f, std::function<Shape(int)> shape = plane) {
    rows.push_back(
        {name, [=](int s) { return takes_gradient({values(shape(s))}, [=](Inputs x) { return f(x[0]); }); }});
  };
  const auto step = [&](const std::string& name, Unary f) {
    rows.push_back({name, [=](int s) { return no_gradient({values(plane(s))}, [=](Inputs x) { return f(x[0]); }); }});
  };
  one("sum", [](const Array& a) { return sum(a); });
  one("mean", [](const Array& a) { return mean(a); });
  one("max", [](const Array& a) { return max(a); });
  step("all", [](const Array& a) { return all(a); });
  step("any", [](const Array& a) { return any(a); });
  for (const int axis : {0, 1}) {
    const std::string along = axis == 0 ? "/rows" : "/columns";
    one("sum" + along, [=](const Array& a) { return sum(a, {axis}); });
    one("mean" + along, [=](const Array& a) { return mean(a, {axis}); });
    one("max" + along, [=](const Array& a) { return max(a, {axis}); });
    one("min" + along, [=](const Array& a) { return min(a, {axis}); });
    step("argmax" + along, [=](const Array& a) { return argmax(a, axis); });
    step("argmin" + along, [=](const Array& a) { return argmin(a, axis); });
    one("var" + along, [=](const Array& a) { return var(a, axis); });
    one("std" + along, [=](const Array& a) { return std(a, axis); });
    one("norm" + along, [=](const Array& a) { return norm(a, 2, axis); });
    one("logsumexp" + along, [=](const Array& a) { return logsumexp(a, axis); });
    one("prod" + along, [=](const Array& a) { return prod(a, axis); });
    one("quantile" + along, [=](const Array& a) { return quantile(a, 0.3, axis); });
    one("median" + along, [=](const Array& a) { return median(a, axis); });
  }
  step("bincount", [](const Array& a) { return bincount(astype(abs(a) * 50, i32), 256); });
  step("histogram", [](const Array& a) { return histogram(a, 100, -1, 1); });
  one("tril", [](const Array& a) { return tril(a); });
  one("triu", [](const Array& a) { return triu(a); });
  one("einsum", [](const Array& a) { return einsum("ij,kj->ik", {a, a}); });
  one(
      "sum/space",
      [](const Array& a) {
        return sum(a, {1, 2});
      },
      images);
  one("sum_of_squares", [](const Array& a) { return sum_of_squares(a); });
  one("sum_to", [](const Array& a) { return sum_to(a, {a.shape()[1]}); });
  step("all_finite", [](const Array& a) { return all_finite({a}); });

  one("softmax", [](const Array& a) { return softmax(a); });
  one("log_softmax", [](const Array& a) { return log_softmax(a); });
  const auto norm = [&](const char* name, std::function<Shape(int)> shape, std::function<Array(Inputs)> f,
                        bool has_shift = true) {
    rows.push_back({name, [=](int s) {
                      const Shape all = shape(s);
                      const std::int64_t channels = all[all.rank() - 1];
                      std::vector<Array> inputs{values(all), values({channels}, 0.5, 2)};
                      if (has_shift) inputs.push_back(values({channels}));
                      return takes_gradient(std::move(inputs), f);
                    }});
  };
  norm("layer_norm", plane, [](Inputs x) { return layer_norm(x[0], x[1], x[2]); });
  norm(
      "rms_norm", plane, [](Inputs x) { return rms_norm(x[0], x[1]); }, false);
  norm("group_norm", images, [](Inputs x) { return group_norm(x[0], 4, x[1], x[2]); });
  norm("instance_norm", images, [](Inputs x) { return instance_norm(x[0], x[1], x[2]); });
  for (const bool trains : {true, false})
    rows.push_back({trains ? "batch_norm_train" : "batch_norm_eval", [=](int s) {
                      const Shape all = images(s);
                      const Array mean = cell(zeros({all[3]}), "mean"), variance = cell(ones({all[3]}), "variance");
                      return takes_gradient({values(all), values({all[3]}, 0.5, 2), values({all[3]})}, [=](Inputs x) {
                        return trains ? batch_norm_train(x[0], x[1], x[2], mean, variance)
                                      : batch_norm_eval(x[0], x[1], x[2], mean, variance);
                      });
                    }});

  for (const int axis : {0, 1}) {
    const std::string along = axis == 0 ? "/rows" : "/columns";
    one("cumsum" + along, [=](const Array& a) { return cumsum(a, axis); });
    rows.push_back({"cumprod" + along, [=](int s) {
                      return takes_gradient({values(plane(s), 0.9, 1.1)},
                                            [=](Inputs x) { return cumprod(x[0], axis); });
                    }});
    rows.push_back({"sort" + along, [=](int s) {
                      return Case{{values(plane(s))}, 1, [=](Inputs x) {
                                    const SortResult y = sort(x[0], axis);
                                    return Results{y.values, y.indices};
                                  }};
                    }});
    rows.push_back({"top_k" + along, [=](int s) {
                      return Case{{values(plane(s))}, 1, [=](Inputs x) {
                                    const SortResult y = top_k(x[0], 8, axis);
                                    return Results{y.values, y.indices};
                                  }};
                    }});
  }
  one("cumsum/flat", [](const Array& a) { return cumsum(reshape(a, {-1}), 0); });
  rows.push_back({"sort/flat", [](int s) {
                    return Case{{values({plane(s).size()})}, 1, [](Inputs x) {
                                  const SortResult y = sort(x[0]);
                                  return Results{y.values, y.indices};
                                }};
                  }});
  rows.push_back({"top_k/flat", [](int s) {
                    return Case{{values({plane(s).size()})}, 1, [](Inputs x) {
                                  const SortResult y = top_k(x[0], 50);
                                  return Results{y.values, y.indices};
                                }};
                  }});
  step("argsort", [](const Array& a) { return argsort(a); });
}

}  // namespace samebytes::benchmarks

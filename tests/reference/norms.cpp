#include "reference/norms.h"

#include <cmath>
#include <cstddef>

namespace samebytes::reference {
namespace {

using Values = std::vector<double>;

// Mean and variance of n values that lie `step` apart.
void moments_of(const double* x, std::int64_t n, std::int64_t step, double& mean, double& variance) {
  long double sum = 0, square = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i * step];
  const long double m = sum / n;
  for (std::int64_t i = 0; i < n; ++i) square += (x[i * step] - m) * (x[i * step] - m);
  mean = static_cast<double>(m);
  variance = static_cast<double>(square / n);
}

// Adds the gradient of one normalised line of n values that lie `step` apart to dx; g is the gradient of the normalised
// values.
void line_gradient(const double* x, const Values& g, std::int64_t n, std::int64_t step, double eps, double* dx) {
  double mean, variance;
  moments_of(x, n, step, mean, variance);
  const double rstd = 1 / std::sqrt(variance + eps);
  long double sum = 0, dots = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    sum += g[static_cast<std::size_t>(i)];
    dots += g[static_cast<std::size_t>(i)] * (x[i * step] - mean) * rstd;
  }
  for (std::int64_t i = 0; i < n; ++i)
    dx[i * step] =
        static_cast<double>(rstd * (g[static_cast<std::size_t>(i)] - sum / n - (x[i * step] - mean) * rstd * dots / n));
}

}  // namespace

Moments column_moments(const Values& x, std::int64_t rows, std::int64_t columns) {
  Moments m{Values(static_cast<std::size_t>(columns)), Values(static_cast<std::size_t>(columns))};
  for (std::int64_t j = 0; j < columns; ++j)
    moments_of(x.data() + j, rows, columns, m.mean[static_cast<std::size_t>(j)],
               m.variance[static_cast<std::size_t>(j)]);
  return m;
}

Moments row_moments(const Values& x, std::int64_t rows, std::int64_t columns) {
  Moments m{Values(static_cast<std::size_t>(rows)), Values(static_cast<std::size_t>(rows))};
  for (std::int64_t i = 0; i < rows; ++i)
    moments_of(x.data() + i * columns, columns, 1, m.mean[static_cast<std::size_t>(i)],
               m.variance[static_cast<std::size_t>(i)]);
  return m;
}

Values batch_norm(const Values& x, std::int64_t rows, std::int64_t columns, const Moments& moments, const Values& scale,
                  const Values& shift, double eps) {
  Values y(x.size());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto at = static_cast<std::size_t>(i * columns + j), c = static_cast<std::size_t>(j);
      y[at] = (x[at] - moments.mean[c]) / std::sqrt(moments.variance[c] + eps) * scale[c] + shift[c];
    }
  return y;
}

Values layer_norm(const Values& x, std::int64_t rows, std::int64_t columns, const Values& scale, const Values& shift,
                  double eps) {
  const Moments moments = row_moments(x, rows, columns);
  Values y(x.size());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const auto at = static_cast<std::size_t>(i * columns + j), r = static_cast<std::size_t>(i),
                 c = static_cast<std::size_t>(j);
      y[at] = (x[at] - moments.mean[r]) / std::sqrt(moments.variance[r] + eps) * scale[c] + shift[c];
    }
  return y;
}

NormGradients batch_norm_gradients(const Values& x, const Values& dy, std::int64_t rows, std::int64_t columns,
                                   const Values& scale, double eps) {
  const auto c = static_cast<std::size_t>(columns);
  NormGradients d{Values(x.size()), Values(c), Values(c)};
  const Moments moments = column_moments(x, rows, columns);
  for (std::int64_t j = 0; j < columns; ++j) {
    const auto column = static_cast<std::size_t>(j);
    Values g(static_cast<std::size_t>(rows));
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto at = static_cast<std::size_t>(i * columns + j);
      g[static_cast<std::size_t>(i)] = dy[at] * scale[column];
      d.dscale[column] += dy[at] * (x[at] - moments.mean[column]) / std::sqrt(moments.variance[column] + eps);
      d.dshift[column] += dy[at];
    }
    line_gradient(x.data() + j, g, rows, columns, eps, d.dx.data() + j);
  }
  return d;
}

NormGradients layer_norm_gradients(const Values& x, const Values& dy, std::int64_t rows, std::int64_t columns,
                                   const Values& scale, double eps) {
  const auto c = static_cast<std::size_t>(columns);
  NormGradients d{Values(x.size()), Values(c), Values(c)};
  const Moments moments = row_moments(x, rows, columns);
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto row = static_cast<std::size_t>(i);
    Values g(c);
    for (std::size_t j = 0; j < c; ++j) {
      const std::size_t at = row * c + j;
      g[j] = dy[at] * scale[j];
      d.dscale[j] += dy[at] * (x[at] - moments.mean[row]) / std::sqrt(moments.variance[row] + eps);
      d.dshift[j] += dy[at];
    }
    line_gradient(x.data() + i * columns, g, columns, 1, eps, d.dx.data() + i * columns);
  }
  return d;
}

}  // namespace samebytes::reference

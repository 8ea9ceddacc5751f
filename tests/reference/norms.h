// Batch and layer normalisation in double, as plain loops over [rows, columns].
#pragma once

#include <cstdint>
#include <vector>

namespace samebytes::reference {

struct Moments {
  std::vector<double> mean, variance;  // variance divides by the number of values
};
// Of each column (batch norm) or of each row (layer norm) of x [rows, columns].
Moments column_moments(const std::vector<double>& x, std::int64_t rows, std::int64_t columns);
Moments row_moments(const std::vector<double>& x, std::int64_t rows, std::int64_t columns);

// (x - mean) / sqrt(variance + eps) * scale + shift; scale and shift have one value per column.
std::vector<double> batch_norm(const std::vector<double>& x, std::int64_t rows, std::int64_t columns,
                               const Moments& moments, const std::vector<double>& scale,
                               const std::vector<double>& shift, double eps);
std::vector<double> layer_norm(const std::vector<double>& x, std::int64_t rows, std::int64_t columns,
                               const std::vector<double>& scale, const std::vector<double>& shift, double eps);

// Gradients of the two with respect to x, scale and shift.
struct NormGradients {
  std::vector<double> dx, dscale, dshift;
};
NormGradients batch_norm_gradients(const std::vector<double>& x, const std::vector<double>& dy, std::int64_t rows,
                                   std::int64_t columns, const std::vector<double>& scale, double eps);
NormGradients layer_norm_gradients(const std::vector<double>& x, const std::vector<double>& dy, std::int64_t rows,
                                   std::int64_t columns, const std::vector<double>& scale, double eps);

}  // namespace samebytes::reference

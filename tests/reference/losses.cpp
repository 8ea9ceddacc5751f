#include "reference/losses.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace samebytes::reference {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

double total(std::span<const double> values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum;
}

}  // namespace

std::vector<double> log_softmax(std::span<const double> src, std::int64_t rows, std::int64_t columns) {
  std::vector<double> dst(src.begin(), src.end());
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto row = src.subspan(index(r * columns), index(columns));
    const double largest = *std::max_element(row.begin(), row.end());
    double sum = 0;
    for (double x : row) sum += std::exp(x - largest);
    for (std::int64_t c = 0; c < columns; ++c) dst[index(r * columns + c)] = row[index(c)] - largest - std::log(sum);
  }
  return dst;
}

std::vector<double> softmax(std::span<const double> src, std::int64_t rows, std::int64_t columns) {
  std::vector<double> dst = log_softmax(src, rows, columns);
  for (double& value : dst) value = std::exp(value);
  return dst;
}

double CrossEntropy::sum() const { return total(losses); }
double CrossEntropy::mean() const { return total(losses) / total(row_weights); }

CrossEntropy cross_entropy(std::span<const double> logits, std::span<const int> labels, std::int64_t classes,
                           std::span<const double> weight, double smoothing, std::optional<int> ignored) {
  const auto rows = static_cast<std::int64_t>(labels.size());
  const std::vector<double> log_p = log_softmax(logits, rows, classes);
  const auto weight_of = [&](std::int64_t c) { return weight.empty() ? 1.0 : weight[index(c)]; };
  CrossEntropy result;
  for (std::int64_t r = 0; r < rows; ++r) {
    const int label = labels[index(r)];
    double loss = 0, row_weight = 0;
    if (label != ignored) {
      if (label < 0 || label >= classes) {
        loss = std::numeric_limits<double>::quiet_NaN();
        row_weight = 1;
      } else {
        row_weight = weight_of(label);
        loss = -(1 - smoothing) * row_weight * log_p[index(r * classes + label)];
        for (std::int64_t c = 0; c < classes; ++c)
          loss -= smoothing / static_cast<double>(classes) * weight_of(c) * log_p[index(r * classes + c)];
      }
    }
    result.losses.push_back(loss);
    result.row_weights.push_back(row_weight);
  }
  return result;
}

CrossEntropy cross_entropy(std::span<const double> logits, std::span<const double> probabilities, std::int64_t classes,
                           std::span<const double> weight, double smoothing) {
  const auto rows = static_cast<std::int64_t>(logits.size()) / classes;
  const std::vector<double> log_p = log_softmax(logits, rows, classes);
  CrossEntropy result;
  for (std::int64_t r = 0; r < rows; ++r) {
    double loss = 0;
    for (std::int64_t c = 0; c < classes; ++c) {
      const double target =
          (1 - smoothing) * probabilities[index(r * classes + c)] + smoothing / static_cast<double>(classes);
      loss -= (weight.empty() ? 1.0 : weight[index(c)]) * target * log_p[index(r * classes + c)];
    }
    result.losses.push_back(loss);
    result.row_weights.push_back(1);
  }
  return result;
}

}  // namespace samebytes::reference

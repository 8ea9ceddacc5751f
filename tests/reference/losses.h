// Soft-max and cross-entropy in double, written from their definitions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace samebytes::reference {

// src [rows, columns]
std::vector<double> log_softmax(std::span<const double> src, std::int64_t rows, std::int64_t columns);
std::vector<double> softmax(std::span<const double> src, std::int64_t rows, std::int64_t columns);

struct CrossEntropy {
  std::vector<double> losses;       // [rows]
  std::vector<double> row_weights;  // [rows], what each counts in the mean
  double sum() const;
  double mean() const;  // sum of losses / sum of row_weights
};
// logits [rows, classes]; labels [rows]; weight [classes] or empty. A label outside [0, classes) gives NaN.
CrossEntropy cross_entropy(std::span<const double> logits, std::span<const int> labels, std::int64_t classes,
                           std::span<const double> weight, double smoothing, std::optional<int> ignored);
// probabilities [rows, classes]
CrossEntropy cross_entropy(std::span<const double> logits, std::span<const double> probabilities, std::int64_t classes,
                           std::span<const double> weight, double smoothing);

}  // namespace samebytes::reference

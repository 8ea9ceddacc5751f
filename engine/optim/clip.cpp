#include "samebytes/optim/clip.h"

#include <cmath>

#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::optim {
namespace {

constexpr double kNormEps = 1e-6;  // PyTorch's, against division by zero

void require_positive(const char* function, double most) {
  if (!(most > 0.0)) throw ArgumentError(std::string(function) + ": most must be above 0, got " + std::to_string(most));
}

}  // namespace

GradientNorm::GradientNorm(std::span<const Array> gradients) {
  if (gradients.empty()) throw ArgumentError("global_norm: needs at least one gradient");
  squares_.reserve(gradients.size());
  for (const Array& gradient : gradients) squares_.push_back(sum_of_squares(gradient));
}

Array GradientNorm::array() const {
  if (squares_.empty()) throw ArgumentError("GradientNorm: there is none");
  Array sum;
  for (const Array& square : squares_) sum = sum.defined() ? sum + square : square;
  return sqrt(sum);
}

double GradientNorm::value() const {
  if (squares_.empty()) throw ArgumentError("GradientNorm: there is none");
  double sum = 0.0;
  for (const Array& square : squares_) sum += square.value();
  return std::sqrt(sum);
}

Array global_norm(std::span<const Array> gradients) { return GradientNorm(gradients).array(); }

std::vector<Array> clip_by_global_norm(std::span<const Array> gradients, double most) {
  require_positive("clip_by_global_norm", most);
  return clip_by_global_norm(gradients, most, GradientNorm(gradients));
}

std::vector<Array> clip_by_global_norm(std::span<const Array> gradients, double most, const GradientNorm& norm) {
  require_positive("clip_by_global_norm", most);
  // The inner clip is the minimum with 1; a NaN norm stays NaN and shows.
  const Array scale = clip(most / (norm.array() + kNormEps), 0.0, 1.0);
  std::vector<Array> result;
  result.reserve(gradients.size());
  for (const Array& gradient : gradients) result.push_back(gradient * scale);
  return result;
}

std::vector<Array> clip_by_value(std::span<const Array> gradients, double most) {
  require_positive("clip_by_value", most);
  std::vector<Array> result;
  result.reserve(gradients.size());
  for (const Array& gradient : gradients) result.push_back(clip(gradient, -most, most));
  return result;
}

}  // namespace samebytes::optim

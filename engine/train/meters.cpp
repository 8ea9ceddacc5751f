// Running means on the device; what is counted on the host of a binary classifier.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <vector>

#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "samebytes/train.h"

namespace samebytes {
namespace {

void check_weight(double weight) {
  if (!(weight >= 0.0)) throw ArgumentError("Mean: a weight must be at least 0, got " + std::to_string(weight));
}

void check_binary(const char* name, std::span<const float> scores, std::span<const float> truth) {
  if (scores.size() != truth.size())
    throw ArgumentError(std::string(name) + ": scores and truth differ in length: " + std::to_string(scores.size()) +
                        ", " + std::to_string(truth.size()));
  for (const float v : truth)
    if (v != 0 && v != 1) throw ArgumentError(std::string(name) + ": truth holds 0 and 1, got " + std::to_string(v));
}

}  // namespace

void Mean::add(const Array& x, double weight) {
  if (!x.defined() || x.size() == 0 || !is_floating(x.dtype()))
    throw ArgumentError(
        "Mean: expected a floating array with elements, got " +
        (x.defined() ? std::string(name_of(x.dtype())) + " " + x.shape().to_string() : "an empty handle"));
  check_weight(weight);
  fold(x.size() == 1 ? x : sum(x), weight, weight * static_cast<double>(x.size()));
}

void Mean::add_sum(const Array& sum, double count) {
  if (!sum.defined() || sum.size() != 1 || !is_floating(sum.dtype()))
    throw ArgumentError("Mean: a sum is one floating number");
  if (!(count >= 0.0)) throw ArgumentError("Mean: a count must be at least 0, got " + std::to_string(count));
  fold(sum, 1.0, count);
}

void Mean::add_value(double value, double weight) {
  check_weight(weight);
  take(
      f32,
      [&] {
        const float narrow = static_cast<float>(value) * static_cast<float>(weight);  // as add() has it
        return (sum_.dtype() == f64 ? value * weight : static_cast<double>(narrow)) - lost_;
      },
      weight);
}

// The factor is always there, so that all weights share one plan.
void Mean::fold(const Array& x, double factor, double count) {
  const auto added = [&] {
    const Array scalar = x.shape().rank() == 0 ? x : reshape(x, Shape{});
    return astype(scalar, sum_.dtype()) * factor - lost_;
  };
  take(x.dtype() == f64 ? f64 : f32, added, count);
}

// What is to be added, less what rounding took before; the first one decides the type.
void Mean::take(Dtype dtype, const std::function<Array()>& added_of, double count) {
  if (!sum_.defined()) {
    sum_ = cell(zeros({}, dtype), "mean");
    lost_ = cell(zeros({}, dtype), "mean, rounding");
  }
  const auto updates = [&]() -> std::vector<Array> {
    const Array added = added_of();
    const Array total = sum_ + added;
    return {update(lost_, (total - sum_) - added), update(sum_, total)};
  };
  samebytes::eval(updates());
  weight_ += count;
}

double Mean::value() const {
  if (weight_ == 0.0) return std::numeric_limits<double>::quiet_NaN();
  return sum_.value() / weight_;
}

void Mean::reset() { *this = Mean(); }

Mean::State Mean::state() const {
  if (!sum_.defined()) return {};
  return {.sum = sum_.value(), .lost = lost_.value(), .weight = weight_, .is_f64 = sum_.dtype() == f64};
}

void Mean::restore(const State& state) {
  if (!(state.weight >= 0.0))
    throw ArgumentError("Mean: a weight must be at least 0, got " + std::to_string(state.weight));
  reset();
  if (state.weight == 0.0) return;
  const Dtype dtype = state.is_f64 ? f64 : f32;
  sum_ = cell(full({}, state.sum, dtype), "mean");
  lost_ = cell(full({}, state.lost, dtype), "mean, rounding");
  weight_ = state.weight;
}

void Accuracy::add(const Array& logits, const Array& labels) {
  if (!logits.defined() || logits.shape().rank() != 2 || !is_floating(logits.dtype()))
    throw ArgumentError("Accuracy: logits must be floating [N, C], got " +
                        (logits.defined() ? logits.shape().to_string() : "an empty handle"));
  if (!labels.defined() || labels.shape() != Shape{logits.shape()[0]} ||
      (labels.dtype() != i32 && labels.dtype() != i64 && labels.dtype() != u8))
    throw ArgumentError("Accuracy: labels must be i32, i64 or u8 [" + std::to_string(logits.shape()[0]) + "], got " +
                        (labels.defined() ? std::string(name_of(labels.dtype())) + " " + labels.shape().to_string()
                                          : "an empty handle"));
  if (labels.size() == 0) return;
  mean_.add_sum(sum(astype(equal(argmax(logits), labels), f32)), static_cast<double>(labels.size()));
}

double balanced_accuracy(std::span<const float> scores, std::span<const float> truth) {
  check_binary("balanced_accuracy", scores, truth);
  std::array<double, 2> count{}, right{};
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::size_t label = truth[i] == 1 ? 1 : 0;
    ++count[label];
    if ((scores[i] > 0) == (label == 1)) ++right[label];
  }
  return (right[0] / count[0] + right[1] / count[1]) / 2;
}

// By ranks: the sum of the ranks of class 1 says how many pairs are in order; equal scores share their mean rank.
double area_under_curve(std::span<const float> scores, std::span<const float> truth) {
  check_binary("area_under_curve", scores, truth);
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
  double rank_sum = 0, positives = 0;
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && scores[order[end]] == scores[order[begin]]) ++end;
    const double rank = (static_cast<double>(begin) + static_cast<double>(end) + 1) / 2;
    for (std::size_t i = begin; i < end; ++i) {
      if (truth[order[i]] != 1) continue;
      rank_sum += rank;
      ++positives;
    }
    begin = end;
  }
  const double negatives = static_cast<double>(scores.size()) - positives;
  return (rank_sum - positives * (positives + 1) / 2) / (positives * negatives);
}

}  // namespace samebytes

#include "samebytes/optim/noise_scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "optim/require.h"
#include "samebytes/ops.h"

namespace samebytes::optim {
namespace {

constexpr const char* kSquares = "squares";

// In f32 at least: the squares of 16-bit gradients leave their range.
Array squared_norm(std::span<const Array> flat) {
  Array total;
  for (const Array& part : flat) {
    const Dtype real = part.dtype() == f64 ? f64 : f32;
    const Array square = reshape(astype(sum_of_squares(astype(part, real)), f32), {1});
    total = total.defined() ? total + square : square;
  }
  return total;
}

}  // namespace

GradientNoiseScale::GradientNoiseScale(const NoiseScaleOptions& options) : decay_(options.decay) {
  require(options.decay >= 0.0 && options.decay < 1.0, "GradientNoiseScale", "decay must be at least 0 and below 1",
          options.decay);
}

void GradientNoiseScale::add(double small_square, double small_samples, double big_square, double big_samples) {
  require(small_samples > 0.0, "GradientNoiseScale", "small_samples must be above 0", small_samples);
  require(big_samples > small_samples, "GradientNoiseScale", "big_samples must be above small_samples", big_samples);
  if (!std::isfinite(small_square) || !std::isfinite(big_square)) return;
  const double gradient = (big_samples * big_square - small_samples * small_square) / (big_samples - small_samples);
  const double trace = (small_square - big_square) / (1.0 / small_samples - 1.0 / big_samples);
  gradient_square_ = decay_ * gradient_square_ + (1.0 - decay_) * gradient;
  covariance_trace_ = decay_ * covariance_trace_ + (1.0 - decay_) * trace;
  ++count_;
}

double GradientNoiseScale::corrected(double average) const {
  if (count_ == 0) return std::numeric_limits<double>::quiet_NaN();
  return average / (1.0 - std::pow(decay_, static_cast<double>(count_)));
}

double GradientNoiseScale::gradient_square() const { return corrected(gradient_square_); }
double GradientNoiseScale::covariance_trace() const { return corrected(covariance_trace_); }

double GradientNoiseScale::noise_scale() const {
  if (count_ == 0) return std::numeric_limits<double>::quiet_NaN();
  if (!(gradient_square_ > 0.0)) return std::numeric_limits<double>::infinity();
  return std::max(covariance_trace_, 0.0) / gradient_square_;  // the correction is the same in both
}

StateDict GradientNoiseScale::state_dict() const {
  return {{},
          {{"count", static_cast<double>(count_)},
           {"gradient_square", gradient_square_},
           {"covariance_trace", covariance_trace_}}};
}

void GradientNoiseScale::load_state_dict(const StateDict& state) {
  const double count = number_of("GradientNoiseScale", state, "count");
  const double gradient = number_of("GradientNoiseScale", state, "gradient_square");
  const double trace = number_of("GradientNoiseScale", state, "covariance_trace");
  require(count >= 0.0 && count < 0x1p53, "GradientNoiseScale", "count must be at least 0", count);
  require(std::isfinite(gradient), "GradientNoiseScale", "gradient_square must be finite", gradient);
  require(std::isfinite(trace), "GradientNoiseScale", "covariance_trace must be finite", trace);
  count_ = static_cast<std::int64_t>(count);
  gradient_square_ = gradient;
  covariance_trace_ = trace;
}

NoiseScaleMeter::NoiseScaleMeter(Accumulator& accumulator, const NoiseScaleOptions& options)
    : accumulator_(&accumulator), scale_(options), small_(cell(zeros({1}), "squared norms of gradients")) {
  accumulator.watch([this](std::span<const Array> gradients, double samples) -> std::vector<Array> {
    const bool is_first = accumulator_->samples() == 0.0;
    batches_ = is_first ? 1 : batches_ + 1;
    const Array weighted = squared_norm(gradients) * samples;
    return {update(small_, is_first ? weighted : small_ + weighted)};
  });
}

NoiseScaleMeter::~NoiseScaleMeter() { accumulator_->watch({}); }

void NoiseScaleMeter::measure(GradScaler* scaler) {
  const double samples = accumulator_->samples();
  if (samples == 0.0 || batches_ < 2) return;
  Array squares = concat({small_ * (1.0 / samples), squared_norm(accumulator_->means())}, 0);
  if (scaler != nullptr) {
    const Array factor = scaler->scale(ones({1}));
    squares = squares / factor / factor;
  }
  pending_.push_back({squares.eval(), samples / static_cast<double>(batches_), samples});
}

const GradientNoiseScale& NoiseScaleMeter::read() {
  for (const Pending& one : pending_) {
    const std::vector<double> squares = one.squares.to_vector<double>();
    scale_.add(squares[0], one.small_samples, squares[1], one.big_samples);
  }
  pending_.clear();
  return scale_;
}

StateDict NoiseScaleMeter::state_dict() {
  StateDict state = read().state_dict();
  state.numbers.push_back({"batches", static_cast<double>(batches_)});
  state.arrays.push_back({kSquares, small_});
  return state;
}

void NoiseScaleMeter::load_state_dict(const StateDict& state) {
  const double batches = number_of("NoiseScaleMeter", state, "batches");
  if (!(batches >= 0.0 && batches < 0x1p53))
    throw ArgumentError("NoiseScaleMeter: batches must be at least 0, got " + std::to_string(batches));
  GradientNoiseScale scale = scale_;
  scale.load_state_dict(state);
  load_arrays("NoiseScaleMeter", std::vector<StateArray>{{kSquares, small_}}, state.arrays);
  scale_ = scale;
  batches_ = static_cast<std::int64_t>(batches);
  pending_.clear();
}

}  // namespace samebytes::optim

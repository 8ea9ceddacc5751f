#include "samebytes/data/phase_fold.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/error.h"

namespace samebytes::data {
namespace {

void check_light_curve(const char* what, std::span<const double> time, std::span<const float> flux,
                       const Ephemeris& ephemeris, std::span<const float> view) {
  if (time.size() != flux.size())
    throw ArgumentError(std::string(what) + ": expected one flux for each time, got " + std::to_string(time.size()) +
                        " times and " + std::to_string(flux.size()) + " fluxes");
  if (view.empty()) throw ArgumentError(std::string(what) + ": a view has one bin or more, got none");
  if (!(ephemeris.period > 0) || !(ephemeris.duration > 0))
    throw ArgumentError(std::string(what) + ": period and duration must be above 0, got " +
                        std::to_string(ephemeris.period) + " and " + std::to_string(ephemeris.duration));
}

// From -0.5 to below 0.5, 0 at the centre.
double phase_of(double time, const Ephemeris& ephemeris) {
  const double turns = (time - ephemeris.centre) / ephemeris.period;
  const double phase = turns - std::floor(turns + 0.5);
  return phase < 0.5 ? phase : -0.5;
}

// Changes the order.
float median_of(std::span<float> values) {
  const std::size_t half = values.size() / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

float median_of_all(std::span<const float> flux) {
  std::vector<float> finite;
  finite.reserve(flux.size());
  for (const float value : flux)
    if (std::isfinite(value)) finite.push_back(value);
  return finite.empty() ? 0.0f : median_of(finite);
}

void normalise_view(std::span<float> view) {
  std::vector<float> copy(view.begin(), view.end());
  const float median = median_of(copy);
  float low = 0;
  for (float& value : view) {
    value -= median;
    low = std::min(low, value);
  }
  if (low < 0)
    for (float& value : view) value /= -low;
}

}  // namespace

void global_view(std::span<const double> time, std::span<const float> flux, const Ephemeris& ephemeris,
                 std::span<float> view) {
  check_light_curve("global_view", time, flux, ephemeris, view);
  const auto bins = view.size();
  std::vector<std::uint32_t> bin_of(time.size());
  std::vector<std::size_t> begin(bins + 2);  // two ahead: filling moves each start to the next one's
  const auto left_out = static_cast<std::uint32_t>(bins);
  for (std::size_t i = 0; i < time.size(); ++i) {
    bin_of[i] = left_out;
    if (!std::isfinite(flux[i])) continue;
    const double place = (phase_of(time[i], ephemeris) + 0.5) * static_cast<double>(bins);
    bin_of[i] = static_cast<std::uint32_t>(std::min(static_cast<double>(bins - 1), place));
    ++begin[bin_of[i] + 2];
  }
  for (std::size_t b = 2; b < begin.size(); ++b) begin[b] += begin[b - 1];
  std::vector<float> sorted(begin.back());
  for (std::size_t i = 0; i < time.size(); ++i)
    if (bin_of[i] != left_out) sorted[begin[bin_of[i] + 1]++] = flux[i];
  const float whole = median_of_all(flux);
  for (std::size_t b = 0; b < bins; ++b) {
    const auto values = std::span(sorted).subspan(begin[b], begin[b + 1] - begin[b]);
    view[b] = values.empty() ? whole : median_of(values);
  }
  normalise_view(view);
}

void local_view(std::span<const double> time, std::span<const float> flux, const Ephemeris& ephemeris,
                std::span<float> view, const LocalViewOptions& options) {
  check_light_curve("local_view", time, flux, ephemeris, view);
  if (!(options.durations > 0) || !(options.width > 0))
    throw ArgumentError("local_view: durations and width must be above 0, got " + std::to_string(options.durations) +
                        " and " + std::to_string(options.width));
  const double reach = std::min(ephemeris.period / 2, options.durations * ephemeris.duration);
  const double step = 2 * reach / static_cast<double>(view.size());
  const double half = std::max(step, options.width * ephemeris.duration) / 2;
  std::vector<std::pair<double, float>> points;
  for (std::size_t i = 0; i < time.size(); ++i) {
    const double away = phase_of(time[i], ephemeris) * ephemeris.period;
    if (std::abs(away) <= reach + half && std::isfinite(flux[i])) points.emplace_back(away, flux[i]);
  }
  std::sort(points.begin(), points.end());
  const float whole = median_of_all(flux);
  std::size_t first = 0, last = 0;
  std::vector<float> values;
  for (std::size_t b = 0; b < view.size(); ++b) {
    const double middle = -reach + (static_cast<double>(b) + 0.5) * step;
    while (first < points.size() && points[first].first < middle - half) ++first;
    while (last < points.size() && points[last].first < middle + half) ++last;
    values.clear();
    for (std::size_t i = first; i < last; ++i) values.push_back(points[i].second);
    view[b] = values.empty() ? whole : median_of(values);
  }
  normalise_view(view);
}

Box box_least_squares(std::span<const float> folded, const BoxOptions& options) {
  constexpr std::size_t kFewest = 8;
  const std::size_t size = folded.size();
  if (size < kFewest) throw ArgumentError("box_least_squares: expected 8 values or more, got " + std::to_string(size));
  if (!(options.narrowest > 0 && options.narrowest <= options.widest && options.widest < 1) || options.widths < 1)
    throw ArgumentError("box_least_squares: expected 0 < narrowest <= widest < 1 and 1 width or more, got " +
                        std::to_string(options.narrowest) + ", " + std::to_string(options.widest) + " and " +
                        std::to_string(options.widths));
  std::vector<double> sums(2 * size + 1);  // two periods
  double squares = 0;
  for (std::size_t i = 0; i < 2 * size; ++i) sums[i + 1] = sums[i] + static_cast<double>(folded[i % size]);
  const double total = sums[size], count = static_cast<double>(size), mean = total / count;
  for (const float value : folded) squares += (static_cast<double>(value) - mean) * (static_cast<double>(value) - mean);
  Box best;
  double best_power = 0;  // of the squares, what the box explains
  for (int w = 0; w < options.widths; ++w) {
    const double share = options.widths == 1 ? 0.0 : static_cast<double>(w) / (options.widths - 1);
    const double wanted = count * options.narrowest * std::pow(options.widest / options.narrowest, share);
    const auto width = std::clamp<std::size_t>(static_cast<std::size_t>(std::lround(wanted)), 1, size - 1);
    const double inside = static_cast<double>(width), outside = count - inside;
    for (std::size_t first = 0; first < size; ++first) {
      const double sum = sums[first + width] - sums[first];
      const double depth = (total - sum) / outside - sum / inside;
      const double power = depth * depth * inside * outside / count;
      if (depth <= 0 || power <= best_power) continue;
      best_power = power;
      const double scatter = std::max(0.0, squares - power) / (count - 2);
      best.depth = depth;
      best.noise = std::sqrt(scatter * (1 / inside + 1 / outside));
      best.phase = std::fmod((static_cast<double>(first) + inside / 2) / count, 1.0);
      best.width = inside / count;
    }
  }
  return best;
}

double box_least_squares_depth(std::span<const float> folded, const BoxOptions& options) {
  const Box box = box_least_squares(folded, options);
  return box.noise > 0 ? box.depth / box.noise : 0;
}

}  // namespace samebytes::data

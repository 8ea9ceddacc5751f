// The formulas are those of transformers (modeling_rope_utils.py), in double.
#include "models/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "samebytes/error.h"
#include "samebytes/ops/rotary.h"

namespace samebytes::models {

Config rope_section(const Config& config) {
  return config.part(config.has("rope_parameters") ? "rope_parameters" : "rope_scaling");
}

Rope::Rope(const Config& config, const Config& section, std::int64_t depth, double theta)
    : config_(config), section_(section) {
  type_ = section.text("rope_type", section.text("type", "default"));
  if (type_ == "su") type_ = "longrope";  // its name in the first files of Phi-3
  constexpr const char* kTypes[] = {"default", "linear", "dynamic", "llama3", "yarn", "longrope"};
  if (std::find(std::begin(kTypes), std::end(kTypes), type_) == std::end(kTypes))
    section.fail("rope_type", "default, linear, dynamic, llama3, yarn or longrope", "'" + type_ + "'");
  theta_ = value("rope_theta", theta);
  if (!(theta_ > 0)) fail("rope_theta", "a number above 0", theta_);
  const double part = value("partial_rotary_factor", 1.0);
  if (!(part > 0 && part <= 1)) fail("partial_rotary_factor", "a number above 0, at most 1", part);
  pairs_ = static_cast<std::int64_t>(static_cast<double>(depth) * part) / 2;
  if (pairs_ < 1) section.fail("head_dim", "heads of two values or more that turn", std::to_string(depth));
  longest_ = config.size("max_position_embeddings", 2048);
  original_ =
      section.size("original_max_position_embeddings", config.size("original_max_position_embeddings", longest_));
  if (type_ == "default") return;
  factor_ = type_ == "yarn" || type_ == "longrope"
                ? section.number("factor", static_cast<double>(longest_) / static_cast<double>(original_))
                : section.number("factor");
  if (!(factor_ > 0)) fail("factor", "a number above 0", factor_);
  const auto by_length = [](double scale, double weight) {
    return scale <= 1 ? 1.0 : 0.1 * weight * std::log(scale) + 1.0;
  };
  if (type_ == "yarn") {
    const double all = section.number("mscale_all_dim", 0), one = section.number("mscale", 0);
    scale_ = section.number("attention_factor", all != 0 && one != 0 ? by_length(factor_, one) / by_length(factor_, all)
                                                                     : by_length(factor_, 1));
  }
  if (type_ == "longrope") {
    scale_ = section.number(
        "attention_factor",
        factor_ <= 1 ? 1.0 : std::sqrt(1 + std::log(factor_) / std::log(std::max<double>(2, double(original_)))));
    for (const char* key : {"short_factor", "long_factor"}) {
      const std::vector<double> factors = section.numbers(key);
      if (factors.size() != static_cast<std::size_t>(pairs_))
        section.fail(key, std::to_string(pairs_) + " numbers", std::to_string(factors.size()));
      for (const double one : factors)
        if (!(one > 0)) fail(key, "numbers above 0", one);
    }
  }
  if (!std::isfinite(scale_)) fail("attention_factor", "a finite number", scale_);
}

double Rope::value(const std::string& key, double fallback) const {
  return section_.number(key, config_.number(key, fallback));
}
void Rope::fail(const std::string& key, const std::string& expected, double found) const {
  section_.fail(key, expected, std::to_string(found));
}

std::vector<double> Rope::frequencies(std::int64_t length) const {
  const double dim = 2.0 * static_cast<double>(pairs_), original = static_cast<double>(original_);
  double base = theta_;
  if (type_ == "dynamic" && length > longest_ && dim > 2) {
    const double longest = static_cast<double>(longest_);
    base *= std::pow(factor_ * static_cast<double>(length) / longest - (factor_ - 1), dim / (dim - 2));
  }
  std::vector<double> result(static_cast<std::size_t>(pairs_));
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = std::pow(base, -2.0 * static_cast<double>(i) / dim);
  if (type_ == "linear")
    for (double& f : result) f /= factor_;
  if (type_ == "llama3") {
    const double low = section_.number("low_freq_factor"), high = section_.number("high_freq_factor");
    if (!(low > 0 && high > low)) fail("high_freq_factor", "a number above low_freq_factor, both above 0", high);
    for (double& f : result) {
      const double wave = 2 * std::numbers::pi / f;
      if (wave < original / high) continue;
      const double smooth = wave > original / low ? 0.0 : (original / wave - low) / (high - low);
      f = (1 - smooth) * f / factor_ + smooth * f;
    }
  }
  if (type_ == "yarn") {
    const auto given = [&](const char* key, double fallback) {
      const double found = section_.number(key, fallback);
      return found == 0 ? fallback : found;
    };
    const auto place = [&](double turns) {
      return dim * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(theta_));
    };
    double low = place(given("beta_fast", 32)), high = place(given("beta_slow", 1));
    if (section_.flag("truncate", true)) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, dim - 1);
    if (low == high) high += 0.001;
    for (std::size_t i = 0; i < result.size(); ++i) {
      const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
      result[i] = result[i] / factor_ * ramp + result[i] * (1 - ramp);
    }
  }
  if (type_ == "longrope") {
    const std::vector<double> factors = section_.numbers(length > original_ ? "long_factor" : "short_factor");
    for (std::size_t i = 0; i < result.size(); ++i) result[i] /= factors[i];
  }
  for (const double f : result)
    if (!std::isfinite(f)) fail("rope_theta", "finite frequencies", f);
  return result;
}

Array Rope::table_of(std::int64_t length) const {
  const std::vector<double> exact = frequencies(length);
  return array(std::vector<float>(exact.begin(), exact.end()), Shape{pairs_});
}

void Rope::prepare() {
  if (short_.defined()) return;
  short_ = table_of(1);
  if (type_ == "longrope") long_ = table_of(original_ + 1);
}

Array Rope::turn(const Array& x, std::int64_t offset, std::int64_t heads) const {
  const std::int64_t length = offset + x.shape()[1];
  const Array table = type_ == "dynamic" && length > longest_     ? table_of(length)
                      : type_ == "longrope" && length > original_ ? long_
                                                                  : short_;
  return rotary(x, table, {.offset = offset, .heads = heads, .scale = scale_});
}

}  // namespace samebytes::models

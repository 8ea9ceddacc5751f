// Random programs and a plain interpreter in double that knows what they must give: ops and views, updates of cells and
// of a flat cell, writes by the host, gradients, checkpoints, NoGrad, 16-bit values, devices, evaluation at random
// moments. All values are whole numbers that every type here holds exactly or rounds once, so that results are equal
// and not merely close. Over 400 lines because the programs and their interpreter know the same list of steps.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/process.h"

namespace samebytes::testing::programs {

// One bound for all partial sums of a type: whole numbers below it are exact.
inline double exact_below(Dtype dtype) { return dtype == bf16 ? 256 : dtype == f16 ? 2048 : 4194304; }

inline double rounded(double value, Dtype dtype) {
  if (dtype == f32 || value == 0) return value;
  const double step = std::exp2(std::ilogb(value) - (dtype == f16 ? 10 : 7));
  return std::nearbyint(value / step) * step;
}

// What a value is made of: to's element `to` has derivative `d` by element `from` of input `input`.
struct Entry {
  int input;
  std::size_t from, to;
  double d;
};

struct Value {
  std::vector<double> v;
  Dtype dtype = f32;
  std::vector<std::shared_ptr<Value>> inputs = {};
  std::vector<Entry> jacobian = {};
  std::map<std::shared_ptr<int>, int> reads = {};  // counts of writes of all leaves behind it, when it was made
  bool has_kink = false;                           // an element where the derivative is a matter of taste
  std::string text = {};                           // how it was made, for failures
};
using ValuePtr = std::shared_ptr<Value>;

inline double largest(const Value& value) {
  double most = 0;
  for (const double v : value.v) most = std::max(most, std::abs(v));
  return most;
}

struct Known {
  Array array;
  ValuePtr value;
};

enum class Kind {
  transpose,
  flip,
  negate,
  add,
  subtract,
  multiply,
  maximum,
  minimum,
  row,
  joined,
  row_sums,
  column_sums,
  reshape,
  matmul,
  relu,
  where,
  roll,
  square,
  absolute,
  clip,
  cast_f16,
  cast_bf16,
  cast_f32,
  stop,
  take,
  steps,
  row_max
};
constexpr int kKinds = static_cast<int>(Kind::row_max) + 1;
constexpr const char* kNames[kKinds] = {
    "transpose", "flip",     "negate",      "add",       "subtract", "multiply", "maximum", "minimum", "row",
    "joined",    "row_sums", "column_sums", "reshape",   "matmul",   "relu",     "where",   "roll",    "square",
    "absolute",  "clip",     "cast_f16",    "cast_bf16", "cast_f32", "stop",     "take",    "steps",   "row_max"};

struct Step {
  Kind kind;
  int number;  // an axis, a row, a shift
};

inline bool is_binary(Kind kind) {
  return kind == Kind::add || kind == Kind::subtract || kind == Kind::multiply || kind == Kind::maximum ||
         kind == Kind::minimum || kind == Kind::joined || kind == Kind::matmul || kind == Kind::where;
}

// The interpreter. Inputs have one type; side is the length of both axes.
class Interpreter {
 public:
  explicit Interpreter(std::size_t side) : side_(side) {}

  ValuePtr apply(const Step& step, const ValuePtr& a, const ValuePtr& b) const {
    const auto result = std::make_shared<Value>();
    result->v.assign(side_ * side_, 0);
    result->dtype = a->dtype;
    result->inputs = {a};
    if (is_binary(step.kind)) result->inputs.push_back(b);
    for (const ValuePtr& input : result->inputs) {
      result->has_kink = result->has_kink || input->has_kink;
      for (const auto& [writes, seen] : input->reads) {  // what is read twice counts as it was read first
        const auto [read, is_new] = result->reads.emplace(writes, seen);
        if (!is_new) read->second = std::min(read->second, seen);
      }
    }
    constexpr std::size_t kMostText = 400;
    result->text = std::string(kNames[static_cast<int>(step.kind)]) + std::to_string(step.number) + "(" + a->text +
                   (is_binary(step.kind) ? ", " + b->text : "") + ")";
    if (result->text.size() > kMostText) result->text = "...";
    for (std::size_t i = 0; i < side_; ++i)
      for (std::size_t j = 0; j < side_; ++j) fill(step, *a, b ? *b : *a, i, j, *result);
    if (step.kind == Kind::cast_f16) result->dtype = f16;
    if (step.kind == Kind::cast_bf16) result->dtype = bf16;
    if (step.kind == Kind::cast_f32) result->dtype = f32;
    if (step.kind == Kind::stop) {
      result->inputs.clear();
      result->jacobian.clear();
      result->has_kink = false;
    }
    for (double& v : result->v) v = rounded(v, result->dtype);
    return result;
  }

  // Whether all partial sums are exact before the result is rounded.
  bool fits(const Step& step, const Value& a, const Value& b) const {
    const double x = largest(a), y = largest(b), n = static_cast<double>(side_);
    const double most = a.dtype == f16 ? 60000 : 4194304;
    switch (step.kind) {
      case Kind::add:
      case Kind::subtract: return x + y < most;
      case Kind::multiply: return x * y < most;
      case Kind::square: return x * x < most;
      case Kind::matmul: return n * x * y < most;
      case Kind::row_sums:
      case Kind::column_sums: return n * x < most;
      case Kind::cast_f16: return x < 60000;
      default: return true;
    }
  }

  // d sum(y * upstream) / d wrt; empty where a derivative is not exact.
  static std::optional<std::vector<double>> gradient(const ValuePtr& y, const ValuePtr& upstream, const ValuePtr& wrt) {
    std::map<const Value*, std::pair<std::vector<double>, std::vector<double>>> slopes;  // and a bound of their sums
    std::vector<const Value*> order;
    sort(*y, order);
    auto& top = slopes[y.get()];
    top.first = top.second = upstream->v;
    for (double& v : top.second) v = std::abs(v);
    for (auto node = order.rbegin(); node != order.rend(); ++node) {
      const auto found = slopes.find(*node);
      if (found == slopes.end()) continue;
      const auto [slope, bound] = found->second;
      for (const double v : bound)
        if (v >= exact_below((*node)->dtype)) return std::nullopt;
      for (const Entry& entry : (*node)->jacobian) {
        auto& below = slopes[(*node)->inputs[static_cast<std::size_t>(entry.input)].get()];
        if (below.first.empty()) {
          below.first.assign((*node)->v.size(), 0);
          below.second.assign((*node)->v.size(), 0);
        }
        below.first[entry.from] += slope[entry.to] * entry.d;
        below.second[entry.from] += bound[entry.to] * std::abs(entry.d);
      }
    }
    const auto found = slopes.find(wrt.get());
    if (found == slopes.end()) return std::vector<double>(wrt->v.size(), 0);
    return found->second.first;
  }

 private:
  static void sort(const Value& value, std::vector<const Value*>& order) {
    if (std::find(order.begin(), order.end(), &value) != order.end()) return;
    for (const ValuePtr& input : value.inputs) sort(*input, order);
    order.push_back(&value);
  }

  void fill(const Step& step, const Value& a, const Value& b, std::size_t i, std::size_t j, Value& y) const {
    const std::size_t n = side_, at = i * n + j;
    const auto number = static_cast<std::size_t>(step.number);
    const auto term = [&](int input, std::size_t from, double d) { y.jacobian.push_back({input, from, at, d}); };
    const auto moved = [&](std::size_t from) {
      y.v[at] = a.v[from];
      term(0, from, 1);
    };
    const auto chosen = [&](bool is_first, bool is_tie) {
      y.v[at] = is_first ? a.v[at] : b.v[at];
      y.has_kink = y.has_kink || is_tie;
      term(is_first ? 0 : 1, at, 1);
    };
    switch (step.kind) {
      case Kind::transpose: return moved(j * n + i);
      case Kind::flip: return moved(number % 2 ? i * n + (n - 1 - j) : (n - 1 - i) * n + j);
      case Kind::negate: y.v[at] = -a.v[at]; return term(0, at, -1);
      case Kind::add:
        y.v[at] = a.v[at] + b.v[at];
        term(0, at, 1);
        return term(1, at, 1);
      case Kind::subtract:
        y.v[at] = a.v[at] - b.v[at];
        term(0, at, 1);
        return term(1, at, -1);
      case Kind::multiply:
        y.v[at] = a.v[at] * b.v[at];
        term(0, at, b.v[at]);
        return term(1, at, a.v[at]);
      case Kind::maximum: return chosen(a.v[at] > b.v[at], a.v[at] == b.v[at]);
      case Kind::minimum: return chosen(a.v[at] < b.v[at], a.v[at] == b.v[at]);
      case Kind::row: return moved(number % n * n + j);
      case Kind::joined:
        if (i < n - 1) return moved(at + n);
        y.v[at] = b.v[j];
        return term(1, j, 1);
      case Kind::row_sums:
        for (std::size_t k = 0; k < n; ++k) {
          y.v[at] += a.v[i * n + k];
          term(0, i * n + k, 1);
        }
        return;
      case Kind::column_sums:
        for (std::size_t k = 0; k < n; ++k) {
          y.v[at] += a.v[k * n + j];
          term(0, k * n + j, 1);
        }
        return;
      case Kind::matmul:
        for (std::size_t k = 0; k < n; ++k) {
          y.v[at] += a.v[i * n + k] * b.v[k * n + j];
          term(0, i * n + k, b.v[k * n + j]);
          term(1, k * n + j, a.v[i * n + k]);
        }
        return;
      case Kind::relu:
        y.v[at] = std::max(a.v[at], 0.0);
        y.has_kink = y.has_kink || a.v[at] == 0;
        if (a.v[at] > 0) term(0, at, 1);
        return;
      case Kind::where: return chosen(a.v[at] > rounded(b.v[at] + 3, b.dtype), false);
      case Kind::roll: return moved(i * n + (j + n - number % n) % n);
      case Kind::square: y.v[at] = a.v[at] * a.v[at]; return term(0, at, 2 * a.v[at]);
      case Kind::absolute:
        y.v[at] = std::abs(a.v[at]);
        y.has_kink = y.has_kink || a.v[at] == 0;
        return term(0, at, a.v[at] < 0 ? -1 : 1);
      case Kind::clip:
        y.v[at] = std::clamp(a.v[at], -9.0, 9.0);
        y.has_kink = y.has_kink || std::abs(a.v[at]) == 9;
        if (std::abs(a.v[at]) < 9) term(0, at, 1);
        return;
      case Kind::take: return moved((i + number) % n * n + j);
      case Kind::steps: return moved((n - 1 - i) * n + (n - 1 - j));
      case Kind::row_max: {
        std::size_t top = 0;
        for (std::size_t k = 1; k < n; ++k) {
          y.has_kink = y.has_kink || a.v[i * n + k] == a.v[i * n + top];
          if (a.v[i * n + k] > a.v[i * n + top]) top = k;
        }
        return moved(i * n + top);
      }
      default: return moved(at);
    }
  }

  std::size_t side_;
};

class Program {
 public:
  Program(std::uint32_t seed, Engine& engine)
      : engine_(engine), random_(seed), side_(2 + pick(4)), interpreter_(side_), shape_{n(), n()} {
    const EngineScope scope(engine_);
    for (int i = 0; i < 3; ++i) {
      auto value = std::make_shared<Value>();
      value->v = small_values();
      value->text = "c" + std::to_string(i);
      cells_.push_back({cell(array(floats(*value), shape_), "c" + std::to_string(i)), value});
      writes_.push_back(i == 1 ? writes_[0] : std::make_shared<int>(0));  // those of a flat cell count together
      value->reads[writes_.back()] = 0;
    }
    flat_ = flatten_cells(std::vector<Array>{cells_[0].array, cells_[1].array}, "flat");
  }

  void run(int steps) {
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) step();
    finish();
  }

  void step() {
    const EngineScope scope(engine_);
    std::optional<DeviceScope> place;
    if (engine_.device_count() > 1)
      place.emplace(static_cast<int>(pick(static_cast<std::size_t>(engine_.device_count()))));
    switch (pick(10)) {
      case 0: update_cells(); break;
      case 1: update_flat(); break;
      case 2: write_by_host(); break;
      case 3: look(); break;
      case 4:
      case 5: differentiate(); break;
      default: build();
    }
    if (arrays_.size() > 6) arrays_.erase(arrays_.begin() + static_cast<std::ptrdiff_t>(pick(arrays_.size())));
  }

  void finish() {
    const EngineScope scope(engine_);
    for (const Known& each : cells_) expect(each);
    for (const Known& each : arrays_) expect(each);
  }

 private:
  std::int64_t n() const { return static_cast<std::int64_t>(side_); }
  std::size_t pick(std::size_t n) { return random_() % n; }
  std::vector<double> small_values() {
    std::vector<double> v(side_ * side_);
    for (double& each : v) each = static_cast<double>(pick(19)) - 9;
    return v;
  }
  static std::vector<float> floats(const Value& value) { return {value.v.begin(), value.v.end()}; }

  static void expect(const Known& known) {
    EXPECT_EQ(contiguous(known.array).to_vector<double>(), known.value->v) << known.value->text;
  }

  Known any() {
    const std::size_t i = pick(cells_.size() + arrays_.size());
    return i < cells_.size() ? cells_[i] : arrays_[i - cells_.size()];
  }

  Step random_step(const Value& a, const Value& b) {
    Step step{static_cast<Kind>(pick(kKinds)), static_cast<int>(pick(5))};
    if (!interpreter_.fits(step, a, b)) step.kind = Kind::clip;
    // An op that has nothing to do, such as a roll by a whole turn, may hand out its argument, which may be of NoGrad.
    if (step.kind == Kind::roll) step.number = 1 + step.number % static_cast<int>(side_ - 1);
    const bool is_cast = step.kind == Kind::cast_f16 || step.kind == Kind::cast_bf16 || step.kind == Kind::cast_f32;
    if (is_cast && a.dtype == (step.kind == Kind::cast_f16 ? f16 : step.kind == Kind::cast_bf16 ? bf16 : f32))
      step.kind = Kind::transpose;
    return step;
  }

  Array make(const Step& step, const Array& a, const Array& b) const {
    const auto number = static_cast<std::int64_t>(step.number);
    switch (step.kind) {
      case Kind::transpose: return transpose(a);
      case Kind::flip: return flip(a, {static_cast<int>(number % 2)});
      case Kind::negate: return -a;
      case Kind::add: return a + b;
      case Kind::subtract: return a - b;
      case Kind::multiply: return a * b;
      case Kind::maximum: return maximum(a, b);
      case Kind::minimum: return minimum(a, b);
      case Kind::row: return broadcast_to(slice(a, 0, number % n(), number % n() + 1), shape_);
      case Kind::joined: return concat({slice(a, 0, 1, n()), slice(b, 0, 0, 1)}, 0);
      case Kind::row_sums: return broadcast_to(sum(a, {1}, true), shape_);
      case Kind::column_sums: return broadcast_to(sum(a, {0}), shape_);
      case Kind::reshape: return reshape(transpose(reshape(a, {n() * n(), 1})), shape_);
      case Kind::matmul: return matmul(a, b);
      case Kind::relu: return relu(a);
      case Kind::where: return where(greater(a, b + 3.0), a, b);
      case Kind::roll: return roll(a, number, 1);
      case Kind::square: return square(a);
      case Kind::absolute: return abs(a);
      case Kind::clip: return clip(a, -9.0, 9.0);
      case Kind::cast_f16: return astype(a, f16);
      case Kind::cast_bf16: return astype(a, bf16);
      case Kind::cast_f32: return astype(a, f32);
      case Kind::stop: return stop_gradient(a);
      case Kind::take: {
        std::vector<std::int32_t> rows(side_);
        for (std::size_t i = 0; i < side_; ++i)
          rows[i] = static_cast<std::int32_t>((i + static_cast<std::size_t>(number)) % side_);
        return take(a, array(rows, {n()}), 0);
      }
      case Kind::steps: return a[{slice(slice_end, slice_end, -1), slice(slice_end, slice_end, -1)}];
      case Kind::row_max: return broadcast_to(max(a, {1}, true), shape_);
    }
    return a;
  }

  Known cast_to(const Known& known, Dtype dtype) {
    if (known.value->dtype == dtype) return known;
    const Step step{dtype == f16 ? Kind::cast_f16 : dtype == bf16 ? Kind::cast_bf16 : Kind::cast_f32, 0};
    if (interpreter_.fits(step, *known.value, *known.value))
      return {make(step, known.array, known.array), interpreter_.apply(step, known.value, known.value)};
    const Step clip{Kind::clip, 0};
    return cast_to({make(clip, known.array, known.array), interpreter_.apply(clip, known.value, known.value)}, dtype);
  }

  Known made_of(const Known& a, const Known& second) {
    const Known b = cast_to(second, a.value->dtype);
    const Step step = random_step(*a.value, *b.value);
    return {make(step, a.array, b.array), interpreter_.apply(step, a.value, b.value)};
  }

  Known random_value() {
    Known value = any();
    for (std::size_t depth = pick(4); depth > 0; --depth) value = made_of(value, any());
    return value;
  }

  // A few ops in a segment whose values are made again in the backward pass.
  Known checkpointed() {
    const Known a = any(), b = cast_to(any(), f32), start = cast_to(a, f32);
    std::vector<Step> steps;
    ValuePtr value = start.value;
    for (std::size_t i = 0, count = 1 + pick(3); i < count; ++i) {
      Step step = random_step(*value, *b.value);
      if (step.kind == Kind::cast_f16 || step.kind == Kind::cast_bf16) step.kind = Kind::transpose;
      steps.push_back(step);
      value = interpreter_.apply(step, value, b.value);
    }
    const auto segment = [&](const Array& x, const Array& y) {
      Array result = x;
      for (const Step& step : steps) result = make(step, result, y);
      return result;
    };
    return {checkpoint(segment, start.array, b.array), value};
  }

  // Without a tape, here and there.
  Known cut() {
    const NoGrad guard;
    const Known made = made_of(any(), any());
    const auto value = std::make_shared<Value>(*made.value);
    value->inputs.clear();
    value->jacobian.clear();
    value->has_kink = false;
    return {made.array, value};
  }

  void build() {
    switch (pick(6)) {
      case 0: arrays_.push_back(checkpointed()); break;
      case 1: arrays_.push_back(cut()); break;
      default: arrays_.push_back(made_of(random_value(), any()));
    }
    if (pick(3) == 0) arrays_.back().array.eval();
  }

  void look() {
    if (arrays_.empty()) return;
    expect(arrays_[pick(arrays_.size())]);
  }

  bool is_current(const Value& value) const {
    return std::all_of(value.reads.begin(), value.reads.end(),
                       [](const auto& read) { return *read.first == read.second; });
  }

  void differentiate() {
    const Known y = cast_to(pick(2) ? random_value() : any(), f32), weight = cast_to(any(), f32);
    std::vector<Known> wrt{any()};
    if (pick(2)) wrt.push_back(cells_[pick(cells_.size())]);
    if (wrt.size() == 2 && wrt[0].array.node() == wrt[1].array.node()) wrt.pop_back();
    if (y.value->inputs.empty()) return;  // a leaf, or without a tape
    const Array upstream = stop_gradient(weight.array);
    std::vector<Array> targets, results;
    for (const Known& each : wrt) targets.push_back(each.array);
    const bool is_known = is_current(*y.value) && is_current(*wrt[0].value) && is_current(*wrt.back().value);
    try {
      if (pick(2) && interpreter_.fits({Kind::matmul, 0}, *y.value, *weight.value))
        results = gradients(sum(y.array * upstream), targets, {.allow_unused = true});
      else
        results = gradients(y.array, targets, upstream, {.allow_unused = true});
    } catch (const ArgumentError& error) {
      if (is_known) ADD_FAILURE() << error.what() << "; y " << y.value->text << ", weight " << weight.value->text;
      return;
    }
    if (pick(2)) eval(results);
    for (std::size_t i = 0; i < wrt.size(); ++i) {
      if (!is_known || y.value->has_kink) continue;
      const auto expected = Interpreter::gradient(y.value, weight.value, wrt[i].value);
      if (!expected) continue;
      const auto value = std::make_shared<Value>();
      value->text = "gradient of " + y.value->text + " by " + wrt[i].value->text;
      value->v = *expected;
      value->dtype = wrt[i].value->dtype;
      const Known known{stop_gradient(results[i]), value};
      ++gradients_;
      if (pick(2)) expect(known);
      if (largest(*value) < exact_below(value->dtype)) arrays_.push_back(known);
    }
  }

  // Values of cells stay small.
  Known for_cell(const Known& known) {
    Known value = cast_to(known, f32);
    const Step clip{Kind::clip, 0};
    if (largest(*value.value) > 50)
      value = {make(clip, value.array, value.array), interpreter_.apply(clip, value.value, value.value)};
    return value;
  }

  void overwrite(std::size_t cell, std::vector<double> values) {
    const auto value = std::make_shared<Value>();
    value->text = "c" + std::to_string(cell) + "'";
    value->v = std::move(values);
    value->reads[writes_[cell]] = ++*writes_[cell];
    cells_[cell].value = value;
    if (cell < 2 && cells_[1 - cell].value) {  // the other part's count too
      const auto other = std::make_shared<Value>();
      other->text = cells_[1 - cell].value->text;
      other->v = cells_[1 - cell].value->v;
      other->reads[writes_[cell]] = *writes_[cell];
      cells_[1 - cell].value = other;
    }
  }

  void finish_run(std::vector<Array> roots, std::vector<Known> made) {
    for (const Known& known : made)
      if (pick(2)) roots.push_back(known.array);
    if (!arrays_.empty() && pick(2)) roots.push_back(arrays_[pick(arrays_.size())].array);
    std::shuffle(roots.begin(), roots.end(), random_);
    eval(roots);
    for (Known& known : made) arrays_.push_back(std::move(known));
  }

  void update_cells() {
    std::vector<std::size_t> chosen{0, 1, 2};
    std::shuffle(chosen.begin(), chosen.end(), random_);
    chosen.resize(1 + pick(3));
    std::vector<Known> news, made;
    std::vector<Array> roots;
    for (const std::size_t i : chosen) {
      const Known value = for_cell(random_value());
      const auto leaf = std::make_shared<Value>();
      leaf->text = "new" + std::to_string(i) + "(" + value.value->text + ")";
      leaf->v = value.value->v;
      leaf->reads = value.value->reads;
      leaf->reads[writes_[i]] = *writes_[i];
      news.push_back({update(cells_[i].array, value.array), leaf});
      roots.push_back(news.back().array);
      if (pick(3) == 0) made.push_back(cut_of(made_of(news[pick(news.size())], any())));
      if (pick(3) == 0) made.push_back(news.back());
    }
    finish_run(std::move(roots), std::move(made));
    for (std::size_t k = 0; k < chosen.size(); ++k) overwrite(chosen[k], news[k].value->v);
  }

  // Nobody asks for a gradient through an update.
  static Known cut_of(Known known) {
    const auto value = std::make_shared<Value>(*known.value);
    value->inputs.clear();
    value->jacobian.clear();
    return {std::move(known.array), value};
  }

  void update_flat() {
    const bool is_negated = pick(2) != 0;
    std::vector<Known> made;
    if (pick(2)) made.push_back(made_of(cells_[pick(2)], any()));
    finish_run({update(flat_.values, is_negated ? -flat_.values : maximum(flat_.values, -flat_.values))},
               std::move(made));
    for (std::size_t i = 0; i < 2; ++i) {
      std::vector<double> values = cells_[i].value->v;
      for (double& v : values) v = is_negated ? 0 - v : std::abs(v);
      overwrite(i, std::move(values));
    }
  }

  void write_by_host() {
    const std::size_t at = pick(side_ * side_), i = pick(cells_.size());
    const double value = static_cast<double>(pick(19)) - 9;
    cells_[i].array.mutable_host<float>()[at] = static_cast<float>(value);
    std::vector<double> values = cells_[i].value->v;
    values[at] = value;
    overwrite(i, std::move(values));
  }

  Engine& engine_;
  std::mt19937 random_;
  std::size_t side_;
  Interpreter interpreter_;
  Shape shape_;
  std::vector<Known> cells_, arrays_;
  std::vector<std::shared_ptr<int>> writes_;
  FlatCells flat_;

 public:
  int gradients_ = 0;  // that were compared
};

inline std::unique_ptr<Engine> engine_with(HostExecution host, bool is_op_by_op, std::vector<int> split = {}) {
  EngineOptions options;
  if (const char* device = std::getenv("SAMEBYTES_TEST_DEVICE")) options.device = device;
  options.host_execution = host;
  options.split = std::move(split);
  options.check_nan = is_op_by_op;
  return std::make_unique<Engine>(options);
}

// Programs from `first` on, as many as asked for or as fit into the seconds; returns how many gradients were compared.
inline int run_programs(Engine& engine, std::uint32_t first, std::uint32_t count) {
  if (is_sanitized()) count = 1 + count / 20;
  int compared = 0;
  for (std::uint32_t seed = first; seed < first + count && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Program program(seed, engine);
    program.run(10);
    compared += program.gradients_;
  }
  return compared;
}

}  // namespace samebytes::testing::programs

// Random programs over cells, their views, updates that read across them, writes by the host and evaluations in
// between, against a plain interpreter in which every array is a value.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes::testing {
namespace {

class ValuesFuzzTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(ValuesFuzzTest);

constexpr std::size_t kSide = 5, kSize = kSide * kSide;
using Values = std::vector<float>;

struct Known {
  Array array;
  Values values;
};

class Program {
 public:
  explicit Program(std::uint32_t seed) : random_(seed) {
    for (int i = 0; i < 4; ++i) {
      Values values(kSize);
      for (float& v : values) v = static_cast<float>(pick(2000)) - 1000;
      cells_.push_back({cell(array(values, {kSide, kSide}), "c" + std::to_string(i)), values});
    }
    flat_ = flatten_cells(std::vector<Array>{cells_[0].array, cells_[1].array}, "flat");
  }

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      switch (pick(8)) {
        case 0:
        case 1: update_cells(); break;
        case 2: update_flat(); break;
        case 3: write_by_host(); break;
        case 4: look(); break;
        default: build();
      }
      if (arrays_.size() > 12) arrays_.erase(arrays_.begin() + static_cast<std::ptrdiff_t>(pick(arrays_.size())));
    }
    for (const Known& cell : cells_) EXPECT_EQ(cell.array.to_vector<float>(), cell.values);
    for (const Known& known : arrays_) EXPECT_EQ(contiguous(known.array).to_vector<float>(), known.values);
  }

 private:
  std::size_t pick(std::size_t n) { return random_() % n; }

  const Known& any() {
    const std::size_t all = cells_.size() + arrays_.size(), i = pick(all);
    return i < cells_.size() ? cells_[i] : arrays_[i - cells_.size()];
  }

  static Values mapped(const Values& a, const std::function<std::size_t(std::size_t, std::size_t)>& from) {
    Values result(kSize);
    for (std::size_t i = 0; i < kSide; ++i)
      for (std::size_t j = 0; j < kSide; ++j) result[i * kSide + j] = a[from(i, j)];
    return result;
  }
  static Values each(const Values& a, const Values& b, const std::function<float(float, float)>& f) {
    Values result(kSize);
    for (std::size_t i = 0; i < kSize; ++i) result[i] = f(a[i], b[i]);
    return result;
  }

  // Values only move and change their sign, so that they stay exact.
  Known made_of(const Known& a, const Known& b) {
    const Array& x = a.array;
    const Values& v = a.values;
    switch (pick(9)) {
      case 0: return {transpose(x), mapped(v, [](std::size_t i, std::size_t j) { return j * kSide + i; })};
      case 1:
        return {flip(x, {0}), mapped(v, [](std::size_t i, std::size_t j) { return (kSide - 1 - i) * kSide + j; })};
      case 2: return {-x, each(v, v, [](float p, float) { return -p; })};
      case 3: return {maximum(x, b.array), each(v, b.values, [](float p, float q) { return std::max(p, q); })};
      case 4: return {minimum(x, b.array), each(v, b.values, [](float p, float q) { return std::min(p, q); })};
      case 5:
        return {broadcast_to(slice(x, 0, 1, 2), {kSide, kSide}),
                mapped(v, [](std::size_t, std::size_t j) { return kSide + j; })};
      case 6:
        return {concat({slice(x, 0, 2, 5), slice(b.array, 0, 0, 2)}, 0), [&] {
                  Values joined(v.begin() + 2 * kSide, v.end());
                  joined.insert(joined.end(), b.values.begin(), b.values.begin() + 2 * kSide);
                  return joined;
                }()};
      case 7: {  // the row maximum, everywhere
        Values top(kSize);
        for (std::size_t i = 0; i < kSize; ++i)
          top[i] = *std::max_element(v.begin() + static_cast<std::ptrdiff_t>(i / kSide * kSide),
                                     v.begin() + static_cast<std::ptrdiff_t>(i / kSide * kSide + kSide));
        return {broadcast_to(unsqueeze(max(x, {1}), 1), {kSide, kSide}), top};
      }
      default: return {reshape(transpose(reshape(x, {kSize, 1})), {kSide, kSide}), v};
    }
  }

  Known random_value() {
    Known value = any();
    for (std::size_t depth = pick(4); depth > 0; --depth) value = made_of(value, any());
    return value;
  }

  void build() { arrays_.push_back(made_of(random_value(), any())); }

  void look() {
    if (arrays_.empty()) return;
    const Known& known = arrays_[pick(arrays_.size())];
    EXPECT_EQ(contiguous(known.array).to_vector<float>(), known.values);
  }

  void finish(std::vector<Array> roots, std::vector<Known> made) {
    for (const Known& known : made)
      if (pick(2)) roots.push_back(known.array);
    if (!arrays_.empty() && pick(2)) roots.push_back(arrays_[pick(arrays_.size())].array);
    std::shuffle(roots.begin(), roots.end(), random_);
    eval(roots);
    for (Known& known : made) arrays_.push_back(std::move(known));
  }

  void update_cells() {
    std::vector<std::size_t> chosen{0, 1, 2, 3};
    std::shuffle(chosen.begin(), chosen.end(), random_);
    chosen.resize(1 + pick(3));
    std::vector<Known> news, made;
    std::vector<Array> roots;
    for (const std::size_t i : chosen) {
      const Known value = random_value();
      news.push_back({update(cells_[i].array, value.array), value.values});
      roots.push_back(news.back().array);
      if (pick(3) == 0) made.push_back(made_of(news[pick(news.size())], any()));
      if (pick(3) == 0) made.push_back(news.back());
    }
    finish(std::move(roots), std::move(made));
    for (std::size_t k = 0; k < chosen.size(); ++k) cells_[chosen[k]].values = news[k].values;
  }

  void update_flat() {
    const bool is_negated = pick(2) != 0;
    const Array next = is_negated ? -flat_.values : maximum(flat_.values, -flat_.values);
    std::vector<Known> made;
    if (pick(2)) made.push_back(made_of(cells_[pick(2)], any()));
    finish({update(flat_.values, next)}, std::move(made));
    for (std::size_t i = 0; i < 2; ++i)
      for (float& v : cells_[i].values) v = is_negated ? -v : std::abs(v);
  }

  void write_by_host() {
    const std::size_t at = pick(kSize);
    const float value = static_cast<float>(pick(2000)) - 1000;
    if (pick(2) || arrays_.empty()) {
      Known& known = cells_[pick(cells_.size())];
      known.array.mutable_host<float>()[at] = value;
      known.values[at] = value;
      return;
    }
    Known known = random_value();  // a value of its own
    known.array = known.array * 1.0;
    known.array.eval();
    arrays_.push_back(known);
    arrays_.push_back(made_of(known, any()));
    known.array.mutable_host<float>()[at] = value;
    for (Known& one : arrays_)
      if (one.array.node() == known.array.node()) one.values[at] = value;
  }

  std::mt19937 random_;
  std::vector<Known> cells_, arrays_;
  FlatCells flat_;
};

TEST_P(ValuesFuzzTest, every_array_keeps_the_value_it_was_written_with) {
  for (std::uint32_t seed = 0; seed < 4 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Program(seed).run(24);
  }
}

TEST_P(ValuesFuzzTest, also_op_by_op) {
  EngineOptions options = engine().options();
  options.check_nan = true;
  Engine checked(options);
  const EngineScope scope(checked);
  for (std::uint32_t seed = 100; seed < 104 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Program(seed).run(24);
  }
}

}  // namespace
}  // namespace samebytes::testing

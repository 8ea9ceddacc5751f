// What is counted on the host: values that occur, and runs of words in a text.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "onnx/registry.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

using Int = std::int64_t;

constexpr Int kMostColumns = Int{1} << 28;

// Integers in the order of the values; NaN is the last one and equal to itself.
std::vector<Int> keys_of(const Item& item) {
  if (!is_floating(item.type)) {
    auto keys = ints_of(item);
    if (item.type == Type::u64)
      for (Int& key : keys) key ^= std::numeric_limits<Int>::min();
    return keys;
  }
  std::vector<Int> keys;
  for (const double value : reals_of(item)) {
    const Int bits = std::bit_cast<Int>(value == 0 ? 0.0 : value);
    keys.push_back(std::isnan(value) ? std::numeric_limits<Int>::max()
                   : bits < 0        ? std::numeric_limits<Int>::min() - bits
                                     : bits);
  }
  return keys;
}

Outputs unique(const Call& call) {
  const Sizes sizes = call.sizes();
  const bool has_axis = call.has_attribute("axis"), is_sorted = call.integer("sorted", 1) != 0;
  const int axis = has_axis ? call.axis(call.integer("axis", 0), call.rank()) : 0;
  const Int rows = has_axis ? sizes.at(static_cast<std::size_t>(axis)) : count(sizes);
  const Int inner = has_axis ? strides_of(sizes).at(static_cast<std::size_t>(axis)) : 1,
            each = rows == 0 ? 0 : count(sizes) / rows;
  if (rows > 0 && each == 0) call.refuse("its rows are empty");
  // Flat positions of a row's elements, in their order.
  const auto places = [&](Int row) {
    std::vector<Int> at;
    for (Int i = 0; i < each; ++i) at.push_back((i / inner * rows + row) * inner + i % inner);
    return at;
  };
  const auto keys = keys_of(call.at(0));
  std::map<std::vector<Int>, std::vector<Int>> found;  // rows by their values
  for (Int row = 0; row < rows; ++row) {
    std::vector<Int> value;
    for (const Int at : places(row)) value.push_back(keys.at(static_cast<std::size_t>(at)));
    found[value].push_back(row);
  }
  std::vector<std::vector<Int>> groups;
  groups.reserve(found.size());
  for (auto& [value, group] : found) groups.push_back(std::move(group));
  if (!is_sorted) std::sort(groups.begin(), groups.end());  // by the first row of each
  std::vector<Int> first, inverse(static_cast<std::size_t>(rows)), counts, from;
  for (const auto& group : groups) {
    for (const Int row : group) inverse.at(static_cast<std::size_t>(row)) = std::ssize(first);
    first.push_back(group[0]);
    counts.push_back(std::ssize(group));
  }
  Sizes result = has_axis ? sizes : Sizes{0};
  const Int kept = std::ssize(first);
  result.at(static_cast<std::size_t>(axis)) = kept;
  for (Int i = 0; i < each * kept; ++i)
    from.push_back((i / inner / kept * rows + first.at(static_cast<std::size_t>(i / inner % kept))) * inner +
                   i % inner);
  return {moved(call.at(0), result, from), ints_item(first, {kept}), ints_item(inverse, {rows}),
          ints_item(counts, {kept})};
}

// How often each n-gram of the pool is in a row of words, also with words left out between its own.
Outputs grams(const Call& call) {
  if (call.has_attribute("pool_strings")) call.refuse("strings are not supported");
  const auto pool = call.integers("pool_int64s"), starts = call.integers("ngram_counts"),
             columns = call.integers("ngram_indexes");
  const Int shortest = call.integer("min_gram_length", 1), longest = call.integer("max_gram_length", 1),
            skips = call.integer("max_skip_count", 0);
  for (std::size_t i = 0; i < starts.size(); ++i)
    if (starts[i] < (i == 0 ? 0 : starts[i - 1]) || starts[i] > std::ssize(pool))
      call.refuse("ngram_counts lie outside of the pool");
  std::map<std::vector<Int>, Int> column_of;
  std::size_t id = 0;
  Int longest_known = 0;
  for (std::size_t size = 1; size <= starts.size(); ++size) {
    const Int end = size < starts.size() ? starts[size] : std::ssize(pool), words = static_cast<Int>(size);
    for (Int at = starts[size - 1]; at + words <= end; at += words, ++id) {
      if (id >= columns.size() || columns[id] < 0) call.refuse("ngram_indexes do not fit the pool");
      longest_known = words;
      column_of.emplace(std::vector<Int>(pool.begin() + at, pool.begin() + at + words), columns[id]);
    }
  }
  if (columns.empty() || shortest < 1 || longest < shortest || skips < 0) call.refuse("its attributes do not fit");
  const Sizes sizes = call.sizes();
  if (sizes.size() > 2) call.refuse("expected [C] or [N, C]");
  const Int last = *std::max_element(columns.begin(), columns.end()), words = sizes.empty() ? 1 : sizes.back();
  if (last < 0 || last >= kMostColumns) call.refuse("ngram_indexes go up to " + std::to_string(last));
  const Int width = last + 1;
  Sizes result(sizes.begin(), sizes.end() - (sizes.empty() ? 0 : 1));
  const Int rows = count(result);
  result.push_back(width);
  const auto text = ints_of(call.at(0));
  std::vector<float> counts(static_cast<std::size_t>(list_count(result)), 0.0F);
  const Int most = counts.empty() ? 0 : std::min({longest, longest_known, words});
  for (Int size = shortest; size <= most; ++size)
    for (Int step = 1; (size - 1) * step < words && step - 1 <= (size == 1 ? 0 : skips); ++step)
      for (Int row = 0; row < rows; ++row)
        for (Int at = 0; at + (size - 1) * step < words; ++at) {
          std::vector<Int> gram;
          for (Int i = 0; i < size; ++i) gram.push_back(text.at(static_cast<std::size_t>(row * words + at + i * step)));
          if (const auto known = column_of.find(gram); known != column_of.end())
            counts.at(static_cast<std::size_t>(row * width + known->second)) += 1.0F;
        }
  const std::string mode = call.text("mode", "TF");
  const auto weights = call.reals("weights");
  for (std::size_t i = 0; i < counts.size() && mode != "TF"; ++i) {
    if (mode == "IDF") counts[i] = std::min(counts[i], 1.0F);
    if (!weights.empty()) counts[i] *= static_cast<float>(weights.at(i % static_cast<std::size_t>(width)));
  }
  return {item_of(array(std::span<const float>(counts), shape_of(result)))};
}

}  // namespace

void add_sets(Registry& registry) { registry.insert({{"Unique", unique}, {"TfIdfVectorizer", grams}}); }

}  // namespace samebytes::onnx

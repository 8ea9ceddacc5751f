// Values put at places: on the device where a floating result takes gradients, by the places that the host knows.
#include <algorithm>
#include <limits>
#include <numeric>

#include "onnx/registry.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

using Int = std::int64_t;

Int combined(const std::string& how, Int a, Int b) {
  if (how == "add") return static_cast<Int>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  if (how == "mul") return static_cast<Int>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  return how == "max" ? std::max(a, b) : how == "min" ? std::min(a, b) : b;
}

// Integers on the host: updates[i] goes to flat place to[i] of `base`, the later ones after the earlier ones.
Item put(const Item& base, const Item& updates, const std::vector<Int>& to, const std::string& how) {
  auto values = ints_of(base);
  const auto fresh = ints_of(updates);
  for (std::size_t i = 0; i < to.size(); ++i) {
    Int& place = values.at(static_cast<std::size_t>(to[i]));
    place = combined(how, place, fresh.at(i));
  }
  return ints_item(values, sizes_of(base), base.type);
}

Array put_along(const Array& base, int axis, const Array& index, const Array& updates, const std::string& how) {
  if (how == "none") return scatter(base, axis, index, updates);
  return scatter_reduce(base, axis, index, updates,
                        {.reduce = how == "add"   ? ScatterReduce::sum
                                   : how == "mul" ? ScatterReduce::prod
                                   : how == "max" ? ScatterReduce::amax
                                                  : ScatterReduce::amin});
}

std::string reduction(const Call& call) {
  std::string how = call.text("reduction", "none");
  if (how != "none" && how != "add" && how != "mul" && how != "max" && how != "min")
    call.refuse("the reduction " + how + " is not supported");
  return how;
}

Int within(const Call& call, Int index, Int size) {
  if (index < -size || index >= size)
    call.refuse("the index " + std::to_string(index) + " is outside of the axis of " + std::to_string(size));
  return index < 0 ? index + size : index;
}

// The device's indices are i32.
void expect_countable(const Call& call, Int places) {
  if (places > std::numeric_limits<std::int32_t>::max())
    call.refuse("it has " + std::to_string(places) + " places, more than 32 bits can count");
}

Outputs scattered_elements(const Call& call) {
  const Sizes sizes = call.sizes(), at = call.sizes(1);
  if (sizes.size() != at.size() || at != call.sizes(2)) call.refuse("data, indices and updates need one rank");
  const auto axis = static_cast<std::size_t>(call.axis(call.integer("axis", 0), call.rank()));
  const std::string how = reduction(call);
  auto index = ints_of(call.at(1));
  for (Int& place : index) place = within(call, place, sizes[axis]);
  for (std::size_t k = 0; k < sizes.size(); ++k)
    if (k != axis && at[k] > sizes[k]) call.refuse("the indices have more places than the data");
  if (call.is_floating()) {
    expect_countable(call, sizes[axis]);
    return {item_of(
        put_along(call.array(), static_cast<int>(axis), plain(ints_item(index, at, Type::i32)), call.array(2), how))};
  }
  const auto strides = strides_of(sizes), own = strides_of(at);
  std::vector<Int> to(index.size());
  for (std::size_t i = 0; i < to.size(); ++i)
    for (std::size_t k = 0; k < sizes.size(); ++k)
      to[i] += (k == axis ? index[i] : Int(i) / own[k] % at[k]) * strides[k];
  return {put(call.at(0), call.at(2), to, how)};
}

Outputs scattered_nd(const Call& call) {
  const Sizes sizes = call.sizes(), at = call.sizes(1);
  if (at.empty() || at.back() > std::ssize(sizes)) call.refuse("the indices have more axes than the data");
  const auto depth = static_cast<std::size_t>(at.back());
  const std::string how = reduction(call);
  const Int slice = count(Sizes(sizes.begin() + std::ptrdiff_t(depth), sizes.end())),
            lines = count(Sizes(sizes.begin(), sizes.begin() + std::ptrdiff_t(depth)));
  const Sizes strides = strides_of(Sizes(sizes.begin(), sizes.begin() + std::ptrdiff_t(depth)));
  const auto index = ints_of(call.at(1));
  std::vector<Int> rows;  // the line that each update replaces
  for (std::size_t row = 0; depth > 0 && row < index.size() / depth; ++row) {
    Int start = 0;
    for (std::size_t k = 0; k < depth; ++k) start += within(call, index[row * depth + k], sizes[k]) * strides[k];
    rows.push_back(start);
  }
  if (count({std::ssize(rows), slice}) != count(call.sizes(2))) call.refuse("the updates have another size");
  if (call.is_floating() && !rows.empty() && slice > 0) {
    expect_countable(call, lines);
    const Shape all{std::ssize(rows), slice};
    const Array places = broadcast_to(plain(ints_item(rows, {std::ssize(rows), 1}, Type::i32)), all);
    const Array y = put_along(reshape(call.array(), {lines, slice}), 0, places, reshape(call.array(2), all), how);
    return {item_of(reshape(y, shape_of(sizes)))};
  }
  if (call.is_floating()) return {call.at(0)};
  std::vector<Int> to;
  if (list_count({std::ssize(rows), slice}) == 0) return {call.at(0)};
  for (const Int row : rows)
    for (Int i = 0; i < slice; ++i) to.push_back(row * slice + i);
  return {put(call.at(0), call.at(2), to, how)};
}

Outputs one_hot(const Call& call) {
  const Int depth = truncated(reals_of(call.at(1)).at(0));
  const auto index = reals_of(call.at(0));
  Sizes sizes = call.sizes();
  const int axis = call.axis(call.integer("axis", -1), call.rank() + 1);
  if (depth < 1 || depth > (Int{1} << 24)) call.refuse("the depth is " + std::to_string(depth));
  const Sizes of_index = sizes;
  sizes.insert(sizes.begin() + axis, depth);
  std::vector<Int> from(static_cast<std::size_t>(list_count(sizes)), 0);
  const auto strides = strides_of(sizes), own = strides_of(of_index);
  for (std::size_t i = 0; i < index.size(); ++i) {
    Int hot = truncated(index[i]);
    if (hot < -depth || hot >= depth) continue;
    if (hot < 0) hot += depth;
    Int at = hot * strides.at(static_cast<std::size_t>(axis));
    for (std::size_t k = 0; k < of_index.size(); ++k)
      at += Int(i) / own[k] % of_index[k] * strides[k < std::size_t(axis) ? k : k + 1];
    from.at(static_cast<std::size_t>(at)) = 1;
  }
  return {moved(call.at(2), sizes, from)};
}

Outputs compressed(const Call& call) {
  const auto keep = ints_of(call.at(1));
  const bool is_flat = !call.has_attribute("axis");
  const Sizes whole = is_flat ? Sizes{count(call.sizes())} : call.sizes();
  const auto axis =
      static_cast<std::size_t>(is_flat ? 0 : call.axis(call.integer("axis", 0), static_cast<int>(whole.size())));
  std::vector<Int> places;
  for (std::size_t i = 0; i < keep.size() && static_cast<Int>(i) < whole[axis]; ++i)
    if (keep[i] != 0) places.push_back(static_cast<Int>(i));
  Sizes sizes = whole;
  sizes[axis] = std::ssize(places);
  const auto strides = strides_of(whole), own = strides_of(sizes);
  std::vector<Int> from(static_cast<std::size_t>(list_count(sizes)));
  for (std::size_t i = 0; i < from.size(); ++i)
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const Int at = Int(i) / own[k] % sizes[k];
      from[i] += (k == axis ? places.at(static_cast<std::size_t>(at)) : at) * strides[k];
    }
  return {moved(call.at(0), sizes, from)};
}

Outputs reversed(const Call& call) {
  const Sizes sizes = call.sizes();
  const auto time = static_cast<std::size_t>(call.axis(call.integer("time_axis", 0), call.rank())),
             batch = static_cast<std::size_t>(call.axis(call.integer("batch_axis", 1), call.rank()));
  const auto lengths = ints_of(call.at(1));
  if (std::ssize(lengths) != sizes[batch]) call.refuse("one length for each sequence was expected");
  const auto strides = strides_of(sizes);
  std::vector<Int> from(static_cast<std::size_t>(list_count(sizes)));
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Int at = Int(i) / strides[time] % sizes[time],
              length =
                  std::min(lengths.at(static_cast<std::size_t>(Int(i) / strides[batch] % sizes[batch])), sizes[time]);
    from[i] = Int(i) + (at < length ? (length - 1 - 2 * at) * strides[time] : 0);
  }
  return {moved(call.at(0), sizes, from)};
}

Outputs unit_matrix(const Call& call) {
  const Sizes sizes = call.sizes();
  if (sizes.size() != 2) call.refuse("expected a matrix");
  const Int k = call.integer("k", 0);
  const Type type = call.element_type("dtype", call.type());
  std::vector<Int> values(static_cast<std::size_t>(list_count(sizes)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = Int(i) % sizes[1] - Int(i) / sizes[1] == k ? 1 : 0;
  if (!is_floating(type)) return {ints_item(values, sizes, type)};
  return {item_of(astype(plain(ints_item(values, sizes, Type::i32)), dtype_of(type)))};
}

Outputs hard_maximum(const Call& call) {
  const Sizes sizes = call.sizes();
  const auto values = reals_of(call.at(0));
  const int axis = call.axis(call.integer("axis", call.opset >= 13 ? -1 : 1), call.rank());
  if (call.opset < 13 && axis != call.rank() - 1) call.refuse("an axis before the last one, in this opset");
  const auto k = static_cast<std::size_t>(axis);
  const auto strides = strides_of(sizes);
  std::vector<Int> result(values.size(), 0);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (Int(i) / strides[k] % sizes[k] != 0) continue;
    std::size_t best = i;
    for (Int j = 1; j < sizes[k]; ++j)
      if (const std::size_t at = i + static_cast<std::size_t>(j * strides[k]); values[at] > values[best]) best = at;
    result[best] = 1;
  }
  return {item_of(astype(plain(ints_item(result, sizes, Type::i32)), dtype_of(call.type())))};
}

Outputs centred(const Call& call) {
  const Sizes whole = call.sizes();
  const auto wanted = ints_of(call.at(1));
  Sizes axes = call.integers("axes");
  if (!call.has_attribute("axes")) {
    axes.resize(whole.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (axes.size() != wanted.size()) call.refuse("one size for each axis was expected");
  Sizes sizes = whole, start(whole.size(), 0);  // of the result in the source
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto k = static_cast<std::size_t>(call.axis(axes[i], call.rank()));
    if (wanted[i] < 0) call.refuse("a size is " + std::to_string(wanted[i]));
    sizes[k] = wanted[i];
    start[k] = whole[k] >= wanted[i] ? (whole[k] - wanted[i]) / 2 : -((wanted[i] - whole[k]) / 2);
  }
  std::vector<Int> from(static_cast<std::size_t>(list_count(sizes)), 0), is_there(from.size(), 1);
  const auto strides = strides_of(whole), own = strides_of(sizes);
  for (std::size_t i = 0; i < from.size(); ++i)
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const Int at = Int(i) / own[k] % sizes[k] + start[k];
      if (at < 0 || at >= whole[k])
        is_there[i] = 0;
      else
        from[i] += at * strides[k];
    }
  for (std::size_t i = 0; i < from.size(); ++i)
    if (is_there[i] == 0) from[i] = 0;
  const Item cut = moved(call.at(0), sizes, from);
  if (!is_floating(cut.type)) {
    auto values = ints_of(cut);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] *= is_there[i];
    return {ints_item(values, sizes, cut.type)};
  }
  return {item_of(
      where(plain(ints_item(is_there, sizes, Type::boolean)), plain(cut), full(Shape{}, 0.0, dtype_of(cut.type))))};
}

}  // namespace

void add_scatter(Registry& registry) {
  registry.insert({{"ScatterElements", scattered_elements}, {"Scatter", scattered_elements}});
  registry.insert({{"ScatterND", scattered_nd}, {"OneHot", one_hot}, {"Compress", compressed}});
  registry.insert({{"ReverseSequence", reversed}, {"EyeLike", unit_matrix}, {"Hardmax", hard_maximum}});
  registry.insert({{"CenterCropPad", centred}});
}

}  // namespace samebytes::onnx

// Operators that change the shape or the order of elements.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "onnx/registry.h"
#include "onnx/traced.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

// The same elements in other sizes with the stored order kept: where axes are split, or merged that lie side by side.
// Nothing where that would copy.
std::optional<Item> reshaped_in_order(const Item& item, const Sizes& sizes) {
  const Sizes old = sizes_of(item);
  constexpr std::size_t kMostAxes = 8;  // of an order
  if (count(sizes) == 0 || sizes.empty() || sizes.size() > kMostAxes) return {};
  struct Group {
    std::vector<std::size_t> from;  // axes without those of size 1
    Order to;
  };
  std::vector<Group> groups;
  for (std::size_t i = 0, j = 0; i < old.size() || j < sizes.size();) {
    std::int64_t before = 1, after = 1;
    Group group;
    if (i < old.size() && j < sizes.size() && old[i] == 1 && sizes[j] == 1) {
      groups.push_back({{i++}, {static_cast<int>(j++)}});
      continue;
    }
    do {
      if (i < old.size() && (before <= after || j == sizes.size())) {
        before *= old[i];
        if (old[i] != 1) group.from.push_back(i);
        ++i;
      } else {
        after *= sizes[j];
        group.to.push_back(static_cast<int>(j++));
      }
    } while (before != after);
    groups.push_back(std::move(group));
  }
  const Order places = inverse(item.order);
  const auto place = [&](std::size_t axis) { return places[axis]; };
  for (const Group& group : groups)
    for (std::size_t k = 1; k < group.from.size(); ++k)
      if (place(group.from[k]) != place(group.from[k - 1]) + 1) return {};
  std::stable_sort(groups.begin(), groups.end(), [&](const Group& a, const Group& b) {
    return !b.from.empty() && (a.from.empty() || place(a.from[0]) < place(b.from[0]));
  });
  Order order;
  for (const Group& group : groups) order.insert(order.end(), group.to.begin(), group.to.end());
  Sizes inside;
  for (const int axis : order) inside.push_back(sizes.at(static_cast<std::size_t>(axis)));
  const bool is_plain = std::is_sorted(order.begin(), order.end());
  return ordered(reshape(item.array, shape_of(inside)), is_plain ? Order{} : order, item.type);
}

Item reshaped(const Item& item, const Sizes& sizes) {
  if (count(sizes) != count(sizes_of(item)))
    throw ArgumentError("onnx: " + std::to_string(count(sizes_of(item))) + " elements do not fit " +
                        shape_of(sizes).to_string());
  if (!item.host && !item.order.empty())
    if (const auto kept = reshaped_in_order(item, sizes)) return *kept;
  if (!item.host) return item_of(reshape(plain(item), shape_of(sizes)), item.type);
  Tensor tensor = *item.host;
  tensor.sizes = sizes;
  return item_of(std::move(tensor));
}

std::vector<std::int64_t> list(const Call& call, std::size_t input, const std::string& attribute) {
  return call.has(input) ? ints_of(call.at(input)) : call.integers(attribute);
}

Outputs shape(const Call& call) {
  const Sizes sizes = call.sizes();
  const auto rank = static_cast<std::int64_t>(sizes.size());
  const auto bound = [&](std::int64_t at) { return std::clamp<std::int64_t>(at < 0 ? at + rank : at, 0, rank); };
  const std::int64_t start = bound(call.integer("start", 0)), end = bound(call.integer("end", rank));
  const Sizes part(sizes.begin() + start, sizes.begin() + std::max(start, end));
  return {ints_item(part, {static_cast<std::int64_t>(part.size())})};
}

Outputs size(const Call& call) { return {ints_item({count(call.sizes())}, {})}; }

Outputs reshape_to(const Call& call) {
  Sizes sizes = ints_of(call.at(1));
  const Sizes old = call.sizes();
  const bool keeps_zero = call.integer("allowzero", 0) != 0;
  std::int64_t known = 1, open = -1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0 && !keeps_zero) {
      if (i >= old.size()) call.refuse("size 0 at axis " + std::to_string(i) + " has nothing to copy");
      sizes[i] = old[i];
    }
    if (sizes[i] != -1) {
      count({known, sizes[i]});
      known *= sizes[i];
      continue;
    }
    if (open >= 0) call.refuse("two sizes are -1");
    open = static_cast<std::int64_t>(i);
  }
  if (open >= 0) sizes.at(static_cast<std::size_t>(open)) = known == 0 ? 0 : count(old) / known;
  return {reshaped(call.at(0), sizes)};
}

Outputs flatten_at(const Call& call) {
  const Sizes sizes = call.sizes();
  std::int64_t axis = call.integer("axis", 1);
  if (axis < 0) axis += call.rank();
  if (axis < 0 || axis > call.rank()) call.refuse("its axis is outside");
  return {
      reshaped(call.at(0), {count({sizes.begin(), sizes.begin() + axis}), count({sizes.begin() + axis, sizes.end()})})};
}

Outputs squeeze_axes(const Call& call) {
  const Sizes sizes = call.sizes();
  std::vector<bool> drops(sizes.size());
  const auto axes = list(call, 1, "axes");
  for (const std::int64_t axis : axes) drops.at(static_cast<std::size_t>(call.axis(axis, call.rank()))) = true;
  Sizes result;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const bool drop = axes.empty() ? sizes[i] == 1 : drops[i];
    if (drop && sizes[i] != 1) call.refuse("a squeezed axis has size " + std::to_string(sizes[i]));
    if (!drop) result.push_back(sizes[i]);
  }
  return {reshaped(call.at(0), result)};
}

Outputs unsqueeze_axes(const Call& call) {
  const auto axes = list(call, 1, "axes");
  const int rank = call.rank() + static_cast<int>(axes.size());
  std::vector<bool> is_new(static_cast<std::size_t>(rank));
  for (const std::int64_t axis : axes) is_new.at(static_cast<std::size_t>(call.axis(axis, rank))) = true;
  Sizes result;
  const Sizes sizes = call.sizes();
  std::size_t next = 0;
  for (const bool is_one : is_new) {
    if (!is_one && next == sizes.size()) call.refuse("an axis is named twice");
    result.push_back(is_one ? 1 : sizes[next++]);
  }
  return {reshaped(call.at(0), result)};
}

Outputs transposed(const Call& call) {
  const Sizes sizes = call.sizes();
  std::vector<std::int64_t> axes = call.integers("perm");
  if (axes.empty())
    for (std::size_t i = sizes.size(); i-- > 0;) axes.push_back(static_cast<std::int64_t>(i));
  if (axes.size() != sizes.size()) call.refuse("perm has " + std::to_string(axes.size()) + " axes");
  Order order;
  for (const std::int64_t axis : axes) order.push_back(call.axis(axis, call.rank()));
  Order sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i)
    if (sorted[i] != static_cast<int>(i)) call.refuse("perm is no permutation");
  if (!call.at(0).host) return {item_of(stored(call.at(0), order), call.type())};
  Sizes result;
  for (const int axis : order) result.push_back(sizes.at(static_cast<std::size_t>(axis)));
  const auto in_strides = strides_of(sizes), out_strides = strides_of(result);
  std::vector<std::int64_t> from(static_cast<std::size_t>(count(result)));
  for (std::size_t i = 0; i < from.size(); ++i)
    for (std::size_t axis = 0; axis < result.size(); ++axis)
      from[i] += static_cast<std::int64_t>(i) / out_strides[axis] % result[axis] *
                 in_strides.at(static_cast<std::size_t>(order[axis]));
  return {moved(call.at(0), result, from)};
}

Outputs concatenated(const Call& call) {
  const int axis = call.axis(call.integer("axis", 0), call.rank());
  const Order order = call.at(0).order;
  if (call.is_floating() || stays_on_device(call)) {
    std::vector<Array> arrays;
    for (const Item& item : call.in) arrays.push_back(stored(item, order));
    const int at = order.empty() ? axis : inverse(order).at(static_cast<std::size_t>(axis));
    return {ordered(concat(arrays, at), order, call.type())};
  }
  Sizes result = call.sizes();
  result.at(static_cast<std::size_t>(axis)) = 0;
  std::int64_t outer = 1;
  for (int i = 0; i < axis; ++i) outer *= result.at(static_cast<std::size_t>(i));
  std::vector<std::vector<std::int64_t>> parts;
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    const Sizes sizes = call.sizes(i);
    if (sizes.size() != result.size()) call.refuse("ranks differ");
    for (std::size_t k = 0; k < sizes.size(); ++k)
      if (static_cast<int>(k) != axis && sizes[k] != result[k]) call.refuse("sizes differ");
    result.at(static_cast<std::size_t>(axis)) += sizes.at(static_cast<std::size_t>(axis));
    list_count(result);
    parts.push_back(ints_of(call.at(i)));
  }
  if (count(result) == 0) return {ints_item({}, result, call.type())};
  std::vector<std::int64_t> values;
  for (std::int64_t row = 0; row < outer; ++row)
    for (const auto& part : parts) {
      const auto length = static_cast<std::int64_t>(part.size()) / outer;
      values.insert(values.end(), part.begin() + row * length, part.begin() + (row + 1) * length);
    }
  return {ints_item(values, result, call.type())};
}

// Elements start, start + step, ... of an axis, `n` of them.
Item taken(const Item& item, int axis, std::int64_t start, std::int64_t n, std::int64_t step) {
  Sizes sizes = sizes_of(item);
  const auto at = static_cast<std::size_t>(axis);
  if (start == 0 && n == sizes[at] && step == 1) return item;
  Sizes result = sizes;
  result[at] = n;
  if (!item.host && n > 0 && step > 0) {
    const int place = item.order.empty() ? axis : inverse(item.order)[at];
    return ordered(slice(item.array, place, start, start + (n - 1) * step + 1, step), item.order, item.type);
  }
  const auto in_strides = strides_of(sizes), out_strides = strides_of(result);
  std::vector<std::int64_t> from(static_cast<std::size_t>(count(result)));
  for (std::size_t i = 0; i < from.size(); ++i)
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const std::int64_t place = static_cast<std::int64_t>(i) / out_strides[k] % result[k];
      from[i] += (k == at ? start + place * step : place) * in_strides[k];
    }
  return moved(item, result, from);
}

Outputs sliced(const Call& call) {
  const auto starts = list(call, 1, "starts"), ends = list(call, 2, "ends");
  auto axes = list(call, 3, "axes"), steps = list(call, 4, "steps");
  if (axes.empty()) {
    axes.resize(starts.size());
    std::iota(axes.begin(), axes.end(), 0);
  }
  if (steps.empty()) steps.assign(starts.size(), 1);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    call.refuse("starts, ends, axes and steps have different lengths");
  Item item = call.at(0);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const int axis = call.axis(axes[i], call.rank());
    const std::int64_t n = sizes_of(item).at(static_cast<std::size_t>(axis)), step = steps[i];
    if (step == 0) call.refuse("a step is 0");
    const auto bound = [&](std::int64_t at, std::int64_t low, std::int64_t high) {
      return std::clamp<std::int64_t>(at < 0 ? at + n : at, low, high);
    };
    const std::int64_t start = bound(starts[i], 0, step > 0 ? n : std::max<std::int64_t>(n - 1, 0));
    const std::int64_t end = step > 0 ? bound(ends[i], 0, n) : bound(ends[i], -1, n - 1);
    const std::int64_t span = step > 0 ? end - start : start - end;
    const std::int64_t stride = std::min<std::int64_t>(step > 0 ? step : step < -n - 1 ? n + 1 : -step, n + 1);
    const std::int64_t number = span <= 0 || n == 0 ? 0 : (span + stride - 1) / stride;
    item = taken(item, axis, number == 0 ? 0 : start, number, step > 0 ? stride : -stride);
  }
  return {item};
}

Outputs parts(const Call& call) {
  const int axis = call.axis(call.integer("axis", 0), call.rank());
  const std::int64_t n = call.sizes().at(static_cast<std::size_t>(axis));
  std::vector<std::int64_t> sizes = list(call, 1, "split");
  if (sizes.empty()) {
    const auto number = static_cast<std::int64_t>(call.outputs);
    if (number == 0) call.refuse("it has no outputs");
    const std::int64_t each = (n + number - 1) / number;
    for (std::int64_t i = 0; i < number; ++i) sizes.push_back(std::clamp<std::int64_t>(n - i * each, 0, each));
  }
  Outputs result;
  std::int64_t start = 0;
  for (const std::int64_t size : sizes) {
    if (size < 0 || size > n - start) call.refuse("its parts do not fit the axis");
    result.push_back(taken(call.at(0), axis, start, size, 1));
    start += size;
  }
  if (start != n || result.size() < call.outputs) call.refuse("its parts do not fit the axis");
  return result;
}

Outputs expanded(const Call& call) {
  const Sizes sizes = broadcast(call.sizes(), ints_of(call.at(1)));
  if (call.is_floating()) return {item_of(broadcast_to(call.array(), shape_of(sizes)))};
  if (!call.at(0).host) return {item_of(broadcast_to(call.array(), shape_of(sizes)), call.type())};
  list_count(sizes);
  return {moved(call.at(0), sizes, positions(call.sizes(), sizes))};
}

Outputs tiled(const Call& call) {
  const auto repeats = ints_of(call.at(1));
  const Sizes sizes = call.sizes();
  if (repeats.size() != sizes.size()) call.refuse("expected one number of repeats for each axis");
  Sizes result;
  for (std::size_t i = 0; i < sizes.size(); ++i) result.push_back(count({sizes[i], repeats[i]}));
  std::vector<std::int64_t> from(static_cast<std::size_t>(list_count(result)));
  const auto in_strides = strides_of(sizes), out_strides = strides_of(result);
  for (std::size_t i = 0; i < from.size(); ++i)
    for (std::size_t k = 0; k < sizes.size(); ++k)
      from[i] += static_cast<std::int64_t>(i) / out_strides[k] % result[k] % sizes[k] * in_strides[k];
  return {moved(call.at(0), result, from)};
}

// Six axes [N, ..] in another order: both directions between depth and space.
Outputs space(const Call& call) {
  const Sizes in = call.sizes();
  const std::int64_t block = call.integer("blocksize", 0);
  constexpr std::int64_t kMostBlock = 1 << 15;
  if (in.size() != 4 || block < 1 || block > kMostBlock) call.refuse("expected four axes and a block size");
  const Array x = call.floating();
  const bool is_crd = call.text("mode", "DCR") == "CRD";
  if (call.op == "SpaceToDepth") {
    if (in[2] % block != 0 || in[3] % block != 0) call.refuse("the block does not divide the image");
    const Array cut = reshape(x, {in[0], in[1], in[2] / block, block, in[3] / block, block});
    const Array turned = is_crd ? transpose(cut, {0, 1, 3, 5, 2, 4}) : transpose(cut, {0, 3, 5, 1, 2, 4});
    return {item_of(reshape(turned, {in[0], count({in[1], block, block}), in[2] / block, in[3] / block}))};
  }
  const std::int64_t depth = in[1] / (block * block);
  if (depth * block * block != in[1]) call.refuse("the block does not divide the channels");
  const Array cut = is_crd ? reshape(x, {in[0], depth, block, block, in[2], in[3]})
                           : reshape(x, {in[0], block, block, depth, in[2], in[3]});
  const Array turned = is_crd ? transpose(cut, {0, 1, 4, 2, 5, 3}) : transpose(cut, {0, 3, 4, 1, 5, 2});
  return {item_of(reshape(turned, {in[0], depth, count({in[2], block}), count({in[3], block})}))};
}

}  // namespace

void add_shapes(Registry& registry) {
  registry.insert({{"Shape", shape}, {"Size", size}, {"Reshape", reshape_to}, {"Flatten", flatten_at}});
  registry.insert({{"Squeeze", squeeze_axes}, {"Unsqueeze", unsqueeze_axes}, {"Transpose", transposed}});
  registry.insert({{"Concat", concatenated}, {"Slice", sliced}, {"Split", parts}, {"Expand", expanded}});
  registry.insert({{"Tile", tiled}, {"SpaceToDepth", space}, {"DepthToSpace", space}});
}

}  // namespace samebytes::onnx

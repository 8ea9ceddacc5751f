// Gathering, padding, and tensors made from numbers.
#include <algorithm>
#include <cmath>

#include "onnx/registry.h"
#include "onnx/traced.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

// Indices that the host knows, counted from the start.
std::vector<std::int64_t> indices(const Call& call, std::size_t input, std::int64_t n) {
  auto values = ints_of(call.at(input));
  for (auto& value : values) {
    if (value < -n || value >= n)
      call.refuse("index " + std::to_string(value) + " is outside of an axis of " + std::to_string(n));
    if (value < 0) value += n;
  }
  return values;
}

Outputs gathered(const Call& call) {
  const Sizes sizes = call.sizes(), of_index = call.sizes(1);
  const int axis = call.axis(call.integer("axis", 0), call.rank());
  const std::int64_t n = sizes.at(static_cast<std::size_t>(axis));
  Sizes result(sizes.begin(), sizes.begin() + axis);
  result.insert(result.end(), of_index.begin(), of_index.end());
  result.insert(result.end(), sizes.begin() + axis + 1, sizes.end());
  if (call.is_floating() || stays_on_device(call)) {
    // Indices made on the device are taken as they are, so that the host does not wait.
    const Array index = call.at(1).host ? plain(ints_item(indices(call, 1, n), of_index)) : call.array(1);
    const Array counted = call.at(1).host
                              ? index
                              : where(less(index, full(Shape{}, 0, i32)), index + full(Shape{}, double(n), i32), index);
    if (call.array().size() == 0 || index.size() == 0)
      return {item_of(zeros(shape_of(result), call.array().dtype()), call.type())};
    return {item_of(take(call.array(), counted, axis), call.type())};
  }
  const auto index = indices(call, 1, n);
  std::vector<std::int64_t> from;
  if (list_count(result) == 0) return {moved(call.at(0), result, from)};
  std::int64_t inner = 1, outer = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (static_cast<int>(i) < axis) outer *= sizes[i];
    if (static_cast<int>(i) > axis) inner *= sizes[i];
  }
  for (std::int64_t o = 0; o < outer; ++o)
    for (const std::int64_t at : index)
      for (std::int64_t k = 0; k < inner; ++k) from.push_back((o * n + at) * inner + k);
  return {moved(call.at(0), result, from)};
}

Outputs gathered_elements(const Call& call) {
  const Sizes sizes = call.sizes(), result = call.sizes(1);
  const int axis = call.axis(call.integer("axis", 0), call.rank());
  const auto at = static_cast<std::size_t>(axis);
  if (result.size() != sizes.size()) call.refuse("the index has another rank");
  if (stays_on_device(call)) return {item_of(gather(call.array(), axis, call.array(1)), call.type())};
  const auto index = indices(call, 1, sizes[at]);
  const auto in_strides = strides_of(sizes), out_strides = strides_of(result);
  std::vector<std::int64_t> from(index.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const std::int64_t place = static_cast<std::int64_t>(i) / out_strides[k] % result[k];
      if (k != at && place >= sizes[k]) call.refuse("the index is larger than the tensor");
      from[i] += (k == at ? index[i] : place) * in_strides[k];
    }
  return {moved(call.at(0), result, from)};
}

Outputs gathered_nd(const Call& call) {
  const Sizes sizes = call.sizes(), of_index = call.sizes(1);
  const std::int64_t batch = call.integer("batch_dims", 0);
  if (of_index.empty() || batch < 0 || batch >= std::ssize(of_index)) call.refuse("batch_dims is outside");
  const std::int64_t length = of_index.back();
  if (batch + length > std::ssize(sizes)) call.refuse("the index names more axes than there are");
  for (std::int64_t i = 0; i < batch; ++i)
    if (of_index.at(std::size_t(i)) != sizes.at(std::size_t(i))) call.refuse("the batches of the index are others");
  Sizes result(of_index.begin(), of_index.end() - 1);
  result.insert(result.end(), sizes.begin() + batch + length, sizes.end());
  if (stays_on_device(call) && batch == 0 && length > 0) {  // places of rows, counted on the device
    const Array index = call.array(1);
    const int last = index.shape().rank() - 1;
    Array place;
    Sizes rows{1};
    for (std::int64_t k = 0; k < length; ++k) {
      const std::int64_t n = sizes.at(std::size_t(k));
      const Array own = squeeze(slice(index, last, k, k + 1), last);
      const Array counted = where(less(own, 0), own + n, own);
      place = place.defined() ? place * n + counted : counted;
      rows[0] *= n;
    }
    rows.insert(rows.end(), sizes.begin() + length, sizes.end());
    return {item_of(take(reshape(call.array(), shape_of(rows)), place), call.type())};
  }
  const auto index = ints_of(call.at(1));
  const auto strides = strides_of(sizes);
  std::vector<std::int64_t> from;
  if (list_count(result) == 0) return {moved(call.at(0), result, from)};
  if (length == 0) call.refuse("an empty index is not supported");
  std::int64_t inner = 1, batches = 1;
  for (std::size_t i = std::size_t(batch + length); i < sizes.size(); ++i) inner *= sizes[i];
  for (std::size_t i = 0; i < std::size_t(batch); ++i) batches *= sizes[i];
  const std::int64_t rows = std::ssize(index) / length, whole = count(sizes) / batches;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t base = row / (rows / batches) * whole;
    for (std::int64_t k = 0; k < length; ++k) {
      const std::int64_t n = sizes.at(std::size_t(batch + k));
      std::int64_t at = index.at(std::size_t(row * length + k));
      if (at < -n || at >= n) call.refuse("index " + std::to_string(at) + " is outside");
      base += (at < 0 ? at + n : at) * strides.at(std::size_t(batch + k));
    }
    for (std::int64_t k = 0; k < inner; ++k) from.push_back(base + k);
  }
  return {moved(call.at(0), result, from)};
}

bool is_nothing(const Item& item) { return count(sizes_of(item)) == 0; }

// Integers, exact; negative widths cut.
Outputs padded_integers(const Call& call, const std::vector<PadWidth>& widths, PadMode how) {
  const Sizes sizes = call.sizes();
  Sizes result = sizes;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    result[k] += widths[k].before + widths[k].after;
    if (result[k] < 0) call.refuse("negative pads leave nothing");
  }
  std::vector<std::int64_t> values(static_cast<std::size_t>(list_count(result)));
  const auto in = ints_of(call.at(0));
  const auto strides = strides_of(sizes), own = strides_of(result);
  const std::int64_t value = call.has(2) && !is_nothing(call.at(2)) ? ints_of(call.at(2)).at(0) : 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int64_t from = 0;
    bool is_inside = true;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      const std::int64_t n = sizes[k];
      std::int64_t at = static_cast<std::int64_t>(i) / own[k] % result[k] - widths[k].before;
      const bool is_outside = at < 0 || at >= n;
      if (is_outside && (how == PadMode::constant || n == 0)) is_inside = false;
      if (is_outside && how == PadMode::replicate) at = at < 0 ? 0 : n - 1;
      if (is_outside && how == PadMode::circular && n > 0) at = (at % n + n) % n;
      if (is_outside && how == PadMode::reflect) {
        const std::int64_t period = std::max<std::int64_t>(2 * (n - 1), 1);
        at = (at % period + period) % period;
        at = at < n ? at : period - at;
      }
      if (is_inside) from += at * strides[k];
    }
    values[i] = is_inside ? in.at(static_cast<std::size_t>(from)) : value;
  }
  return {ints_item(values, result, call.type())};
}

Outputs padded(const Call& call) {
  const Sizes sizes = call.sizes();
  auto pads = call.has(1) ? ints_of(call.at(1)) : call.integers("pads");
  std::vector<std::int64_t> axes;
  if (call.has(3))
    axes = ints_of(call.at(3));
  else
    for (int i = 0; i < call.rank(); ++i) axes.push_back(i);
  if (pads.size() != 2 * axes.size()) call.refuse("expected two pads for each axis");
  constexpr std::int64_t kMostPad = std::int64_t{1} << 40;
  for (const std::int64_t pad : pads)
    if (pad < -kMostPad || pad > kMostPad) call.refuse("a pad of " + std::to_string(pad));
  const std::string mode = call.text("mode", "constant");
  const PadMode how = mode == "constant"  ? PadMode::constant
                      : mode == "reflect" ? PadMode::reflect
                      : mode == "edge"    ? PadMode::replicate
                      : mode == "wrap"    ? PadMode::circular
                                          : (call.refuse("the mode " + mode), PadMode::constant);
  if (!call.is_floating()) {
    std::vector<PadWidth> widths(sizes.size());
    for (std::size_t i = 0; i < axes.size(); ++i)
      widths.at(static_cast<std::size_t>(call.axis(axes[i], call.rank()))) = {pads[i], pads[i + axes.size()]};
    return padded_integers(call, widths, how);
  }
  const double value = !call.has(2)             ? call.real("value", 0.0)
                       : is_nothing(call.at(2)) ? 0.0
                                                : reals_of(call.at(2)).at(0);
  const Order& order = call.at(0).order;
  const Order back = inverse(order);
  std::vector<PadWidth> widths(sizes.size());
  Array a = call.at(0).array;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const int axis = call.axis(axes[i], call.rank());
    const int place = order.empty() ? axis : back.at(static_cast<std::size_t>(axis));
    PadWidth width{pads[i], pads[i + axes.size()]};
    if (width.before < 0 || width.after < 0) {
      if (how != PadMode::constant && how != PadMode::replicate) call.refuse("negative pads in the mode " + mode);
      const std::int64_t start = std::max<std::int64_t>(0, -width.before);
      const std::int64_t stop = a.shape()[place] - std::max<std::int64_t>(0, -width.after);
      if (start >= stop) call.refuse("negative pads leave nothing");
      a = slice(a, place, start, stop);
      width = {std::max<std::int64_t>(0, width.before), std::max<std::int64_t>(0, width.after)};
    }
    widths.at(static_cast<std::size_t>(place)) = width;
  }
  return {ordered(pad(a, widths, how, value), order)};
}

Outputs filled(const Call& call) {
  const Sizes sizes = ints_of(call.at(0));
  const auto given = call.attributes.find("value");
  Item value = given == call.attributes.end() ? item_of(zeros(Shape{1})) : item_of(tensor_of(given->second->t()));
  if (count(sizes_of(value)) != 1) call.refuse("its value is not one number");
  if (is_floating(value.type)) return {item_of(full(shape_of(sizes), reals_of(value).at(0), dtype_of(value.type)))};
  const std::vector<std::int64_t> values(static_cast<std::size_t>(list_count(sizes)), ints_of(value).at(0));
  return {ints_item(values, sizes, value.type)};
}

Outputs range(const Call& call) {
  if (call.is_floating()) {
    const double start = reals_of(call.at(0)).at(0), limit = reals_of(call.at(1)).at(0),
                 delta = reals_of(call.at(2)).at(0);
    const double n = std::ceil((limit - start) / delta);
    if (!(std::abs(n) < 1e9)) call.refuse("its length is " + std::to_string(n));
    if (n <= 0) return {item_of(zeros(Shape{0}, dtype_of(call.type())))};
    const Dtype dtype = dtype_of(call.type()), inside = dtype == f64 ? f64 : f32;
    return {item_of(astype(arange(0, n, 1, inside) * delta + start, dtype))};
  }
  const std::int64_t start = ints_of(call.at(0)).at(0), limit = ints_of(call.at(1)).at(0),
                     delta = ints_of(call.at(2)).at(0);
  if (delta == 0) call.refuse("its step is 0");
  // Unsigned, as the ends may lie apart by more than the largest signed number.
  const auto low = static_cast<std::uint64_t>(delta > 0 ? start : limit),
             high = static_cast<std::uint64_t>(delta > 0 ? limit : start),
             step = delta > 0 ? static_cast<std::uint64_t>(delta) : 0 - static_cast<std::uint64_t>(delta);
  const bool is_empty = delta > 0 ? start >= limit : start <= limit;
  const std::uint64_t steps = is_empty ? 0 : (high - low - 1) / step + 1;
  if (steps > 100'000'000) call.refuse("it has more than 10^8 values");
  const Sizes sizes{static_cast<std::int64_t>(steps)};
  std::vector<std::int64_t> values(static_cast<std::size_t>(count(sizes)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(start) + i * static_cast<std::uint64_t>(delta));
  return {ints_item(values, sizes, call.type())};
}

Outputs triangle(const Call& call) {
  const Sizes sizes = call.sizes();
  if (sizes.size() < 2) call.refuse("expected a matrix");
  const std::int64_t k = call.has(1) ? ints_of(call.at(1)).at(0) : 0, rows = sizes[sizes.size() - 2],
                     columns = sizes.back();
  const bool is_upper = call.integer("upper", 1) != 0;
  if (count(sizes) == 0) return {call.at(0)};
  list_count({rows, columns});
  std::vector<std::int64_t> keeps;
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) keeps.push_back(is_upper ? j - i >= k : j - i <= k);
  if (call.is_floating()) {
    const Array mask = plain(ints_item(keeps, {rows, columns}, Type::boolean));
    return {item_of(where(mask, call.array(), full(Shape{}, 0.0, call.array().dtype())))};
  }
  if (stays_on_device(call)) {
    const Array mask = plain(ints_item(keeps, {rows, columns}, Type::boolean)), a = call.array();
    return {
        item_of(a.dtype() == bool_ ? logical_and(a, mask) : where(mask, a, zeros(Shape{}, a.dtype())), call.type())};
  }
  auto values = ints_of(call.at(0));
  for (std::size_t i = 0; i < values.size(); ++i)
    if (keeps[i % keeps.size()] == 0) values[i] = 0;
  return {ints_item(values, sizes, call.type())};
}

Outputs nonzero(const Call& call) {
  const Sizes sizes = call.sizes();
  const auto strides = strides_of(sizes);
  list_count(sizes);
  const auto values = reals_of(call.at(0));
  std::vector<std::int64_t> found, result;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != 0) found.push_back(static_cast<std::int64_t>(i));
  list_count({std::ssize(sizes), std::ssize(found)});
  for (std::size_t k = 0; k < sizes.size(); ++k)
    for (const std::int64_t at : found) result.push_back(at / strides[k] % sizes[k]);
  return {ints_item(result, {std::ssize(sizes), std::ssize(found)})};
}

// Columns of the last axis, by a list of them.
Outputs columns(const Call& call) {
  Sizes sizes = call.sizes();
  if (sizes.empty()) call.refuse("a scalar has no columns");
  const std::int64_t width = sizes.back();
  const auto index = indices(call, 1, width);
  const std::int64_t rows = count(sizes) / std::max<std::int64_t>(width, 1);
  if (sizes.size() == 1) sizes.insert(sizes.begin(), 1);
  sizes.back() = std::ssize(index);
  std::vector<std::int64_t> from;
  if (list_count(sizes) == 0) return {moved(call.at(0), sizes, from)};
  for (std::int64_t row = 0; row < rows; ++row)
    for (const std::int64_t at : index) from.push_back(row * width + at);
  return {moved(call.at(0), sizes, from)};
}

}  // namespace

void add_indexing(Registry& registry) {
  registry.insert({{"Gather", gathered}, {"GatherElements", gathered_elements}, {"GatherND", gathered_nd}});
  registry.insert({{"Pad", padded}, {"ConstantOfShape", filled}, {"Range", range}, {"Trilu", triangle}});
  registry.insert({{"NonZero", nonzero}, {"ai.onnx.ml.ArrayFeatureExtractor", columns}});
}

}  // namespace samebytes::onnx

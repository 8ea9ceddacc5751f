// Item: a value while a graph is imported. Floating values are arrays; integers and bools are exact tensors on the
// host, or arrays where the device made them. An array may be stored with its axes in another order than the model's.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "samebytes/onnx.h"
#include "samebytes/ops/int8.h"

namespace samebytes::onnx {

using Sizes = std::vector<std::int64_t>;
using Order = std::vector<int>;

// The numbers of a constant, once somebody has asked for them on the host.
struct KnownReals {
  std::once_flag once;
  std::vector<double> values;
};

struct Item {
  Type type = Type::none;  // none: an input that is left out
  Array array;             // stored = transpose(what the model means, order)
  Order order;             // empty: as the model means
  std::shared_ptr<const Tensor> host;
  std::shared_ptr<const Int8Weight> int8;  // of a weight that fuse_quantised() found, beside its bytes in `host`
  std::shared_ptr<KnownReals> known;       // of a small constant, which then is not read from the device at each run

  bool defined() const { return type != Type::none; }
};

bool is_floating(Type type);
bool is_unsigned(Type type);
std::size_t bytes_of(Type type);
Dtype dtype_of(Type type);  // the narrowest one of an Array that holds it; throws ArgumentError if there is none
Type type_of(Dtype dtype);

// Throws ArgumentError where sizes are negative, their product overflows or is above that of a MostElements.
std::int64_t count(const Sizes& sizes);
// The same for values that become a list on the host, which has 2^28 at most.
std::int64_t list_count(const Sizes& sizes);
// While one lives, the thread's count() refuses more elements than these. Scopes nest.
class MostElements {
 public:
  explicit MostElements(std::int64_t most);
  ~MostElements();
  MostElements(const MostElements&) = delete;
  MostElements& operator=(const MostElements&) = delete;

 private:
  std::int64_t before_;
};
Shape shape_of(const Sizes& sizes);
Sizes sizes_of(const Item& item);

Item item_of(const Array& array, Type type = Type::none);  // none: the dtype's
Item item_of(Tensor tensor);                               // floating ones are uploaded
// Throws ArgumentError where the sizes ask for another number of values, or the type has no integers.
Item ints_item(const std::vector<std::int64_t>& values, const Sizes& sizes, Type type = Type::i64);

// As the model means it, uploaded if it is on the host; integers wider than 32 bits become i32 and must fit.
Array plain(const Item& item);
Array stored(const Item& item, const Order& order);
Item ordered(const Array& stored, const Order& order, Type type = Type::none);
Order channels_last(std::size_t rank);  // NCHW -> NHWC
Order taps_first(std::size_t rank);     // KCHW -> HWCK
Order inverse(const Order& order);

// On the host; waits for the device where it has to.
Tensor on_host(const Item& item);
std::vector<std::int64_t> ints_of(const Item& item);
std::vector<double> reals_of(const Item& item);
std::int64_t wrapped(std::int64_t value, Type type);  // as the type stores it
std::int64_t truncated(double value);                 // toward zero; what lies outside of 64 bits becomes their ends
bool is_below(std::int64_t a, std::int64_t b, Type type);  // as integers of the type

// result[i] = item[from[i]] for flat positions.
Item moved(const Item& item, const Sizes& sizes, std::span<const std::int64_t> from);

Sizes broadcast(const Sizes& a, const Sizes& b);
// For each element of `sizes`, the flat position in a tensor of `of` that broadcasts to it.
std::vector<std::int64_t> positions(const Sizes& of, const Sizes& sizes);
std::vector<std::int64_t> strides_of(const Sizes& sizes);

}  // namespace samebytes::onnx

// Array: a value handle on an n-dimensional array that lives in shared memory, or on the op that will fill it.
// Ops build a lazy graph; value(), host(), eval() and an optimizer's step run it. Copying a handle copies no bytes.
// An array means the value that it had when the expression was written: what is evaluated, updated or written by the
// host later changes neither it nor its gradient (docs/design.md, "What an array means").
// A handle may outlive its engine; any use but destruction then throws ArgumentError.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "samebytes/dtype.h"
#include "samebytes/memory.h"
#include "samebytes/random.h"
#include "samebytes/shape.h"

namespace samebytes {

class Engine;

namespace detail {
struct Node;
using NodePtr = std::shared_ptr<Node>;
[[noreturn]] void throw_wrong_type(const Array& array, Dtype asked);
}  // namespace detail

class Array {
 public:
  Array() = default;  // an empty handle; every use but assignment throws ArgumentError
  explicit Array(detail::NodePtr node);
  Array(const Array& other);
  Array(Array&& other) noexcept = default;  // leaves an empty handle
  // Only a handle with a name can be assigned to: slice(a, ...) = b would change nothing and does not compile.
  Array& operator=(const Array& other) &;
  Array& operator=(Array&& other) & noexcept;  // leaves an empty handle; what this one was on is let go
  ~Array();

  // Whether this is a handle on an array, not an empty one. An array has no truth of its own, since equal(a, b) gives
  // one value for each element: ask all(equal(a, b)).value() or any(...).value().
  bool defined() const { return node_ != nullptr; }
  const Shape& shape() const;
  Dtype dtype() const;
  std::int64_t size() const { return shape().size(); }  // number of elements
  int device() const;                                   // index among the engine's devices

  // Enqueues what is needed to fill this array and returns at once.
  const Array& eval() const;
  // Enqueues and waits. Throws DeviceError if a launch failed.
  const Array& wait() const;
  // The one element, as double. Waits. Throws ArgumentError unless size() is 1.
  double value() const;

  // The bytes themselves. Evaluates, waits for the last writer, copies nothing where memory is shared.
  // Throws ArgumentError for another element type, for a view that is not contiguous (call contiguous() first), for a
  // writing view of an array that is not a leaf. Before the first byte is written, expressions of the array that
  // somebody holds are evaluated, so they keep the value they were written with; those written while the view lives
  // read what it leaves.
  template <class T>
  HostView<const T> host(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    check_type(dtype_of<T>);
    return HostView<const T>(detail::Borrow(*this, false, file, line), static_cast<std::size_t>(size()));
  }
  template <class T>
  HostView<T> mutable_host(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    check_type(dtype_of<T>);
    return HostView<T>(detail::Borrow(*this, true, file, line), static_cast<std::size_t>(size()));
  }
  // A copy of the elements for convenience; T may differ from the element type (f16 and bf16 become floats).
  template <class T>
  std::vector<T> to_vector() const;

  std::string to_string() const;  // "f32 [2, 3] {{1, 2, 3}, {4, 5, 6}}", shortened; evaluates

  const detail::NodePtr& node() const { return node_; }  // for the engine's rooms

 private:
  void check_type(Dtype asked) const;
  detail::NodePtr node_;
};

extern template std::vector<float> Array::to_vector<float>() const;
extern template std::vector<double> Array::to_vector<double>() const;
extern template std::vector<std::int32_t> Array::to_vector<std::int32_t>() const;
extern template std::vector<std::uint8_t> Array::to_vector<std::uint8_t>() const;

// Evaluates several arrays in one run.
void eval(std::span<const Array> arrays);
inline void eval(std::initializer_list<Array> arrays) { eval(std::span<const Array>(arrays.begin(), arrays.size())); }

// Leaves. All belong to the current engine (Engine::current()).
// The values are written by the host straight into the storage; nothing is staged where memory is shared.
Array array(std::span<const float> values, const Shape& shape);
Array array(std::span<const double> values, const Shape& shape);
Array array(std::span<const std::int32_t> values, const Shape& shape);
Array array(std::span<const std::uint8_t> values, const Shape& shape);
Array array(std::initializer_list<float> values);                      // f32 [n]
Array array(std::initializer_list<float> values, const Shape& shape);  // f32
// An uninitialised leaf to be filled through mutable_host().
Array empty(const Shape& shape, Dtype dtype = f32);

// Filled on the device; lazy.
Array full(const Shape& shape, double value, Dtype dtype = f32);
inline Array zeros(const Shape& shape, Dtype dtype = f32) { return full(shape, 0.0, dtype); }
inline Array ones(const Shape& shape, Dtype dtype = f32) { return full(shape, 1.0, dtype); }
Array arange(double start, double stop, double step = 1.0, Dtype dtype = f32);
// Counter-based (Philox): the same seed and call order give the same numbers on every device, up to rounding of log and
// cos in normal. Without a key they draw from the engine's seed and counter. Element i takes word i % 4 of
// philox4x32(random_counter(domain, i / 4, counter low, counter high), {seed low, seed high}), random.h; uniform has 24
// random bits in f32, 32 in f64, 11 in f16, 8 in bf16. Throw ArgumentError for a dtype that is not floating.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t counter = 0;
  RandomDomain domain = RandomDomain::arrays;  // other ops than uniform and normal have domains of their own
};
// The engine's seed and its counter, advanced.
RandomKey next_random_key(RandomDomain domain = RandomDomain::arrays);
Array uniform(const Shape& shape, double low = 0.0, double high = 1.0, Dtype dtype = f32);
Array uniform(const Shape& shape, double low, double high, Dtype dtype, RandomKey key);
Array normal(const Shape& shape, double mean = 0.0, double deviation = 1.0, Dtype dtype = f32);
Array normal(const Shape& shape, double mean, double deviation, Dtype dtype, RandomKey key);

// The user's own memory as an array: shape.size() elements of dtype at `pointer`. `deleter` runs when nothing uses the
// bytes any more (also where they had to be copied). `verdict` says which of both happened and why.
Array adopt(void* pointer, const Shape& shape, Dtype dtype, std::function<void()> deleter = {},
            Adoption* verdict = nullptr);
template <class T>
Array adopt(std::vector<T>&& values, const Shape& shape,
            Adoption* verdict = nullptr);  // the vector lives as long as the array

// Cells: arrays that keep their identity and are overwritten in place (parameters, running statistics, optimizer
// state). An expression reads the value that a cell had when it was written, views of the cell included; the cell
// itself is always the newest. `initial` is evaluated at the cell's first use.
Array cell(const Array& initial, std::string name, MemoryCategory category = MemoryCategory::parameters);
bool is_cell(const Array& array);
// A new cell with the present value of this one and its name.
Array clone_cell(const Array& cell);
const std::string& cell_name(const Array& array);
// A node that, when it is evaluated, overwrites the cell (same shape and dtype); its value is the new one, and all that
// was written with the cell keeps the old one. The value may read the cell in any way: update(c, transpose(c)). Two
// updates of one cell in one run are an ArgumentError. Several updates evaluated together whose values are pointwise
// share one launch: this is how optimizers are written.
Array update(const Array& cell, const Array& value);
// eval(update(cell, value)).
void assign(const Array& cell, const Array& value);

// One flat cell that lies under many: the values of `cells` move into it once, each at a multiple of 128 bytes with
// zero gaps, and each cell becomes a part of it. All of one dtype; a cell that is part of a flat one still alive is an
// ArgumentError.
struct FlatCells {
  Array values;                       // the flat cell [n]
  std::vector<std::int64_t> offsets;  // of each cell, in elements
};
FlatCells flatten_cells(std::span<const Array> cells, std::string name);
// Arrays side by side in one flat array [n] at the given offsets, zero between them; their producers write there
// directly.
Array pack(std::span<const Array> arrays, std::span<const std::int64_t> offsets, std::int64_t n);
// As pack(), but where nothing except the updates of cells reads the result, element by element, each run of
// neighbouring arrays is updated as soon as they are there, and their bytes are free again. The values are the same. An
// engine of one device does that for flat arrays of 64 MiB and more without being asked.
Array pack_to_release(std::span<const Array> arrays, std::span<const std::int64_t> offsets, std::int64_t n);

template <class T>
Array adopt(std::vector<T>&& values, const Shape& shape, Adoption* verdict) {
  auto kept = std::make_shared<std::vector<T>>(std::move(values));
  T* data = kept->data();
  return adopt(
      static_cast<void*>(data), shape, dtype_of<T>, [kept]() mutable { kept.reset(); }, verdict);
}

}  // namespace samebytes

// Array: a value handle on an n-dimensional array that lives in shared memory, or on the op that will fill it.
// Ops build a lazy graph; value(), host(), eval() and an optimizer's step run it. Copying a handle copies no bytes.
// An array stands for the value it had when the expression was written: later evaluations, updates and writes by the
// host change neither that value nor its gradient (docs/design.md, "What an array means").
// A handle may outlive its engine; any use but destruction then throws ArgumentError.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "samebytes/dtype.h"
#include "samebytes/index.h"
#include "samebytes/memory.h"
#include "samebytes/number.h"
#include "samebytes/random.h"
#include "samebytes/shape.h"

namespace samebytes {

class Engine;

namespace detail {
struct Node;
using NodePtr = std::shared_ptr<Node>;
[[noreturn]] void throw_wrong_type(const Array& array, Dtype asked);

// While one lives, the nodes that this thread builds are of that line of the user's code, which errors of their
// launches name. Lines of the library's own files stand for nothing, so those of their caller stay.
class Here {
 public:
  explicit Here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept;
  ~Here();
  Here(const Here&) = delete;
  Here& operator=(const Here&) = delete;

 private:
  const char* file_;  // of the line before
  int line_;
};
}  // namespace detail

class Array {
 public:
  Array() = default;  // an empty handle; every use but assignment throws ArgumentError
  explicit Array(detail::NodePtr node);
  Array(const Array& other);
  Array(Array&& other) noexcept = default;  // leaves an empty handle
  // Only a handle with a name can be assigned to: slice(a, ...) = b would change nothing and does not compile.
  Array& operator=(const Array& other) &;
  Array& operator=(Array&& other) & noexcept;  // leaves an empty handle; releases this handle's old array
  ~Array();

  // True unless the handle is empty. An array does not convert to bool, because equal(a, b) has one value per element:
  // write all(equal(a, b)).value() or any(...).value().
  bool defined() const { return node_ != nullptr; }
  const Shape& shape() const;
  Dtype dtype() const;
  std::int64_t size() const { return shape().size(); }  // number of elements
  int device() const;                                   // index among the engine's devices

  // A view of some elements, as NumPy's: x[2], x[{0, slice(1, 4)}], x[{ellipsis, slice(5, 0, -1)}]. Axes that are not
  // named are taken whole. Throws ArgumentError for a number outside its axis and for more indices than axes.
  Array operator[](const Index& index) const;
  Array operator[](std::initializer_list<Index> indices) const;
  Array operator[](std::span<const Index> indices) const;

  // Enqueues the work that fills this array and returns at once.
  const Array& eval() const;
  // Enqueues and waits. Throws DeviceError if a launch failed.
  const Array& wait() const;
  // Waits and returns the only element as a double. Throws ArgumentError unless size() is 1.
  double value() const;

  // A view of the bytes themselves. Evaluates the array and waits for its last writer; copies nothing where memory is
  // shared. Throws ArgumentError if T is not the element type, if the array is a non-contiguous view (call contiguous()
  // first), or if a writing view is requested of an op's unevaluated result or of a read-only array. Before a writing
  // view is returned, every live expression that reads the array is evaluated and so keeps its value; expressions
  // written while the view lives read the new bytes.
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

// An array as ops take it: with the line of the call. Made from an Array where it is passed, and lives for that call.
class Input {
 public:
  Input(const Array& array, const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept
      : array_(array), here_(file, line) {}
  Input() noexcept;  // an empty handle
  operator const Array&() const { return array_; }
  const Array& array() const { return array_; }
  bool defined() const { return array_.defined(); }
  const Shape& shape() const { return array_.shape(); }
  Dtype dtype() const { return array_.dtype(); }
  std::int64_t size() const { return array_.size(); }
  int device() const { return array_.device(); }
  const detail::NodePtr& node() const { return array_.node(); }

 private:
  const Array& array_;
  const detail::Here here_;
};

// The same of a list: {a, b}, {pointer, count}, or a vector, array or span of arrays.
class Inputs {
 public:
  Inputs(std::initializer_list<Array> arrays, const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept
      : arrays_(arrays.begin(), arrays.size()), here_(file, line) {}
  template <class T>
  requires std::convertible_to<const T&, std::span<const Array>> Inputs(const T& arrays,
                                                                        const char* file = __builtin_FILE(),
                                                                        int line = __builtin_LINE())
  noexcept : arrays_(arrays), here_(file, line) {}
  Inputs(const Array* first, std::size_t count, const char* file = __builtin_FILE(),
         int line = __builtin_LINE()) noexcept
      : arrays_(first, count), here_(file, line) {}
  operator std::span<const Array>() const { return arrays_; }
  std::size_t size() const { return arrays_.size(); }
  bool empty() const { return arrays_.empty(); }
  const Array& operator[](std::size_t i) const { return arrays_[i]; }
  auto begin() const { return arrays_.begin(); }
  auto end() const { return arrays_.end(); }

 private:
  std::span<const Array> arrays_;
  const detail::Here here_;
};

extern template std::vector<float> Array::to_vector<float>() const;
extern template std::vector<double> Array::to_vector<double>() const;
extern template std::vector<std::int32_t> Array::to_vector<std::int32_t>() const;
extern template std::vector<std::uint8_t> Array::to_vector<std::uint8_t>() const;
extern template std::vector<std::int64_t> Array::to_vector<std::int64_t>() const;
extern template std::vector<bool> Array::to_vector<bool>() const;

// Evaluates several arrays in one run.
void eval(std::span<const Array> arrays);
inline void eval(std::initializer_list<Array> arrays) { eval(std::span<const Array>(arrays.begin(), arrays.size())); }

// Leaves. All belong to the current engine (Engine::current()). array() of values of the host is in values.h.
// An uninitialised leaf to be filled through mutable_host().
Array empty(const Shape& shape, Dtype dtype = f32);

// Filled on the device; lazy.
Array full(const Shape& shape, const Number& value, Dtype dtype = f32, const detail::Here& = detail::Here());
inline Array zeros(const Shape& shape, Dtype dtype = f32, const detail::Here& here = detail::Here()) {
  return full(shape, 0.0, dtype, here);
}
inline Array ones(const Shape& shape, Dtype dtype = f32, const detail::Here& here = detail::Here()) {
  return full(shape, 1.0, dtype, here);
}
Array arange(double start, double stop, double step = 1.0, Dtype dtype = f32, const detail::Here& = detail::Here());
// Counter-based (Philox): the same seed and call order give the same numbers on every device, up to rounding of log and
// cos in normal. Without a key they draw from the engine's seed and counter. Element i takes word i % 4 of
// philox4x32(random_counter(domain, i / 4, counter low, counter high), {seed low, seed high}), random.h; uniform has 24
// random bits in f32, 32 in f64, 11 in f16, 8 in bf16. Throw ArgumentError for a dtype that is not floating.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t counter = 0;
  RandomDomain domain = RandomDomain::arrays;  // ops other than uniform and normal have their own domains
};
// Returns the engine's seed and advances its counter.
RandomKey next_random_key(RandomDomain domain = RandomDomain::arrays);
Array uniform(const Shape& shape, double low = 0.0, double high = 1.0, Dtype dtype = f32,
              const detail::Here& = detail::Here());
Array uniform(const Shape& shape, double low, double high, Dtype dtype, RandomKey key,
              const detail::Here& = detail::Here());
Array normal(const Shape& shape, double mean = 0.0, double deviation = 1.0, Dtype dtype = f32,
             const detail::Here& = detail::Here());
Array normal(const Shape& shape, double mean, double deviation, Dtype dtype, RandomKey key,
             const detail::Here& = detail::Here());

// The user's own memory as an array: shape.size() elements of dtype at `pointer`. `deleter` runs once nothing uses the
// bytes any more, also if they had to be copied. `verdict` receives whether they were adopted or copied, and why.
Array adopt(void* pointer, const Shape& shape, Dtype dtype, std::function<void()> deleter = {},
            Adoption* verdict = nullptr);
template <class T>
Array adopt(std::vector<T>&& values, const Shape& shape,
            Adoption* verdict = nullptr);  // the array owns the vector

// Cells: arrays that keep their identity and are overwritten in place (parameters, running statistics, optimizer
// state). An expression, a view included, reads the value that the cell had when the expression was written; the cell
// itself always has the newest value. `initial` is evaluated at the cell's first use.
Array cell(const Input& initial, std::string name, MemoryCategory category = MemoryCategory::parameters);
bool is_cell(const Array& array);
// A new cell with the same name and current value.
Array clone_cell(const Input& cell);
const std::string& cell_name(const Array& array);
// Returns a node that overwrites the cell with `value` (same shape and dtype) when it is evaluated, and has the new
// value; expressions written with the cell before keep the old one. `value` may read the cell in any way: update(c,
// transpose(c)). Throws ArgumentError if one run updates a cell twice. Updates that are evaluated together and whose
// values are pointwise share one launch: this is how optimizers are written.
Array update(const Input& cell, const Input& value);
// eval(update(cell, value)).
void assign(const Input& cell, const Input& value);

// Makes one flat cell that holds many: the values of `cells` move into it once, each at a multiple of 128 bytes with
// zeros in the gaps, and each cell becomes a part of it. Throws ArgumentError if dtypes differ or if a cell is already
// part of a live flat cell.
struct FlatCells {
  Array values;                       // the flat cell [n]
  std::vector<std::int64_t> offsets;  // of each cell, in elements
};
FlatCells flatten_cells(std::span<const Array> cells, std::string name);
// Puts arrays side by side into one flat array [n] at the given offsets, zeros between them; their producers write into
// it directly.
Array pack(const Inputs& arrays, std::span<const std::int64_t> offsets, std::int64_t n);

template <class T>
Array adopt(std::vector<T>&& values, const Shape& shape, Adoption* verdict) {
  auto kept = std::make_shared<std::vector<T>>(std::move(values));
  T* data = kept->data();
  return adopt(
      static_cast<void*>(data), shape, dtype_of<T>, [kept]() mutable { kept.reset(); }, verdict);
}

}  // namespace samebytes

#include "samebytes/values.h"

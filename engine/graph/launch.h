// Launch: how an op says which kernels compute its results. Called once per plan; the plan binds and repeats what was
// recorded.
//   run.kernel("softmax_fwd").args(run.src(0), run.dst(), rows, columns).over_rows(rows);
// Host code does not know which personality runs: it asks for rows, elements or tiles, or picks its tiling if the two
// personalities divide the work differently.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "graph/host_form.h"
#include "graph/op.h"
#include "runtime/runtime.h"

namespace samebytes::detail {

// For launches over elements: the groups per core of a CPU, equal shares that still balance when a core is late, and
// the work-items per group of a GPU.
inline constexpr std::int64_t kGroupsPerCore = 8, kGpuGroup = 128;

// A buffer of the node whose launches are recorded.
struct Operand {
  enum class Kind : std::uint8_t { src, dst, temp, none };
  Kind kind = Kind::none;
  int index = 0;
  std::int64_t offset = 0;  // elements: a launch may work on a part of a buffer; a call names each buffer once

  Operand from(std::int64_t elements) const { return {kind, index, offset + elements}; }
};
// What the planner asks a kernel to do to each value before storing it: + residual (dense, with the result's shape and
// dtype), then ReLU, ReLU6 (NaN passes both) or hard swish, then 0 unless gate (also dense) is above 0, which is the
// gradient of a ReLU. Only ops with takes_epilogue ever get one that is not empty, only ops with takes_gate one with a
// gate, and only ops with takes_activation one with a hard swish or a ReLU6.
struct Epilogue {
  Operand residual;  // none: adds nothing
  bool relu = false;
  Operand gate = {};  // none: keeps every value
  bool hard_swish = false;
  bool relu6 = false;
};
// A gradient that the planner asks the launch to compute beside the node's own results: both operands none if another
// node computes it. Only ops with makes_gradient() ever get one.
struct GradientBeside {
  Operand dy;                  // the upstream gradient
  Operand result;              // may overwrite the input that may_overwrite of the gradient's op names
  const Node* node = nullptr;  // the gradient; if it has several results, result_at(k) is the k-th
  Operand result_at(int k) const { return {result.kind, result.index + k}; }
};
// The k-th changing scalar of the node, as `real`, int or 64 bits.
struct DynamicReal {
  int index;
};
struct DynamicBits {
  int index;
};

struct KernelArgument {
  enum class Kind : std::uint8_t { array, i32, i64, real, structure, dynamic_real, dynamic_bits };
  Kind kind;
  Operand operand;  // array
  std::int64_t integer = 0;
  double real = 0;
  int scalar = 0;                         // dynamic_*
  std::vector<unsigned char> bytes = {};  // structure
};

// A struct of cl/shared: the kernel takes it by value, byte for byte.
template <class T>
concept KernelStruct = std::is_class_v<T> && std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T>;

// What a recorded call to a library or to the host may query while it runs.
class CallAccess {
 public:
  virtual ~CallAccess() = default;
  virtual Storage& storage(Operand operand) = 0;
  virtual std::int64_t offset(Operand operand) = 0;  // elements of the operand's dtype
  // At least `bytes` of workspace for the library, valid for this call only. All calls of a device share one, which is
  // kept for the next call and counted in the memory ledger as the library's.
  virtual Storage& workspace(std::size_t bytes) = 0;
};
using QueueCall = std::function<int(const cl::CommandQueue& queue,
                                    CallAccess& access)>;  // returns its count of launches
using HostCall = std::function<void(const std::function<void*(Operand)>& pointer)>;

struct LaunchRecord {
  std::string entry;        // of a .cl file or of `source`
  std::string source;       // generated or the user's text; empty: the embedded kernels
  std::string what;         // for errors: the op, or the user's name for it
  Dtype real = Dtype::f32;  // of the program; a 16-bit type is computed in f32
  std::vector<KernelArgument> arguments;
  Geometry geometry;
  std::int64_t worked_on = 0;                    // see KernelCall::works_on; 0: not said
  bool is_preparation = false;                   // see KernelCall::prepares
  QueueCall queue_call;                          // instead of a kernel
  HostCall host_call;                            // instead of a kernel
  bool waits = false;                            // ... and the evaluating thread waits for it
  std::function<void()> when_unfinished;         // see Launch::host_call
  std::vector<Operand> call_reads, call_writes;  // of a call
  std::shared_ptr<const HostForm> on_host;       // of a kernel that may be small
};

// Of launches over n elements, for the loops of SB_BEGIN and SB_END (cl/common/common.clh).
Geometry geometry_over_elements(const Device& device, std::int64_t n);

class KernelCall {
 public:
  explicit KernelCall(LaunchRecord& record, Device& device) : record_(record), device_(device) {}

  template <class... Args>
  KernelCall& args(const Args&... arguments) {
    (add(arguments), ...);
    return *this;
  }

  // Arguments that only the cpu kernel of the entry takes.
  template <class... Args>
  KernelCall& cpu_args(const Args&... arguments) {
    if (device_.personality() == Personality::cpu) (add(arguments), ...);
    return *this;
  }

  // One work-group per row. gpu: `group` work-items (default 64) share the row.
  KernelCall& over_rows(std::int64_t rows, int group = 64);
  // Elements split among work-groups. cpu: groups of one item, each takes a contiguous chunk [g * chunk, ...) with
  // chunk = multiple of 16 given by SB_CHUNK(n) of common.clh; gpu: one item per element.
  KernelCall& over_elements(std::int64_t n);
  // One work-item per unit, in groups of one.
  KernelCall& over_items(std::int64_t n);
  // Says that the launch works on so few elements, where its largest array has more.
  KernelCall& works_on(std::int64_t elements);
  // Says that this launch only prepares data for a later launch, which does the op's arithmetic: profiles show the op
  // there. Launches after the main one only sum up its partial results.
  KernelCall& prepares();
  // Provides the host form of this launch, in one piece or in units (HostForm). Requires: both produce the same bytes.
  KernelCall& on_host(const HostWork& work, HostFunction run);
  KernelCall& on_host(const HostWork& work, std::int64_t units, HostUnits run);
  // A grid of work-groups. cpu: local size 1; gpu: local size given (default 16 x 16).
  KernelCall& over_tiles(std::int64_t x, std::int64_t y = 1, std::int64_t z = 1, int local_x = 16, int local_y = 16);

 private:
  void add(Operand operand);
  void add(int v);
  void add(std::int64_t v);
  void add(double v);
  void add(DynamicReal v);
  void add(DynamicBits v);
  template <KernelStruct T>
  void add(const T& v) {
    add_structure(&v, sizeof v);
  }
  void add_structure(const void* bytes, std::size_t size);
  LaunchRecord& record_;
  Device& device_;
};

// Holds both personalities' values side by side: numbers, or a struct of functions that divide an op into groups.
template <class T>
struct PerPersonality {
  T cpu, gpu;
};

class Launch {
 public:
  Launch(const Node& node, Device& device, std::span<const Shape> dst_shapes, std::span<const Dtype> dst_dtypes);

  Operand src(int i) const { return {Operand::Kind::src, i}; }  // Operand none if the input is an empty handle
  // Operand none also if the node has fewer inputs.
  Operand optional_src(int i) const { return i < src_count() ? src(i) : none(); }
  Operand dst(int k = 0) const { return {Operand::Kind::dst, k}; }
  Operand temp(std::int64_t elements, Dtype dtype);  // lives only during this node's launches
  static Operand none() { return {}; }

  const Node& node() const { return node_; }
  int src_count() const { return static_cast<int>(node_.inputs.size()); }
  const Shape& src_shape(int i) const;
  Dtype src_dtype(int i) const;
  const Shape& dst_shape(int k = 0) const { return dst_shapes_[k]; }
  Dtype dst_dtype(int k = 0) const { return dst_dtypes_[k]; }
  Strides src_strides(int i) const;  // dense unless the op takes_strides(i)

  const Epilogue& epilogue() const { return epilogue_; }
  void set_epilogue(const Epilogue& epilogue) { epilogue_ = epilogue; }
  const GradientBeside& gradient() const { return gradient_; }
  void set_gradient(const GradientBeside& gradient) { gradient_ = gradient; }

  Device& device() const { return device_; }
  Personality personality() const { return device_.personality(); }
  // The value for this device's kernels.
  template <class T>
  const T& pick(const PerPersonality<T>& both) const {
    return personality() == Personality::cpu ? both.cpu : both.gpu;
  }
  int cores() const { return device_.info().cores; }
  // A #define of a .cl file for the vector width of the type that `real` is computed in (KernelLibrary::constant).
  std::int64_t constant(std::string_view stem, std::string_view name, Dtype real = Dtype::f32) const;

  // A number that divides the work for a class of shapes, chosen by the tuner or built in; the table is in
  // tunables.cpp.
  std::int64_t choice(std::string_view family, std::string_view shape_class, std::string_view name) const {
    return device_.tuning().choice(family, shape_class, name);
  }

  // A kernel of the .cl files, from the program whose `stored` arrays hold dtype (KernelLibrary::make_kernel).
  KernelCall kernel(std::string entry, Dtype dtype = Dtype::f32);
  KernelCall generated(std::string source, std::string entry, Dtype real, std::string what);
  void queue_call(std::string what, std::vector<Operand> reads, std::vector<Operand> writes, QueueCall fn);
  // The device's queue calls fn in order if it can, and no thread waits; with `waits`, the evaluating thread waits for
  // what was enqueued and calls fn itself, in the order of its calls. With it comes what to call where the run of the
  // plan ends by an error after fn was called: if others use the operands' bytes from then on, it makes them let go.
  void host_call(std::string what, std::vector<Operand> reads, std::vector<Operand> writes, HostCall fn,
                 bool waits = false, std::function<void()> when_unfinished = {});

  struct Temp {
    std::size_t bytes;
    Dtype dtype;
  };
  const std::vector<Temp>& temps() const { return temps_; }
  std::deque<LaunchRecord>& records() { return records_; }

 private:
  const Node& node_;
  Device& device_;
  Epilogue epilogue_;
  GradientBeside gradient_;
  std::span<const Shape> dst_shapes_;
  std::span<const Dtype> dst_dtypes_;
  std::vector<Temp> temps_;
  std::deque<LaunchRecord> records_;
};

// The program type of a floating dtype: f64 for f64, else f32.
inline Dtype real_of(Dtype dtype) { return dtype == Dtype::f64 ? Dtype::f64 : Dtype::f32; }

}  // namespace samebytes::detail

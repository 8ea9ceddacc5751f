// Kernels of cl/ once more as functions of the host, for launches that are smaller than the cost of a launch. They give
// the same bytes: the same operations in the same order, with the vectors of `width` lanes that the cpu personality
// has. host_pointwise_native.cpp and host_sums_native.cpp are compiled for several levels of instructions
// (ops/native.h) and without contraction; host_moves.h has those that move elements as bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "samebytes/dtype.h"

namespace samebytes::detail {

// Above these limits an op offers no host form.
constexpr std::int64_t kMostHostValues = 131072;  // of a pointwise kernel, or moved
constexpr std::int64_t kMostHostReduced = 16384;
constexpr std::int64_t kMostHostProducts = 65536;
constexpr std::int64_t kMostHostRow = 1048576;    // of one row times lines of a weight
constexpr double kMostHostConvolution = 1 << 24;  // multiply-adds

// One operation on the lanes of registers. Registers hold reals (r) or ints (i); truth is an int, 0 or 1.
struct HostInstruction {
  enum class Code : std::uint8_t {
    add,
    subtract,
    multiply,
    divide,
    negate,
    root,
    floor,
    ceil,
    trunc,
    round,         // to even
    multiply_add,  // r
    magnitude,     // |r|
    fmod,          // r, r: exact
    exp,           // r, float alone: the functions of cl/shared/functions.h, up to tan
    expm1,
    log,
    log1p,
    tanh,
    erf,
    gelu_slope,
    exp2,
    log2,
    log10,
    sinh,
    cosh,
    atanh,
    asin,
    acos,
    atan,
    atan2,
    sin,
    cos,
    tan,
    round_f16,  // r, float alone: to the nearest value of 16 bits
    round_bf16,
    equal,
    not_equal,
    less,
    less_equal,
    greater,
    greater_equal,  // r, r: i
    add_i,
    subtract_i,
    multiply_i,
    negate_i,
    low_byte,  // i
    equal_i,
    not_equal_i,
    less_i,
    less_equal_i,
    greater_i,
    greater_equal_i,
    select_less,
    select_less_equal,
    select_greater,
    select_greater_equal,  // r: c where a is so beside b, else d
    select,
    select_i,  // a != 0 ? b : c, a an int
    maximum,
    minimum,  // r, r: a where it is beyond b or NaN, else b
    clamp,    // r: b where a is below it, c where a is above it, else a; b and c are the same in all lanes
    sign,     // r: 1, -1, or 0
    to_real,
    to_int,
  };
  Code code = Code::add;
  int to = -1;
  int a = 0, b = 0, c = 0, d = 0;
  bool has_limit = false;  // of a select_*: b is the same in all lanes
};

// A fused pointwise kernel: for every element, inputs into registers, the instructions, registers into results. Inputs
// have strides along the merged axes `sizes`, results are dense.
struct HostPointwise {
  struct Input {
    Dtype dtype;
    std::vector<std::int64_t> strides;  // in elements
    int to;
  };
  struct Output {
    Dtype dtype;
    int from;
  };
  struct Constant {
    int to;
    bool is_real;
    double value;  // exact in the compute type
  };
  struct Parameter {
    int to;
    int scalar;
  };
  static constexpr int kMostRegisters = 192;
  static constexpr std::int64_t kLeastLanes = 64, kMostLanes = 512;

  bool is_double = false;  // the compute type, else float
  std::vector<std::int64_t> sizes;
  std::vector<Input> inputs;    // arrays 0 .. inputs - 1 of the launch
  std::vector<Output> outputs;  // the arrays after them
  std::vector<Constant> constants;
  std::vector<Parameter> parameters;
  std::vector<HostInstruction> code;
  int registers = 0;

  // Elements per instruction pass: as many as keep all registers in the first-level cache.
  std::int64_t lanes() const;
  std::int64_t rows() const;           // along the last axis
  std::int64_t rows_together() const;  // that a pass takes at once where they are short, else 1
  // Stretches of at most lanes() neighbours: those of the first row, then those of the next, or rows_together() rows.
  // Of a turned copy, blocks of kTurnedRows rows and at most kTurnedInner elements of each.
  std::int64_t units() const;
  static constexpr std::int64_t kTurnedRows = 16, kTurnedInner = 128;
  // Whether the array itself serves as the register: its elements have the register's type and are adjacent, over all
  // rows where a pass takes several, and no other result may lie over it.
  bool is_read_in_place(const Input& input) const;
  // Whether it moves the elements of one array into another of their type, and no more.
  bool is_copy() const;
  // The outer axis along which a copy reads neighbours, where it writes them along another one; -1 if there is none.
  int turned_axis() const;
  // Whether the one result can be written in place: the last instruction makes it, after everything was read.
  bool is_written_in_place() const;
  bool is_of_register(Dtype dtype) const {
    return dtype == Dtype::i32 || dtype == (is_double ? Dtype::f64 : Dtype::f32);
  }
  double passes() const;  // over the elements: instructions, and copies into registers and out of them
  double starts() const;  // of passes over the lanes of a unit, for all units
};
// Units of the kernel (HostPointwise::units) from `begin` to before `end`.
void host_pointwise(const HostPointwise& kernel, void* const* arrays, const double* scalars, std::int64_t begin,
                    std::int64_t end);

// reduce_rows with one part for each row: what as in cl/cpu/reduce.cl.
struct HostRows {
  int what = 0;
  std::int64_t rows = 0, columns = 0;
  std::int64_t rows_per_group = 1;
  double divisor = 1;
  int width = 16;
};
template <class T>
void host_reduce_rows(const HostRows& shape, const T* src, T* dst);

// reduce_columns with one part: src [outer, reduced, inner].
struct HostColumns {
  int what = 0;
  std::int64_t outer = 0, reduced = 0, inner = 0;
  std::int64_t fold = 1, tile = 0;
  double divisor = 1;
  int width = 16;
};
template <class T>
void host_reduce_columns(const HostColumns& shape, const T* src, T* dst);
constexpr std::int64_t kMostHostColumns = 2048;  // REDUCE_ACC of cl/cpu/reduce.cl

// reduce_i32, reduce_i64 and reduce_argmax: src [outer, reduced, inner].
template <class T>
void host_reduce_whole(int what, std::int64_t outer, std::int64_t reduced, std::int64_t inner, const T* src, T* dst);
template <class T>
void host_argmax(std::int64_t outer, std::int64_t reduced, std::int64_t inner, const T* src, std::int32_t* dst);

// fill_arange: start + i * step, fused where the kernel's is.
template <class T>
void host_arange(std::int64_t n, T start, T step, bool is_fused, T* dst);

// random_uniform and random_dropout: numbers of one stream, as random.cl's kernels take it. A unit is kUnit elements.
struct HostStream {
  static constexpr std::int64_t kUnit = 64;
  std::uint64_t seed = 0, counter = 0, first = 0;
};
template <class T>
void host_uniform(const HostStream& stream, std::int64_t n, int bits, T low, T span, T* dst, std::int64_t begin,
                  std::int64_t end);
template <class T>
void host_dropout(const HostStream& stream, std::int64_t n, std::uint32_t threshold, T scale, const T* src, T* dst,
                  std::int64_t begin, std::int64_t end);

// scan_parts of one part (sums, float, double or ints that wrap around) and scan_product: src and dst [outer, depth,
// inner].
struct HostScan {
  std::int64_t outer = 1, depth = 1, inner = 1;
  bool is_reversed = false, is_exclusive = false;  // of sums
};
template <class T>
void host_sums(const HostScan& shape, const T* src, T* dst);
template <class T>
void host_products(const HostScan& shape, const T* src, T* dst);

// gemm with one block of k and no split, and gemm_dot (a_col and b_row are 1): strides as in GemmProblem. Sums start at
// 0; then the old c, bias, residual and ReLU, ReLU6 or hard swish are applied, if requested.
struct HostProduct {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t a_row = 0, a_col = 0, b_row = 0, b_col = 0;
  std::int64_t outer = 1, inner = 1;
  std::int64_t a_outer = 0, a_inner = 0, b_outer = 0, b_inner = 0;
  bool accumulates = false, relu = false, hard_swish = false, relu6 = false;
  bool by_lanes = false;  // gemm_dot: a sum has `width` partial sums
  int width = 16;
};
// Products `begin` to before `end` of outer * inner.
template <class T>
void host_product(const HostProduct& shape, const T* a, const T* b, const T* bias, const T* residual, T* c,
                  std::int64_t begin, std::int64_t end);

// A kernel of cl/cpu compiled for the host (host_kernels_native.cpp).
struct HostArgument {
  enum class Kind : std::uint8_t { array, whole, real, structure, changing_real, changing_whole };
  static constexpr std::size_t kMostBytes = 96;
  Kind kind = Kind::array;  // arrays and changing scalars come with each run, in order
  std::int64_t whole = 0;
  double real = 0;
  alignas(8) unsigned char structure[kMostBytes] = {};
};
struct HostGroups {
  std::size_t count[3] = {1, 1, 1};
  std::int64_t total() const { return static_cast<std::int64_t>(count[0] * count[1] * count[2]); }
};
struct HostKernel {
  // Groups from `begin` to before `end`, counted in the order of their three indices, the first one fastest.
  void (*run)(const HostGroups& groups, const HostArgument* arguments, void* const* arrays, const double* scalars,
              std::int64_t begin, std::int64_t end);
  int width;        // of its vectors
  double passes;    // over the elements of its largest array, each as long as a sum of two
  double products;  // of a kernel that multiplies: how long its multiply-adds take beside those of host_product
};
// `run` is null if the host has no such kernel.
HostKernel host_kernel(std::string_view entry);

}  // namespace samebytes::detail

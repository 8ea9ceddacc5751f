// Over 400 lines because the walks over a group's elements share its arguments, loads, stores and expressions.
#include "plan/pointwise_kernel.h"

#include <algorithm>
#include <cstdlib>
#include <unordered_map>

#include "plan/expression.h"
#include "plan/pointwise_text.h"

namespace samebytes::detail {
namespace {

constexpr std::int64_t kInnerBlock = 4096;  // inner elements of one unit of work on a CPU
// The block size if an operand's neighbours along the inner axis lie kFarApart elements apart or more: all rows of one
// block, then the next block, so that the cache lines that one row reads are still cached for the next rows.
constexpr std::int64_t kFarBlock = 32, kFarApart = 16;
constexpr std::int64_t kTurnedBlock = 128;    // inner elements of a unit of turned squares
constexpr std::int64_t kUnitElements = 8192;  // short rows are combined until a unit has about this many
constexpr std::int64_t kRepeatedMost = 1024;  // columns of an operand that a group copies, to read it at any column
constexpr std::int64_t kRepeatedLeast = 512;  // elements that share repeated rows, where rows change with an outer axis
constexpr std::int64_t kExchangedBlock = 1024;  // elements of one unit that goes along the last axis but one
// Results of at least this size are stored past the caches: their lines need not be read first, and the next reader
// would not find them in the cache anyway. Measured on 2 cores of an EPYC with 32 MiB of cache: c = a + b of 32 and 64
// MiB gets 1.5 times faster, and b = c + 1 after it takes as long as before; at 4 MiB the latter would take 1.4 times
// longer (docs/decisions/bandwidth.md).
constexpr std::int64_t kStreamedElements = std::int64_t{8} << 20;

// What a work-item of a GPU reads before it computes, and its most elements. 16 bytes from each of 2 048 items keep the
// memory of a large GPU busy: on an H100, copies of f32 go from 2.4 to 2.97 TB/s, of bf16 from 1.4 to 2.9.
constexpr std::int64_t kBytesInFlight = 16, kMostOfAnItem = 8;

class Writer {
 public:
  Writer(std::span<const Node* const> members, std::span<const Node* const> outputs, const Device& device,
         std::int64_t elements = 0)
      : members_(members), outputs_(outputs), device_(device), elements_(elements) {}

  PointwiseKernel write() {
    for (const Node* member : members_) inside_.emplace(member, static_cast<int>(inside_.size()));
    for (const Node* member : members_) {
      if (member->dtype == Dtype::f64) kernel_.real = Dtype::f64;
      for (std::size_t i = 0; i < member->inputs.size(); ++i) {
        if (is_skipped(*member, static_cast<int>(i))) continue;
        const Node* input = member->inputs[i].node.get();
        if (input->dtype == Dtype::f64) kernel_.real = Dtype::f64;
        if (!inside_.count(input)) add_input(*input);
      }
      scalar_of_.emplace(member, kernel_.scalars.size());
      for (std::size_t s = 0; s < member->scalars.size(); ++s)
        kernel_.scalars.emplace_back(member, static_cast<int>(s));
    }
    kernel_.outputs.assign(outputs_.begin(), outputs_.end());
    merge_axes(elements_ > 0 ? Shape{elements_} : members_[0]->shape);
    write_walk();
    return std::move(kernel_);
  }

  // Requires: members is empty; a copy or a fill.
  PointwiseKernel write_plain(const Node* src, const Shape& shape, Dtype dtype) {
    plain_dtype_ = kernel_.plain = dtype;
    if (dtype == Dtype::f64) kernel_.real = Dtype::f64;
    if (src) add_input(*src);
    merge_axes(shape);
    write_walk();
    return std::move(kernel_);
  }

 private:
  static bool is_skipped(const Node& member, int input) { return member.op->traits().is_state(input); }

  int add_input(const Node& input) {
    const auto found = input_of_.find(&input);
    if (found != input_of_.end()) return found->second;
    const int index = static_cast<int>(kernel_.inputs.size());
    input_of_.emplace(&input, index);
    const Strides strides = input.is_view ? input.strides : dense_strides(input.shape);
    PointwiseInput entry{&input, {}};
    for (int axis = 0; axis < input.shape.rank(); ++axis)
      entry.strides.push_back(input.shape[axis] == 1 ? 0 : strides[axis]);
    kernel_.inputs.push_back(std::move(entry));
    return index;
  }

  void merge_axes(const Shape& shape) {
    for (PointwiseInput& input : kernel_.inputs)  // fewer axes than the result: broadcast over the first ones
      input.strides.insert(input.strides.begin(), static_cast<std::size_t>(shape.rank()) - input.strides.size(), 0);
    std::vector<std::int64_t> sizes;
    std::vector<std::vector<std::int64_t>> strides(kernel_.inputs.size());
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (shape[axis] == 1) continue;
      bool merges = !sizes.empty();
      for (std::size_t i = 0; i < kernel_.inputs.size() && merges; ++i)
        merges = strides[i].back() == kernel_.inputs[i].strides[axis] * shape[axis];
      if (merges)
        sizes.back() *= shape[axis];
      else
        sizes.push_back(shape[axis]);
      for (std::size_t i = 0; i < kernel_.inputs.size(); ++i) {
        const std::int64_t stride = kernel_.inputs[i].strides[axis];
        if (merges)
          strides[i].back() = stride;
        else
          strides[i].push_back(stride);
      }
    }
    if (sizes.empty()) {
      sizes.push_back(1);
      for (auto& s : strides) s.push_back(0);
    }
    kernel_.sizes = sizes;
    for (std::size_t i = 0; i < kernel_.inputs.size(); ++i) kernel_.inputs[i].strides = strides[i];
  }

  bool on_cpu() const { return device_.personality() == Personality::cpu; }
  int axes() const { return static_cast<int>(kernel_.sizes.size()); }

  void choose_walk() {
    repeats_ = repeats_rows();
    exchanged_ = !repeats_ && is_better_exchanged();
    turned_ = exchanged_ ? -1 : turned_axis();
  }
  void write_walk() {
    choose_walk();
    if (exchanged_) exchange_last_axes();
    geometry();
    text();
    if (exchanged_) exchange_last_axes();  // others see the axes as the results have them
  }
  void exchange_last_axes() {
    std::swap(kernel_.sizes[axes() - 2], kernel_.sizes[axes() - 1]);
    for (PointwiseInput& input : kernel_.inputs) std::swap(input.strides[axes() - 2], input.strides[axes() - 1]);
  }

  // Whether each operand is dense [rows, inner], one repeated row [inner], or one value, or the same with an axis
  // before them that changes row and value. A cpu kernel then treats the elements as a single row (one for each index
  // of the axis before), whatever their columns are, and cycles through the repeated rows.
  bool repeats_rows() const {
    if (!on_cpu() || (axes() != 2 && axes() != 3)) return false;
    const std::int64_t inner = kernel_.sizes.back(), rows = kernel_.sizes[axes() - 2];
    if (axes() == 3 && inner * rows < kRepeatedLeast) return false;
    std::int64_t repeated = 0;
    for (const PointwiseInput& input : kernel_.inputs) {
      const std::int64_t down = input.strides[axes() - 2], across = input.strides.back();
      if (is_repeated(input))
        ++repeated;
      else if (!(down == inner && across == 1 && (axes() == 2 || input.strides[0] == inner * rows)) &&
               !(down == 0 && across == 0))
        return false;
    }
    return repeated > 0 && (is_whole() || inner * repeated <= kRepeatedMost);
  }
  bool is_repeated(const PointwiseInput& input) const {
    return input.strides[axes() - 2] == 0 && input.strides.back() == 1;
  }
  // Whether rows are much shorter than a vector, and an operand has neighbours down the rows: planes whose elements the
  // result has side by side, one value for each short row. The kernel then goes down in vectors and spreads its stores.
  bool is_better_exchanged() const {
    if (!on_cpu() || axes() < 2) return false;
    const int width = device_.vector_width(kernel_.real);
    return kernel_.sizes.back() * 2 <= width && kernel_.sizes[axes() - 2] >= width &&
           std::any_of(kernel_.inputs.begin(), kernel_.inputs.end(),
                       [this](const PointwiseInput& input) { return input.strides[axes() - 2] == 1; });
  }
  // Whether rows of `inner` elements consist of whole vectors.
  bool is_whole() const { return kernel_.sizes.back() % device_.vector_width(kernel_.real) == 0; }

  bool is_copied(std::size_t input) const { return is_repeated(kernel_.inputs[input]) && !is_whole(); }

  // long arguments: inner, rows, blocks, [size of outer axes 1..], [strides of each input that is not plain]
  void geometry() {
    const std::int64_t inner = kernel_.sizes.back();
    std::int64_t rows = 1;
    for (int axis = 0; axis + 1 < axes(); ++axis) rows *= kernel_.sizes[axis];
    const std::int64_t blocks = (inner + block() - 1) / block();
    kernel_.numbers = {inner, rows, blocks};
    for (int axis = 1; axis + 1 < axes(); ++axis) kernel_.numbers.push_back(kernel_.sizes[axis]);
    if (axes() > 1)
      for (const PointwiseInput& input : kernel_.inputs)
        for (int axis = 0; axis + 1 < axes(); ++axis) kernel_.numbers.push_back(input.strides[axis]);
    for (const PointwiseInput& input : kernel_.inputs)
      if (is_gathered(input)) kernel_.numbers.push_back(input.strides.back());
    if (on_cpu()) {
      const std::int64_t elements = inner * rows;
      const std::int64_t most = static_cast<std::int64_t>(device_.info().cores) * kGroupsPerCore;
      const std::int64_t outer = axes() == 3 ? kernel_.sizes[0] : 1;
      const std::int64_t units = repeats_       ? outer * ((elements / outer + kInnerBlock - 1) / kInnerBlock)
                                 : turned_ >= 0 ? rows / turned_size() * turned_tiles() * blocks
                                                : rows * blocks;
      const std::int64_t groups = std::min(units, std::clamp<std::int64_t>(elements / kUnitElements, 1, most));
      kernel_.geometry.groups[0] = static_cast<std::size_t>(groups);
    } else {
      kernel_.geometry.local[0] = kGpuGroup;
      kernel_.geometry.groups[0] =
          static_cast<std::size_t>((inner * rows + kGpuGroup * each() - 1) / (kGpuGroup * each()));
    }
  }

  // Whether a unit is a block of columns of a row, with units ordered down the rows.
  bool goes_down() const { return exchanged_ || is_down_far(); }
  bool is_down_far() const {
    return on_cpu() && !repeats_ && !exchanged_ && turned_ < 0 && axes() > 1 &&
           std::any_of(kernel_.inputs.begin(), kernel_.inputs.end(),
                       [](const PointwiseInput& input) { return std::abs(input.strides.back()) >= kFarApart; });
  }
  std::int64_t block() const {
    return exchanged_ ? kExchangedBlock : turned_ >= 0 ? kTurnedBlock : is_down_far() ? kFarBlock : kInnerBlock;
  }
  // Of exchanged axes: the elements between neighbours of the result, the size of the axis it has last.
  std::string apart() const { return axes() > 2 ? "n" + std::to_string(axes() - 2) : "rows"; }

  // The outer axis along which the elements of all far inputs are neighbours, or -1. A cpu kernel then reads squares of
  // vectors along it and transposes them, so that each cache line is read once, as a whole.
  int turned_axis() const {
    if (!on_cpu() || repeats_ || kernel_.real != Dtype::f32) return -1;
    const std::int64_t width = device_.vector_width(Dtype::f32);
    if (width < 2 || kernel_.sizes.back() < width) return -1;
    int axis = -1;
    for (const PointwiseInput& input : kernel_.inputs) {
      if (!is_far(input)) continue;
      int found = -1;
      for (int k = 0; k + 1 < axes(); ++k)
        if (input.strides[k] == 1 && kernel_.sizes[k] >= width) found = k;
      if (found < 0 || input.node->dtype != Dtype::f32 || (axis >= 0 && found != axis)) return -1;
      axis = found;
    }
    return axis;
  }
  static bool is_far(const PointwiseInput& input) { return std::abs(input.strides.back()) >= kFarApart; }
  std::int64_t turned_size() const { return kernel_.sizes[turned_]; }
  std::int64_t turned_tiles() const {
    const std::int64_t width = device_.vector_width(Dtype::f32);
    return (turned_size() + width - 1) / width;
  }

  bool is_gathered(const PointwiseInput& input) const { return input.strides.back() != 0 && input.strides.back() != 1; }

  void text() {
    std::string t = "__kernel ";
    if (on_cpu()) t += "__attribute__((reqd_work_group_size(1, 1, 1))) ";
    t += "void @NAME@(";
    for (std::size_t i = 0; i < kernel_.inputs.size(); ++i)
      t += "ARRAY_INPLACE(const " + storage_type(kernel_.inputs[i].node->dtype) + ", x" + std::to_string(i) + "), ";
    const std::size_t results = std::max<std::size_t>(1, kernel_.outputs.size());
    for (std::size_t k = 0; k < results; ++k)
      t += "ARRAY_INPLACE(" + storage_type(output_dtype(k)) + ", y" + std::to_string(k) + "), ";
    t += "const long inner, const long rows, const long blocks";
    for (int axis = 1; axis + 1 < axes(); ++axis) t += ", const long n" + std::to_string(axis);
    if (axes() > 1)
      for (std::size_t i = 0; i < kernel_.inputs.size(); ++i)
        for (int axis = 0; axis + 1 < axes(); ++axis)
          t += ", const long t" + std::to_string(i) + "_" + std::to_string(axis);
    for (std::size_t i = 0; i < kernel_.inputs.size(); ++i)
      if (is_gathered(kernel_.inputs[i])) t += ", const long u" + std::to_string(i);
    for (std::size_t s = 0; s < kernel_.scalars.size(); ++s) t += ", const real s" + std::to_string(s);
    t += ") {\n";
    if (on_cpu()) t += "  SB_TOUCH_CONSTANTS;\n";
    for (std::size_t i = 0; i < kernel_.inputs.size(); ++i) t += "  START(x" + std::to_string(i) + ");\n";
    for (std::size_t k = 0; k < results; ++k) t += "  START(y" + std::to_string(k) + ");\n";
    for (std::size_t k = 0; k < results; ++k) {
      if (!is_streamed(k)) continue;
      const std::string place = "(ulong)y" + std::to_string(k);
      t += "  const bool fresh" + std::to_string(k) + " = (" + place + " & (sizeof(vreal) - 1)) == 0";
      for (std::size_t i = 0; i < kernel_.inputs.size(); ++i) t += " && (ulong)x" + std::to_string(i) + " != " + place;
      t += ";\n";
    }
    if (repeats_) {
      t += repeating_loop();
    } else if (turned_ >= 0) {
      t += turned_loop();
    } else if (on_cpu()) {
      t += "  const long units = rows * blocks, share = (units + get_num_groups(0) - 1) / get_num_groups(0);\n"
           "  const long first = get_group_id(0) * share, last = min(units, first + share);\n"
           "  for (long unit = first; unit < last; ++unit) {\n";
      t += goes_down() ? "    const long block = unit / rows, row = unit - block * rows, begin = block * "
                       : "    const long row = blocks == 1 ? unit : unit / blocks, begin = (unit - row * blocks) * ";
      t += std::to_string(block()) + ";\n    const long end = min(inner, begin + " + std::to_string(block()) + ");\n";
      t += bases();
      t += "    long i = begin;\n    for (; i + VW <= end; i += VW) {\n" + body(true) + "    }\n";
      t += "    if (i < end) {\n      const int lanes = (int)(end - i);\n" + body(false) + "    }\n  }\n}\n";
    } else {
      t += gpu_elements();
    }
    kernel_.body = std::move(t);
  }

  // Elements of a work-item of a GPU: as many as bring kBytesInFlight from memory before the first is used. By dtypes
  // alone, as the text is.
  std::int64_t each() const {
    std::int64_t bytes = 0;
    for (const PointwiseInput& input : kernel_.inputs) bytes += static_cast<std::int64_t>(bytes_of(input.node->dtype));
    return std::clamp<std::int64_t>(kBytesInFlight / std::max<std::int64_t>(bytes, 2), 1, kMostOfAnItem);
  }

  // Neighbouring work-items read neighbours: an item's elements are a group apart. It reads them all first.
  std::string gpu_elements() const {
    const std::string count = std::to_string(each()), group = std::to_string(kGpuGroup);
    std::string t =
        "  const long n = rows * inner, mine = get_group_id(0) * (" + count + " * " + group + ") + get_local_id(0);\n";
    for (std::size_t i = 0; i < kernel_.inputs.size(); ++i)
      t += "  " + loaded_type(i) + " l" + std::to_string(i) + "[" + count + "];\n";
    const std::string every = "#pragma unroll\n  for (int e = 0; e < " + count + "; ++e) {\n";
    const std::string at = " = mine + e * " + group + ";\n";
    if (!kernel_.inputs.empty()) {
      t += every + "    const long at" + at + "    if (at >= n) continue;\n";
      t += axes() > 1 ? "    const long row = at / inner, i = at - row * inner;\n" : "    const long i = at;\n";
      t += input_bases();
      for (std::size_t i = 0; i < kernel_.inputs.size(); ++i)
        t += "    l" + std::to_string(i) + "[e] = " + load(i, true) + ";\n";
      t += "  }\n";
    }
    t += every + "    const long i" + at + "    if (i >= n) continue;\n";
    for (std::size_t k = 0; k < std::max<std::size_t>(1, kernel_.outputs.size()); ++k)
      t += "    __global " + storage_type(output_dtype(k)) + " *q" + std::to_string(k) + " = y" + std::to_string(k) +
           ";\n";
    for (std::size_t i = 0; i < kernel_.inputs.size(); ++i)
      t += "    const " + loaded_type(i) + " a" + std::to_string(i) + " = l" + std::to_string(i) + "[e];\n";
    return t + results(true) + "  }\n}\n";
  }

  // A unit is a block of the elements that share repeated rows. Copies repeated rows that are not whole vectors until
  // they fill a vector, plus one more vector.
  std::string repeating_loop() const {
    const std::string block = std::to_string(kInnerBlock);
    const bool has_outer = axes() == 3;
    std::string t = std::string("  const long n = ") + (has_outer ? "n1" : "rows") + " * inner, parts = (n + " + block +
                    " - 1) / " + block + ", units = parts" + (has_outer ? " * (rows / n1)" : "") +
                    ";\n  const long share = (units + get_num_groups(0) - 1) / get_num_groups(0);\n"
                    "  const long first = get_group_id(0) * share, last = min(units, first + share);\n";
    t += is_whole() ? "  const long span = inner;\n" : "  const long span = (VW + inner - 1) / inner * inner;\n";
    for (std::size_t i = 0; i < kernel_.inputs.size(); ++i) {
      if (!is_copied(i)) continue;
      t += "  " + scalar_type(vector_kind(kernel_.inputs[i].node->dtype)) + " p" + std::to_string(i) + "[" +
           std::to_string(kRepeatedMost) + " + 2 * VW];\n";
    }
    for (std::size_t k = 0; k < std::max<std::size_t>(1, kernel_.outputs.size()); ++k)
      t += "  __global " + storage_type(output_dtype(k)) + " *q" + std::to_string(k) + " = y" + std::to_string(k) +
           ";\n";
    t += "  for (long unit = first; unit < last; ++unit) {\n    const long before = unit / parts, begin = before * n + "
         "(unit - before * parts) * " +
         block + ", end = min(before * n + n, begin + " + block + ");\n";
    for (std::size_t i = 0; i < kernel_.inputs.size(); ++i) {
      const std::string name = std::to_string(i), type = storage_type(kernel_.inputs[i].node->dtype);
      const bool moves = has_outer && kernel_.inputs[i].strides[1] == 0;
      const std::string start = "x" + name + (moves ? " + before * t" + name + "_0" : "");
      if (is_copied(i))
        t += "    if (unit == first || unit == before * parts)\n      for (long k = 0, c = 0; k < span + VW; ++k) {\n"
             "        p" +
             name + "[k] = sb_get_" + suffix(kernel_.inputs[i].node->dtype) + "(" + start +
             ", c);\n        c = c + 1 == inner ? 0 : c + 1;\n      }\n";
      else
        t += "    __global const " + type + " *p" + name + " = " + start + ";\n";
    }
    t += "    long i = begin, j = (begin - before * n) % span;\n    for (; i + VW <= end; i += VW) {\n" + body(true) +
         "      j += VW;\n      j = j >= span ? j - span : j;\n    }\n";
    if (!is_whole()) t += "    if (i < end) {\n      const int lanes = (int)(end - i);\n" + body(false) + "    }\n";
    return t + "  }\n}\n";
  }

  // Units are squares of VW rows, which are neighbours along the turned axis, and up to kTurnedBlock inner elements.
  std::string turned_loop() const {
    const std::string block = std::to_string(kTurnedBlock), axis = std::to_string(turned_);
    const std::size_t results = std::max<std::size_t>(1, kernel_.outputs.size());
    const auto size = [](int k) { return "n" + std::to_string(k); };
    std::string above = "rows",
                down = "1";  // rows of the turned axis if it is the first one; from one to its neighbour
    for (int k = 1; k + 1 < axes(); ++k) above += " / " + size(k);
    for (int k = turned_ + 1; k + 1 < axes(); ++k) down += " * " + size(k);
    std::string t = "  const long turned = " + (turned_ == 0 ? above : size(turned_)) +
                    ", tiles = (turned + VW - 1) / VW, down = " + down +
                    ";\n  const long units = rows / turned * tiles * blocks, share = (units + get_num_groups(0) - 1) / "
                    "get_num_groups(0);\n"
                    "  const long first = get_group_id(0) * share, last = min(units, first + share);\n"
                    "  for (long unit = first; unit < last; ++unit) {\n"
                    "    const long over = unit / tiles, i" +
                    axis + " = (unit - over * tiles) * VW, begin = over % blocks * " + block +
                    ", end = min(inner, begin + " + block +
                    ");\n"
                    "    const int height = (int)min((long)VW, turned - i" +
                    axis +
                    ");\n"
                    "    long rest = over / blocks;\n";
    for (int k = axes() - 2; k >= 0; --k)
      if (k != turned_ && k > 0)
        t += "    const long i" + std::to_string(k) + " = rest % " + size(k) + "; rest /= " + size(k) + ";\n";
    if (turned_ != 0) t += "    const long i0 = rest;\n";
    std::string row = "i0";
    for (int k = 1; k + 1 < axes(); ++k) row = "(" + row + ") * " + size(k) + " + i" + std::to_string(k);
    t += "    const long row = " + row + ";\n";
    for (std::size_t i = 0; i < kernel_.inputs.size(); ++i) {
      const std::string name = std::to_string(i);
      t += "    __global const " + storage_type(kernel_.inputs[i].node->dtype) + " *g" + name + " = x" + name;
      for (int k = 0; k + 1 < axes(); ++k) t += " + i" + std::to_string(k) + " * t" + name + "_" + std::to_string(k);
      t += ";\n";
    }
    std::string places;
    for (std::size_t i = 0; i < kernel_.inputs.size(); ++i) {
      const std::string name = std::to_string(i);
      places += "      __global const " + storage_type(kernel_.inputs[i].node->dtype) + " *p" + name + " = g" + name +
                " + j * t" + name + "_" + axis + ";\n";
    }
    for (std::size_t k = 0; k < results; ++k)
      places += "      __global " + storage_type(output_dtype(k)) + " *q" + std::to_string(k) + " = y" +
                std::to_string(k) + " + (row + j * down) * inner;\n";
    t += "    long from = begin;\n    for (; height == VW && from + VW <= end; from += VW) {\n";
    for (std::size_t i = 0; i < kernel_.inputs.size(); ++i) {
      if (!is_far(kernel_.inputs[i])) continue;
      const std::string name = std::to_string(i), square = "r" + name;
      t += "      vreal " + square + "[VW];\n#pragma unroll\n      for (int k = 0; k < VW; ++k) " + square +
           "[k] = VLOAD(g" + name + " + (from + k) * u" + name + ");\n      sb_transpose(" + square + ");\n";
    }
    is_in_square_ = true;
    t += "#pragma unroll\n      for (int j = 0; j < VW; ++j) {\n      const long i = from;\n" + places + body(true) +
         "      }\n    }\n";
    is_in_square_ = false;
    t += "    for (long j = 0; j < height && from < end; ++j) {\n" + places +
         "      long i = from;\n      for (; i + VW <= end; i += VW) {\n" + body(true) +
         "      }\n      if (i < end) {\n      const int lanes = (int)(end - i);\n" + body(false) +
         "      }\n    }\n  }\n";
    return t + "}\n";
  }

  // Whether result k is large, and its vectors are aligned if its first element is.
  bool is_streamed(std::size_t k) const {
    return on_cpu() && kernel_.real == Dtype::f32 && output_dtype(k) == Dtype::f32 &&
           kernel_.numbers[0] * kernel_.numbers[1] >= kStreamedElements && !exchanged_ &&
           ((repeats_ && axes() == 2) || axes() == 1 || is_whole());
  }

  // The start of each array's current row.
  std::string bases() const {
    std::string t = input_bases();
    const std::size_t results = std::max<std::size_t>(1, kernel_.outputs.size());
    for (std::size_t k = 0; k < results; ++k)
      t += "    __global " + storage_type(output_dtype(k)) + " *q" + std::to_string(k) + " = y" + std::to_string(k) +
           (exchanged_ ? " + row / " + apart() + " * " + apart() + " * inner + row % " + apart() : " + row * inner") +
           ";\n";
    return t;
  }
  std::string input_bases() const {
    std::string t;
    std::vector<std::string> index(static_cast<std::size_t>(axes()));
    if (axes() > 1) {
      t += "    long rest = row;\n";
      for (int axis = axes() - 2; axis >= 1; --axis) {
        const std::string a = std::to_string(axis);
        t += "    const long i" + a + " = rest % n" + a + "; rest /= n" + a + ";\n";
        index[axis] = "i" + a;
      }
      index[0] = "rest";
    }
    for (std::size_t i = 0; i < kernel_.inputs.size(); ++i) {
      const std::string name = std::to_string(i);
      t += "    __global const " + storage_type(kernel_.inputs[i].node->dtype) + " *p" + name + " = x" + name;
      for (int axis = 0; axis + 1 < axes(); ++axis)
        t += " + " + index[axis] + " * t" + name + "_" + std::to_string(axis);
      t += ";\n";
    }
    return t;
  }

  Dtype output_dtype(std::size_t k) const { return kernel_.outputs.empty() ? plain_dtype_ : kernel_.outputs[k]->dtype; }

  std::string load(std::size_t i, bool full) const {
    const PointwiseInput& input = kernel_.inputs[i];
    const std::string name = std::to_string(i), type = suffix(input.node->dtype);
    if (repeats_ && is_copied(i)) return "SB_VLOAD(p" + name + " + j)";
    if (repeats_ && is_repeated(input)) return "sb_load_" + type + "(p" + name + " + j)";
    if (is_in_square_ && is_far(input)) return "r" + name + "[j]";
    if (input.strides.back() == 0) return "sb_one_" + type + "(p" + name + ")";
    if (full && input.strides.back() == -1) return "sb_back_" + type + "(p" + name + " - i)";
    if (is_gathered(input))
      return "sb_part_" + type + "(p" + name + " + i * u" + name + ", u" + name + ", " + (full ? "VW" : "lanes") + ")";
    return full ? "sb_load_" + type + "(p" + name + " + i)" : "sb_part_" + type + "(p" + name + " + i, 1, lanes)";
  }

  std::string store(std::size_t k, const std::string& value, bool full) const {
    const std::string type = suffix(output_dtype(k)), to = "(" + value + ", q" + std::to_string(k) + " + i";
    if (exchanged_)
      return "      sb_spread_" + type + to + " * " + apart() + ", " + apart() + ", " + (full ? "VW" : "lanes") +
             ");\n";
    if (full && is_streamed(k)) return "      sb_stream_f32" + to + ", fresh" + std::to_string(k) + ");\n";
    return full ? "      sb_store_" + type + to + ");\n" : "      sb_rest_" + type + to + ", lanes);\n";
  }

  std::string loaded_type(std::size_t i) const { return vector_type(vector_kind(kernel_.inputs[i].node->dtype)); }

  std::string body(bool full) const {
    std::string t;
    for (std::size_t i = 0; i < kernel_.inputs.size(); ++i)
      t += "      const " + loaded_type(i) + " a" + std::to_string(i) + " = " + load(i, full) + ";\n";
    return t + results(full);
  }
  // The members' values from the inputs' a0, a1, ..., and their stores.
  std::string results(bool full) const {
    std::string t;
    if (members_.empty()) return t + store(0, kernel_.inputs.empty() ? zero(vector_kind(plain_dtype_)) : "a0", full);
    for (const Node* member : members_) t += member_text(*member);
    for (std::size_t k = 0; k < kernel_.outputs.size(); ++k)
      t += store(k, "v" + std::to_string(inside_.at(kernel_.outputs[k])), full);
    return t;
  }

  static std::string zero(VectorKind kind) { return "(" + vector_type(kind) + ")(0)"; }
  // Of whole numbers, which wrap around: the compiler must not conclude that a + 1 is above a.
  static std::string wrapped(VectorKind kind, const std::string& a, const std::string& sign, const std::string& b) {
    return (kind == VectorKind::longs ? "SB_WRAPPED_L(" : "SB_WRAPPED_I(") + a + ", " + sign + ", " + b + ")";
  }

  std::string operand(const Node& member, std::size_t i, VectorKind kind) const {
    const Node* input = member.inputs[i].node.get();
    const auto inside = inside_.find(input);
    const std::string value =
        inside != inside_.end() ? "v" + std::to_string(inside->second) : "a" + std::to_string(input_of_.at(input));
    return converted(value, vector_kind(input->dtype), kind);
  }

  // The element's number in a flat outside operand, counted from its storage's first element: the same whether the
  // whole group or a part of it is launched.
  std::string place_in(const Node& input) const {
    return "SB_PLACE(x" + std::to_string(input_of_.at(&input)) + "_offset + i)";
  }

  // The expression in the vectors of the kernel.
  std::string printed(const Expression& at, const Node& member) const {
    const VectorKind kind = computed_kind(member);
    const auto part = [&](std::size_t i) { return printed(at.parts[i], member); };
    switch (at.kind) {
      case Expression::Kind::operand: return operand(member, at.index, kind);
      case Expression::Kind::scalar: return "s" + std::to_string(scalar_of_.at(&member) + at.index);
      case Expression::Kind::place: return place_in(*member.inputs[at.index].node);
      case Expression::Kind::number: return "REAL_C(" + at.word + ")";
      case Expression::Kind::whole: return at.word;
      case Expression::Kind::zero: return zero(kind);
      case Expression::Kind::cast: return "(" + vector_type(kind) + ")(" + part(0) + ")";
      case Expression::Kind::negate:
        return kind == VectorKind::reals ? "(-" + part(0) + ")" : wrapped(kind, zero(kind), "-", part(0));
      case Expression::Kind::binary:
        if (kind != VectorKind::reals && (at.word == "+" || at.word == "-" || at.word == "*"))
          return wrapped(kind, part(0), at.word, part(1));
        return "(" + part(0) + " " + at.word + " " + part(1) + ")";
      case Expression::Kind::call: break;
    }
    std::string t = at.is_call("SB_TRUTH") ? truth(kind) : at.word;
    for (std::size_t i = 0; i < at.parts.size(); ++i) t += (i == 0 ? "(" : ", ") + part(i);
    return t + ")";
  }

  // Of a comparison, 0 or 1 in vectors of a kind.
  static std::string truth(VectorKind kind) {
    return kind == VectorKind::reals ? "SB_TRUTH_R" : kind == VectorKind::longs ? "SB_TRUTH_L" : "SB_TRUTH_I";
  }

  std::string member_text(const Node& member) const {
    const std::string name = "v" + std::to_string(inside_.at(&member));
    const VectorKind kind = computed_kind(member), result = vector_kind(member.dtype);
    const Expression* const formula = member.op->traits().updates_cell ? nullptr : &expression_of(*member.op);
    const bool is_truth = formula != nullptr && formula->is_call("SB_TRUTH");
    std::string expression =
        formula != nullptr ? printed(*formula, member) : operand(member, 1, kind);  // the value itself
    if (member.dtype == Dtype::bool_ && kind == VectorKind::reals && is_truth) {
      expression = "SB_TRUTH_OF_REALS(" + printed(formula->parts[0], member) + ")";
    } else if (member.dtype == Dtype::bool_) {
      expression = truth(kind) + "((" + expression + ") != (" + vector_type(kind) + ")(0))";
      expression = converted(expression, kind, VectorKind::ints);
    } else {
      expression = converted(expression, kind, result);
      if (member.dtype == Dtype::u8) expression = "((" + expression + ") & 255)";
      if (member.dtype == Dtype::f16) expression = "sb_round_f16(" + expression + ")";
      if (member.dtype == Dtype::bf16) expression = "sb_round_bf16(" + expression + ")";
    }
    return "      const " + vector_type(result) + " " + name + " = " + expression + ";\n";
  }

  std::span<const Node* const> members_;
  std::span<const Node* const> outputs_;
  const Device& device_;
  const std::int64_t elements_;  // 0: the members' shape decides
  PointwiseKernel kernel_;
  Dtype plain_dtype_ = Dtype::f32;
  bool repeats_ = false;
  bool exchanged_ = false;  // the last two axes are exchanged, and results are stored `apart()` elements apart
  int turned_ = -1;         // see turned_axis()
  mutable bool is_in_square_ = false;                       // of turned_loop(): far inputs are in registers
  std::unordered_map<const Node*, int> inside_;             // members, by running number
  std::unordered_map<const Node*, int> input_of_;           // operands from outside
  std::unordered_map<const Node*, std::size_t> scalar_of_;  // the first scalar of a member
};

}  // namespace

PointwiseKernel write_pointwise_kernel(std::span<const Node* const> members, std::span<const Node* const> outputs,
                                       const Device& device, std::int64_t elements) {
  return Writer(members, outputs, device, elements).write();
}

PointwiseKernel write_copy_kernel(const Node& src, const Device& device) {
  return Writer({}, {}, device).write_plain(&src, src.shape, src.dtype);
}

PointwiseKernel write_zero_kernel(std::int64_t n, Dtype dtype, const Device& device) {
  return Writer({}, {}, device).write_plain(nullptr, Shape{n}, dtype);
}

}  // namespace samebytes::detail

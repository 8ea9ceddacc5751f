// Tensors of other libraries over the very bytes of an Array, and an Array over theirs, by DLPack: NumPy, PyTorch, JAX
// and others speak it. Header only; needs <dlpack/dlpack.h> (Debian's libdlpack-dev).
//   DLManagedTensor* tensor = interop::to_dlpack(weights).release();   // the consumer calls its deleter
//   Array features = interop::from_dlpack(interop::DlpackTensor(tensor));   // the deleter runs with the last use
// Nothing is copied where the device works on the host's memory. Strides are kept both ways: transposes, slices and
// broadcasts need no dense copy. Tensors are in the host's memory (kDLCPU).
#pragma once

#include <dlpack/dlpack.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/error.h"
#include "samebytes/interop/strided.h"

namespace samebytes::interop {

struct DlpackDeleter {
  void operator()(DLManagedTensor* tensor) const {
    if (tensor != nullptr && tensor->deleter != nullptr) tensor->deleter(tensor);
  }
};
using DlpackTensor = std::unique_ptr<DLManagedTensor, DlpackDeleter>;

// DLPack's code of bools since 0.8; older versions of its header have no name for it.
inline constexpr std::uint8_t kDlpackBool = 6;

inline DLDataType dlpack_type(Dtype dtype) {
  const auto bits = static_cast<std::uint8_t>(8 * bytes_of(dtype));
  switch (dtype) {
    case Dtype::f32:
    case Dtype::f64:
    case Dtype::f16: return {kDLFloat, bits, 1};
    case Dtype::bf16: return {kDLBfloat, bits, 1};
    case Dtype::i32:
    case Dtype::i64: return {kDLInt, bits, 1};
    case Dtype::u8: return {kDLUInt, bits, 1};
    case Dtype::bool_: return {kDlpackBool, bits, 1};
  }
  throw ArgumentError("dlpack: an element type without a code");
}

// The element type that has these bytes; empty where there is none.
inline std::optional<Dtype> dtype_of_dlpack(const DLDataType& type) {
  for (const Dtype dtype :
       {Dtype::f32, Dtype::f64, Dtype::f16, Dtype::bf16, Dtype::i32, Dtype::i64, Dtype::u8, Dtype::bool_}) {
    const DLDataType known = dlpack_type(dtype);
    if (known.code == type.code && known.bits == type.bits && type.lanes == 1) return dtype;
  }
  return {};
}

struct DlpackOptions {
  // The consumer may write, as through mutable_host(); else it must only read, which DLPack 0 cannot say for us.
  bool writable = false;
};

// What an exported tensor keeps alive. Not for users.
struct ExportedArray {
  Array array;
  StridedView view;
  std::vector<std::int64_t> sizes, strides;
  DLManagedTensor tensor{};

  static void release(DLManagedTensor* tensor) { delete static_cast<ExportedArray*>(tensor->manager_ctx); }
};

// Evaluates, waits for the last writer and borrows the bytes until the tensor's deleter is called: meanwhile a launch
// that would write them (with `writable`, any that uses them) throws ArgumentError, as with a HostView. The tensor
// may outlive every handle. Shape and strides are the array's. Throws as Array::host and Array::mutable_host do.
inline DlpackTensor to_dlpack(const Array& array, const DlpackOptions& options = {},
                              const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  StridedView view(array, options.writable ? HostAccess::write : HostAccess::read, file, line);
  std::vector<std::int64_t> strides = view.strides();
  auto made = std::make_unique<ExportedArray>(
      ExportedArray{array, std::move(view), {array.shape().begin(), array.shape().end()}, std::move(strides)});
  DLTensor& tensor = made->tensor.dl_tensor;
  tensor.data = made->view.data();
  tensor.device = {kDLCPU, 0};
  tensor.ndim = array.shape().rank();
  tensor.dtype = dlpack_type(array.dtype());
  tensor.shape = made->sizes.data();
  tensor.strides = made->strides.data();
  made->tensor.manager_ctx = made.get();
  made->tensor.deleter = &ExportedArray::release;
  return DlpackTensor(&made.release()->tensor);
}

// An array over the tensor's bytes; the deleter runs once nothing uses them any more, also if this throws. `verdict`
// receives whether the bytes were adopted or copied, and why. Throws ArgumentError for a tensor that is not in the
// host's memory, for an element type that an Array does not have (16-bit integers among them), for bytes that the
// engine holds already, of an earlier tensor for example, and for a negative size.
inline Array from_dlpack(DlpackTensor tensor, Adoption* verdict = nullptr) {
  if (tensor == nullptr) throw ArgumentError("from_dlpack: expected a tensor, got a null pointer");
  if (tensor->deleter == &ExportedArray::release) {
    if (verdict != nullptr) *verdict = {true, "adopted: an array of this library"};
    return static_cast<ExportedArray*>(tensor->manager_ctx)->array;
  }
  const DLTensor& given = tensor->dl_tensor;
  if (given.device.device_type != kDLCPU && given.device.device_type != kDLCUDAHost)
    throw ArgumentError("from_dlpack: expected a tensor in the host's memory (kDLCPU), got device type " +
                        std::to_string(static_cast<int>(given.device.device_type)) + "; move it to the host first");
  const std::optional<Dtype> dtype = dtype_of_dlpack(given.dtype);
  if (!dtype)
    throw ArgumentError(
        "from_dlpack: expected float16, bfloat16, float32, float64, int32, int64, uint8 or bool, got type code " +
        std::to_string(given.dtype.code) + " with " + std::to_string(given.dtype.bits) + " bits and " +
        std::to_string(given.dtype.lanes) + " lanes; convert the tensor first");
  if (given.ndim < 0 || given.ndim > Shape::kMaxRank)
    throw ArgumentError("from_dlpack: expected at most " + std::to_string(Shape::kMaxRank) + " axes, got " +
                        std::to_string(given.ndim));
  const auto rank = static_cast<std::size_t>(given.ndim);
  const Shape shape(std::span<const std::int64_t>(given.shape, rank));
  std::vector<std::int64_t> strides;
  if (given.strides != nullptr) strides.assign(given.strides, given.strides + rank);
  void* const data = static_cast<char*>(given.data) + given.byte_offset;
  std::shared_ptr<DLManagedTensor> kept(std::move(tensor));
  return adopt_strided(
      data, shape, strides, *dtype, [kept = std::move(kept)]() mutable { kept.reset(); }, verdict);
}

}  // namespace samebytes::interop

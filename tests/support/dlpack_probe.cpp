// libdlpack_probe.so: arrays as DLPack tensors for a Python that has NumPy or PyTorch; tests/support/dlpack_probe.py
// loads it by ctypes. A null pointer or a negative number stands for an error.
#include <cstdio>

#include "samebytes/interop/dlpack.h"
#include "samebytes/samebytes.h"

namespace {

samebytes::Engine& engine() {
  static samebytes::Engine one;
  return one;
}

}  // namespace

extern "C" {

// The transpose of [[0, 1, 2], [3, 4, 5]]: a view.
DLManagedTensor* dlpack_probe_give() {
  engine();
  try {
    const samebytes::Array x = samebytes::reshape(samebytes::arange(0, 6), {2, 3});
    return samebytes::interop::to_dlpack(samebytes::transpose(x)).release();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return nullptr;
  }
}

// The sum over i of (i + 1) x_i, row after row; takes the tensor.
double dlpack_probe_take(DLManagedTensor* tensor, int* adopted) {
  engine();
  try {
    samebytes::Adoption verdict;
    const samebytes::Array x = samebytes::interop::from_dlpack(samebytes::interop::DlpackTensor(tensor), &verdict);
    *adopted = verdict.adopted ? 1 : 0;
    const samebytes::Array weights =
        samebytes::reshape(samebytes::arange(1, static_cast<double>(x.size() + 1)), x.shape());
    return samebytes::sum(x * weights).value();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return -1;
  }
}

}  // extern "C"

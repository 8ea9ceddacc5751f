// libdlpack_probe.so: arrays as DLPack tensors for a Python that has NumPy or PyTorch; tests/support/dlpack_probe.py
// loads it by ctypes. A null pointer or a negative number stands for an error.
#include <cstdio>
#include <memory>

#include "samebytes/interop/dlpack.h"
#include "samebytes/samebytes.h"

namespace {

std::unique_ptr<samebytes::Engine>& place() {
  static std::unique_ptr<samebytes::Engine> one;
  return one;
}

samebytes::Engine& engine() {
  if (!place()) place() = std::make_unique<samebytes::Engine>();
  return *place();
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

// 1: memory of others is used where it lies, also where it begins on no page; 0: it is copied.
int dlpack_probe_adopts() {
  const samebytes::DeviceInfo& device = engine().device();
  if (device.memory_mode == samebytes::MemoryMode::system) return 1;
  return device.type == "cpu" && device.memory_mode != samebytes::MemoryMode::copy ? 1 : 0;
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

// Everything that was taken is let go of now: another thread of the library does it, and Python takes none in once it
// ends.
void dlpack_probe_end() { place().reset(); }

}  // extern "C"

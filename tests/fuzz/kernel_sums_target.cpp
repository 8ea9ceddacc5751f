#include <filesystem>

#include "fuzz/target.h"
#include "runtime/kernel_cache.h"
#include "samebytes/error.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

// The checksums of a program in the driver's cache, with one of their own that is right.
const Added added({
    .name = "kernel_sums",
    .file = "sums",
    .make =
        [](const std::string& folder) {
          testing::put(folder + "/sums",
                       "samebytes kernel checksums 1\nAB/CDEF\n7 1f a0 program.bc\nc8 1 2 gemm/1-1-1/gemm.so\n");
        },
    .read =
        [](const std::string& path) {
          const std::string cache = path.substr(0, path.rfind('/')) + "/cache";
          const detail::Key128 key;
          std::filesystem::create_directories(cache + "/samebytes");
          testing::put(cache + "/samebytes/" + detail::hex_text(key), detail::with_checksum(testing::get(path)));
          detail::KernelCache(cache).has_program(key);
        },
    .words = {"samebytes kernel checksums 1\n", "program.bc\n", "../", "/", "sum ", "ffffffffffffffff "},
    .growth = 100,
});

}  // namespace
}  // namespace samebytes::fuzz

#include "fuzz/target.h"
#include "samebytes/data/npy.h"
#include "samebytes/data/npy_map.h"
#include "samebytes/error.h"
#include "samebytes/io/tensor_npy.h"

namespace samebytes::fuzz {
namespace {

const Added added({
    .name = "npy",
    .file = "x.npy",
    .make =
        [](const std::string& folder) {
          int i = 0;
          for (const Dtype dtype : {f32, f16, f64, i32, u8, bool_})
            data::write_npy(folder + "/" + std::to_string(i++) + ".npy", HostArray(Shape{2, 3}, dtype));
        },
    .read =
        [](const std::string& path) {
          try {
            io::read_tensor_npy(path);
          } catch (const Error&) {
          }
          data::read_npy(path);
          data::NpyMap map(path);
        },
    .words = {"'descr'", "'fortran_order'", "'shape'", "'<f4'", "'>f8'", "'<i8'", "'|V2'", "True", "False", "(", ",)"},
});

}  // namespace
}  // namespace samebytes::fuzz

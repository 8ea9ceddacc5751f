#include "fuzz/target.h"
#include "samebytes/io/safetensors.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

const Added added({
    .name = "safetensors",
    .file = "x.safetensors",
    .make =
        [](const std::string& folder) {
          const HostArray a(Shape{3, 4}, f32), b(Shape{5}, u8), c(Shape{}, f64), d(Shape{2, 0}, bf16);
          const io::TensorView views[] = {{"a", a.dtype, a.shape, a.bytes},
                                          {"b", b.dtype, b.shape, b.bytes},
                                          {"c", c.dtype, c.shape, c.bytes},
                                          {"d", d.dtype, d.shape, d.bytes}};
          io::save_tensors(folder + "/x", views, {{"format", "pt"}});
        },
    .read =
        [](const std::string& path) {
          const io::TensorFile file(path);
          for (std::size_t i = 0; i < file.tensors().size(); ++i) file.read(i);
        },
    .words = {"__metadata__", "\"dtype\":", "\"shape\":", "\"data_offsets\":", "\"I64\"", "\"F16\"", "\"BOOL\"", "[",
              "{", "1e999", "18446744073709551615", "\\ud800"},
    .growth = 8,  // signed bytes become i32; the header is parsed
});

}  // namespace
}  // namespace samebytes::fuzz

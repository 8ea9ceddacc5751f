// Files that the build put into the library: kernel texts and the digits data set.
#pragma once

#include <span>
#include <string_view>

namespace samebytes::detail {

struct EmbeddedFile {
  std::string_view name;  // path relative to its root, "cpu/softmax.cl"
  std::string_view bytes;
};

std::span<const EmbeddedFile> embedded_kernels();  // cl/
std::span<const EmbeddedFile> embedded_digits();   // examples/data/

}  // namespace samebytes::detail

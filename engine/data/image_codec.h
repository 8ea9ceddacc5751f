// The two decoders behind decode_image(). Both libraries report errors by longjmp; the jump stays inside functions
// whose variables need no destructor, and resources have owners outside of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/io_error.h"

namespace samebytes::detail {

struct ImageHeader {
  std::int64_t height = 0, width = 0;
  int channels = 0;  // in the rows from the decoder
};

inline constexpr std::size_t kImageMessage = 256;  // longest error text of a library; longer ones are cut

[[noreturn]] inline void throw_image(std::string_view name, std::int64_t offset, const char* kind,
                                     const char* message) {
  throw_io("image", std::string(name), offset, std::string("an intact ") + kind, message);
}

class ImageDecoder {
 public:
  virtual ~ImageDecoder() = default;
  // Reads the header. Pixels will have `wanted` channels if the library can convert them.
  virtual ImageHeader read_header(int wanted) = 0;
  // rows[y] has header.width * header.channels bytes.
  virtual void read_rows(std::span<std::uint8_t*> rows) = 0;
};

// `file` and `name` must outlive the decoder.
std::unique_ptr<ImageDecoder> make_png_decoder(std::string_view name, std::span<const std::byte> file);
std::unique_ptr<ImageDecoder> make_jpeg_decoder(std::string_view name, std::span<const std::byte> file);

}  // namespace samebytes::detail

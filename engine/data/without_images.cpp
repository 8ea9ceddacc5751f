// Built instead of image_png.cpp and image_jpeg.cpp where SAMEBYTES_IMAGES is off.
#include "core/missing_part.h"
#include "data/image_codec.h"

namespace samebytes::detail {
namespace {

[[noreturn]] void refuse(std::string_view name) {
  throw_missing("image: " + std::string(name), "PNG and JPEG", "SAMEBYTES_IMAGES",
                "packages libpng-dev and libjpeg-dev");
}

}  // namespace

std::unique_ptr<ImageDecoder> make_png_decoder(std::string_view name, std::span<const std::byte>) { refuse(name); }
std::unique_ptr<ImageDecoder> make_jpeg_decoder(std::string_view name, std::span<const std::byte>) { refuse(name); }

}  // namespace samebytes::detail

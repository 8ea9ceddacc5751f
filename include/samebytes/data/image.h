// Readers for PNG and JPEG images, through libpng and libjpeg.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "samebytes/host_array.h"

namespace samebytes::data {

// The image as [H, W, channels] u8; channels is 1 (grey), 3 (RGB) or 4 (RGB and alpha). Palettes and fewer than 8 bits
// are expanded, 16 bits scaled to 8; the grey of a coloured PNG is (299 R + 587 G + 114 B) / 1000, that of a JPEG its
// Y; alpha is dropped unless channels is 4, and 255 if the file has none; CMYK becomes RGB. Gamma, colour profiles and
// EXIF orientation are not applied. Throws IoError, with the byte where the decoder stopped, for a missing, truncated
// or damaged file, one that is neither PNG nor JPEG, and more than 2^28 pixels; ArgumentError for other values of
// channels.
HostArray read_image(const std::string& path, int channels = 3);

// The same for a file in memory. `room` is called with height and width and returns the destination of height * width *
// channels bytes. `name` stands for the path in errors.
using ImageRoom = std::function<std::span<std::uint8_t>(std::int64_t height, std::int64_t width)>;
void decode_image(std::string_view name, std::span<const std::byte> file, int channels, const ImageRoom& room);

// Bilinear: each pixel of dst [height, width, channels] is the mean of src [src_height, src_width, channels] weighted
// by a triangle that is two pixels of the coarser image wide (Pillow's BILINEAR, torchvision's Resize with antialias).
// Values are multiplied by scale; T is float, or std::uint8_t with rounding.
template <class T>
void resize_bilinear(std::span<const std::uint8_t> src, std::int64_t src_height, std::int64_t src_width,
                     std::span<T> dst, std::int64_t height, std::int64_t width, int channels, float scale = 1);
extern template void resize_bilinear<float>(std::span<const std::uint8_t>, std::int64_t, std::int64_t, std::span<float>,
                                            std::int64_t, std::int64_t, int, float);
extern template void resize_bilinear<std::uint8_t>(std::span<const std::uint8_t>, std::int64_t, std::int64_t,
                                                   std::span<std::uint8_t>, std::int64_t, std::int64_t, int, float);

}  // namespace samebytes::data

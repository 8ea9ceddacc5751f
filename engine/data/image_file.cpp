#include "samebytes/data/image.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "data/image_codec.h"
#include "samebytes/io/files.h"

namespace samebytes::data {
namespace {

constexpr std::int64_t kMostPixels = std::int64_t{1} << 28;
// What a byte of a file can hold: deflate makes at most 1 032 bytes of one, a PNG has eight pixels in a byte; a block
// of 64 pixels of a JPEG takes a bit.
constexpr std::int64_t kMostPixelsOfByte = std::int64_t{8} * 1032;

bool begins_with(std::span<const std::byte> file, std::string_view magic) {
  return file.size() >= magic.size() && std::memcmp(file.data(), magic.data(), magic.size()) == 0;
}

void change_channels(std::span<const std::uint8_t> src, int have, std::span<std::uint8_t> dst, int wanted) {
  const std::size_t pixels = src.size() / static_cast<std::size_t>(have);
  for (std::size_t i = 0; i < pixels; ++i) {
    const std::uint8_t* from = src.data() + i * static_cast<std::size_t>(have);
    std::uint8_t* to = dst.data() + i * static_cast<std::size_t>(wanted);
    if (wanted == 1) {
      const unsigned sum = 299u * from[0] + 587u * from[1] + 114u * from[2];
      to[0] = static_cast<std::uint8_t>((sum + 500) / 1000);
      continue;
    }
    for (std::size_t c = 0; c < 3; ++c) to[c] = from[have == 1 ? 0 : c];
    if (wanted == 4) to[3] = 255;
  }
}

// The source pixels of each result pixel along one axis.
struct Taps {
  std::vector<std::int64_t> first;
  std::vector<std::vector<float>> weights;
};

Taps triangle_taps(std::int64_t src, std::int64_t dst) {
  Taps taps;
  const double ratio = static_cast<double>(src) / static_cast<double>(dst), reach = std::max(ratio, 1.0);
  for (std::int64_t i = 0; i < dst; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * ratio;
    const auto from = std::max<std::int64_t>(static_cast<std::int64_t>(std::floor(centre - reach)), 0);
    const auto to = std::min<std::int64_t>(static_cast<std::int64_t>(std::ceil(centre + reach)), src);
    std::vector<double> weights;
    double sum = 0;
    for (std::int64_t j = from; j < to; ++j) {
      weights.push_back(std::max(0.0, 1.0 - std::fabs((static_cast<double>(j) + 0.5 - centre) / reach)));
      sum += weights.back();
    }
    taps.first.push_back(from);
    taps.weights.emplace_back();
    for (const double weight : weights) taps.weights.back().push_back(static_cast<float>(weight / sum));
  }
  return taps;
}

}  // namespace

void decode_image(std::string_view name, std::span<const std::byte> file, int channels, const ImageRoom& room) {
  if (channels != 1 && channels != 3 && channels != 4)
    throw ArgumentError("image: channels must be 1, 3 or 4, got " + std::to_string(channels));
  const bool is_png = begins_with(file, "\x89PNG\r\n\x1a\n"), is_jpeg = begins_with(file, "\xff\xd8\xff");
  if (!is_png && !is_jpeg)
    detail::throw_io("image", std::string(name), 0, "the first bytes of a PNG or JPEG",
                     file.empty() ? "an empty file" : "other bytes");
  const auto decoder = is_png ? detail::make_png_decoder(name, file) : detail::make_jpeg_decoder(name, file);
  const detail::ImageHeader header = decoder->read_header(channels);
  if (header.height * header.width > kMostPixels)
    detail::throw_io("image", std::string(name), -1, "at most 2^28 pixels",
                     std::to_string(header.width) + " by " + std::to_string(header.height));
  if (header.height * header.width > kMostPixelsOfByte * std::ssize(file))
    detail::throw_io("image", std::string(name), -1, "pixels that " + std::to_string(file.size()) + " bytes can hold",
                     std::to_string(header.width) + " by " + std::to_string(header.height));
  const auto pixels = static_cast<std::size_t>(header.height * header.width);
  const std::span<std::uint8_t> dst = room(header.height, header.width);
  if (dst.size() != pixels * static_cast<std::size_t>(channels))
    throw ArgumentError("image: expected room for " + std::to_string(pixels * static_cast<std::size_t>(channels)) +
                        " bytes, got " + std::to_string(dst.size()));
  std::vector<std::uint8_t> converted(header.channels == channels ? 0
                                                                  : pixels * static_cast<std::size_t>(header.channels));
  std::uint8_t* const begin = converted.empty() ? dst.data() : converted.data();
  std::vector<std::uint8_t*> rows;
  for (std::int64_t y = 0; y < header.height; ++y) rows.push_back(begin + y * header.width * header.channels);
  decoder->read_rows(rows);
  if (!converted.empty()) change_channels(converted, header.channels, dst, channels);
}

HostArray read_image(const std::string& path, int channels) {
  HostArray image;
  decode_image(path, io::read_file(path), channels, [&](std::int64_t height, std::int64_t width) {
    image = HostArray(Shape{height, width, channels}, u8);
    return image.as<std::uint8_t>();
  });
  return image;
}

template <class T>
void resize_bilinear(std::span<const std::uint8_t> src, std::int64_t src_height, std::int64_t src_width,
                     std::span<T> dst, std::int64_t height, std::int64_t width, int channels, float scale) {
  if (src_height < 1 || src_width < 1 || height < 1 || width < 1 || channels < 1 ||
      static_cast<std::int64_t>(src.size()) != src_height * src_width * channels ||
      static_cast<std::int64_t>(dst.size()) != height * width * channels)
    throw ArgumentError("resize_bilinear: expected sizes of 1 or more that go with the values, got " +
                        std::to_string(src_height) + " x " + std::to_string(src_width) + " to " +
                        std::to_string(height) + " x " + std::to_string(width) + " of " + std::to_string(channels) +
                        " with " + std::to_string(src.size()) + " and " + std::to_string(dst.size()) + " values");
  const Taps across = triangle_taps(src_width, width), down = triangle_taps(src_height, height);
  const auto row_values = static_cast<std::size_t>(width * channels);
  std::vector<float> narrowed(static_cast<std::size_t>(src_height) * row_values);  // every source row, already `width`
  for (std::int64_t y = 0; y < src_height; ++y)
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::uint8_t* from =
            src.data() + (y * src_width + across.first[static_cast<std::size_t>(x)]) * channels + c;
        float sum = 0;
        for (const float weight : across.weights[static_cast<std::size_t>(x)]) {
          sum += weight * static_cast<float>(*from);
          from += channels;
        }
        narrowed[static_cast<std::size_t>((y * width + x) * channels + c)] = sum;
      }
  std::vector<float> row(row_values);
  for (std::int64_t y = 0; y < height; ++y) {
    std::fill(row.begin(), row.end(), 0.0f);
    const auto at = static_cast<std::size_t>(y);
    for (std::size_t tap = 0; tap < down.weights[at].size(); ++tap) {
      const float* from = narrowed.data() + (static_cast<std::size_t>(down.first[at]) + tap) * row_values;
      for (std::size_t i = 0; i < row_values; ++i) row[i] += down.weights[at][tap] * from[i];
    }
    for (std::size_t i = 0; i < row_values; ++i) {
      const float value = row[i] * scale;
      T& to = dst[at * row_values + i];
      if constexpr (std::is_same_v<T, std::uint8_t>)
        to = static_cast<std::uint8_t>(std::clamp(value + 0.5f, 0.0f, 255.0f));
      else
        to = value;
    }
  }
}

template void resize_bilinear<float>(std::span<const std::uint8_t>, std::int64_t, std::int64_t, std::span<float>,
                                     std::int64_t, std::int64_t, int, float);
template void resize_bilinear<std::uint8_t>(std::span<const std::uint8_t>, std::int64_t, std::int64_t,
                                            std::span<std::uint8_t>, std::int64_t, std::int64_t, int, float);

}  // namespace samebytes::data

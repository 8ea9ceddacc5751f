#include "samebytes/data/image_folder.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "core/io_error.h"
#include "data/class_files.h"
#include "samebytes/data/image.h"
#include "samebytes/io/files.h"

namespace samebytes::data {
namespace {

class ImageSet final : public Dataset {
 public:
  ImageSet(detail::ClassFiles files, const ImageFolderOptions& options) : files_(std::move(files)), options_(options) {
    const Shape image{options.height, options.width, options.channels};
    fields_ = {{"image", image, options.raw ? u8 : f32}, {"label", Shape{}, i32}};
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.paths.size()); }
  const std::vector<FieldSpec>& fields() const override { return fields_; }
  bool read(std::int64_t index, std::span<const Field> dst) const override {
    const auto row = static_cast<std::size_t>(index);
    if (options_.raw)
      decode(files_.paths[row], dst[0].as<std::uint8_t>());
    else
      decode(files_.paths[row], dst[0].as<float>());
    dst[1].as<std::int32_t>()[0] = files_.labels[row];
    return true;
  }

 private:
  template <class T>
  void decode(const std::string& path, std::span<T> dst) const {
    constexpr bool kBytes = std::is_same_v<T, std::uint8_t>;
    constexpr float kScale = kBytes ? 1.0f : 1.0f / 255.0f;
    std::vector<std::uint8_t> pixels;
    std::int64_t height = 0, width = 0;
    const auto room = [&](std::int64_t h, std::int64_t w) -> std::span<std::uint8_t> {
      height = h, width = w;
      const bool fits = h == options_.height && w == options_.width;
      if (!fits && !options_.resize)
        detail::throw_io(
            "image_folder", path, -1,
            std::to_string(options_.width) + " by " + std::to_string(options_.height) + " pixels (or ask for resize)",
            std::to_string(w) + " by " + std::to_string(h));
      if constexpr (kBytes)
        if (fits) return dst;
      pixels.resize(static_cast<std::size_t>(h * w * options_.channels));
      return pixels;
    };
    decode_image(path, io::read_file(path), options_.channels, room);
    if (pixels.empty()) return;
    if (height == options_.height && width == options_.width)
      std::transform(pixels.begin(), pixels.end(), dst.begin(),
                     [](std::uint8_t pixel) { return static_cast<T>(static_cast<float>(pixel) / 255.0f); });
    else
      resize_bilinear<T>(pixels, height, width, dst, options_.height, options_.width, options_.channels, kScale);
  }

  detail::ClassFiles files_;
  ImageFolderOptions options_;
  std::vector<FieldSpec> fields_;
};

}  // namespace

ImageFolder image_folder(const std::string& folder, const ImageFolderOptions& options) {
  ImageFolderOptions wanted = options;
  if (wanted.height < 0 || wanted.width < 0 || (wanted.height == 0) != (wanted.width == 0))
    throw ArgumentError("image_folder: height and width are both given or both 0, got " +
                        std::to_string(wanted.height) + " and " + std::to_string(wanted.width));
  if (wanted.channels != 1 && wanted.channels != 3 && wanted.channels != 4)
    throw ArgumentError("image_folder: channels must be 1, 3 or 4, got " + std::to_string(wanted.channels));
  detail::ClassFiles files =
      detail::find_class_files("image_folder", folder, {".png", ".jpg", ".jpeg"}, "files .png, .jpg or .jpeg");
  ImageFolder result{{}, files.classes, files.paths, files.labels};
  if (wanted.height == 0) {
    const Shape shape = read_image(files.paths.front(), wanted.channels).shape;
    wanted.height = shape[0];
    wanted.width = shape[1];
  }
  result.set = std::make_shared<ImageSet>(std::move(files), wanted);
  return result;
}

}  // namespace samebytes::data

#include "samebytes/data/image_folder.h"

#include <algorithm>
#include <filesystem>
#include <type_traits>
#include <utility>

#include "core/io_error.h"
#include "samebytes/data/image.h"
#include "samebytes/io/files.h"

namespace samebytes::data {
namespace {

namespace fs = std::filesystem;

struct ImageFile {
  std::string path;
  std::int32_t label;
};

bool is_image(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return extension == ".png" || extension == ".jpg" || extension == ".jpeg";
}

// The entries of a folder that pass the test, sorted.
template <class Iterator, class Test>
std::vector<fs::path> sorted_entries(const fs::path& folder, Test test) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (Iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    if (test(*entry)) paths.push_back(entry->path());
  if (error)
    throw IoError("image_folder: " + folder.string() + ": expected a folder: " + error.message(), folder.string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

class ImageSet final : public Dataset {
 public:
  ImageSet(std::vector<ImageFile> files, const ImageFolderOptions& options)
      : files_(std::move(files)), options_(options) {
    const Shape image{options.height, options.width, options.channels};
    fields_ = {{"image", image, options.raw ? u8 : f32}, {"label", Shape{}, i32}};
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(files_.size()); }
  const std::vector<FieldSpec>& fields() const override { return fields_; }
  bool read(std::int64_t index, std::span<const Field> dst) const override {
    const ImageFile& file = files_[static_cast<std::size_t>(index)];
    if (options_.raw)
      decode(file.path, dst[0].as<std::uint8_t>());
    else
      decode(file.path, dst[0].as<float>());
    dst[1].as<std::int32_t>()[0] = file.label;
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

  std::vector<ImageFile> files_;
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
  const auto is_folder = [](const fs::directory_entry& entry) { return entry.is_directory(); };
  const auto is_file = [](const fs::directory_entry& entry) {
    return entry.is_regular_file() && is_image(entry.path());
  };
  const std::vector<fs::path> classes = sorted_entries<fs::directory_iterator>(folder, is_folder);
  if (classes.empty()) detail::throw_io("image_folder", folder, -1, "a subfolder for each class", "none");
  ImageFolder result;
  std::vector<ImageFile> files;
  for (const fs::path& one : classes) {
    const std::vector<fs::path> images = sorted_entries<fs::recursive_directory_iterator>(one, is_file);
    if (images.empty()) detail::throw_io("image_folder", one.string(), -1, "files .png, .jpg or .jpeg", "none");
    for (const fs::path& image : images) {
      files.push_back({image.string(), static_cast<std::int32_t>(result.classes.size())});
      result.paths.push_back(image.string());
    }
    result.classes.push_back(one.filename().string());
  }
  if (wanted.height == 0) {
    const Shape shape = read_image(files.front().path, wanted.channels).shape;
    wanted.height = shape[0];
    wanted.width = shape[1];
  }
  result.set = std::make_shared<ImageSet>(std::move(files), wanted);
  return result;
}

}  // namespace samebytes::data

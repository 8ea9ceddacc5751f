#include "samebytes/data/cifar.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "core/io_error.h"
#include "data/find_file.h"
#include "samebytes/data/image.h"
#include "samebytes/io/files.h"

namespace samebytes::data {
namespace {

constexpr std::int64_t kSide = 32, kChannels = 3;
constexpr std::size_t kPlane = 1024, kPixels = 3 * kPlane;

// The bytes before the pixels of a record, and which of them is the label.
struct Form {
  const char* reader;
  std::size_t labels;  // bytes
  std::size_t label;   // index among them
  int classes;
  std::size_t record() const { return labels + kPixels; }
};

// Appends a file's records. Throws IoError with the first wrong byte.
void append_records(const Form& form, const std::string& path, std::vector<std::byte>& records) {
  const std::vector<std::byte> file = io::read_file(path);
  const std::size_t whole = file.size() / form.record() * form.record();
  if (file.empty() || whole != file.size())
    detail::throw_io(form.reader, path, static_cast<std::int64_t>(whole),
                     "an image of " + std::to_string(form.record()) + " bytes",
                     file.empty() ? "an empty file" : std::to_string(file.size() - whole) + " bytes to the end");
  for (std::size_t at = form.label; at < file.size(); at += form.record())
    if (const int label = std::to_integer<int>(file[at]); label >= form.classes)
      detail::throw_io(form.reader, path, static_cast<std::int64_t>(at),
                       "a label from 0 to " + std::to_string(form.classes - 1), std::to_string(label));
  records.insert(records.end(), file.begin(), file.end());
}

// Packed JPEGs: "C10J", the number of images, then for each one its label byte, the size of the JPEG in two bytes, and
// the JPEG; little-endian. Converts them to records as in the binary files.
constexpr std::string_view kPackedMagic = "C10J";

void append_packed(const Form& form, const std::string& path, std::vector<std::byte>& records) {
  const std::vector<std::byte> file = io::read_file(path);
  const auto number = [&](std::size_t place, std::size_t bytes, const char* what) {
    if (file.size() < place + bytes)
      detail::throw_io(form.reader, path, static_cast<std::int64_t>(file.size()), what, "the end of the file");
    std::size_t value = 0;
    for (std::size_t i = bytes; i-- > 0;) value = value << 8 | std::to_integer<std::size_t>(file[place + i]);
    return value;
  };
  if (file.size() < kPackedMagic.size() || std::memcmp(file.data(), kPackedMagic.data(), kPackedMagic.size()) != 0)
    detail::throw_io(form.reader, path, 0, "the letters C10J", file.size() < 4 ? "a shorter file" : "other bytes");
  const std::size_t count = number(4, 4, "the number of images");
  std::size_t place = 8;
  std::vector<std::uint8_t> pixels;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string image = "image " + std::to_string(i);
    const std::size_t label = number(place, 1, (image + " with its label").c_str());
    if (label >= static_cast<std::size_t>(form.classes))
      detail::throw_io(form.reader, path, static_cast<std::int64_t>(place),
                       "a label from 0 to " + std::to_string(form.classes - 1), std::to_string(label));
    const std::size_t size = number(place + 1, 2, (image + " with its size").c_str());
    place += 3;
    if (file.size() - place < size)
      detail::throw_io(form.reader, path, static_cast<std::int64_t>(file.size()),
                       std::to_string(size) + " bytes of " + image, std::to_string(file.size() - place));
    std::int64_t height = 0, width = 0;
    try {
      decode_image(image, std::span(file).subspan(place, size), 3, [&](std::int64_t h, std::int64_t w) {
        height = h, width = w;
        pixels.resize(static_cast<std::size_t>(3 * h * w));
        return std::span(pixels);
      });
    } catch (const IoError& error) {  // its offset counts from the beginning of the JPEG
      const std::int64_t offset = static_cast<std::int64_t>(place) + std::max<std::int64_t>(error.offset(), 0);
      throw IoError(std::string(form.reader) + ": " + path + ": in the JPEG at byte " + std::to_string(place) + ": " +
                        error.what(),
                    path, offset);
    }
    if (height != kSide || width != kSide)
      detail::throw_io(form.reader, path, static_cast<std::int64_t>(place), image + " of 32 by 32",
                       std::to_string(width) + " by " + std::to_string(height));
    records.push_back(static_cast<std::byte>(label));
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t pixel = 0; pixel < kPlane; ++pixel)
        records.push_back(static_cast<std::byte>(pixels[3 * pixel + c]));
    place += size;
  }
  if (place != file.size())
    detail::throw_io(form.reader, path, static_cast<std::int64_t>(place), "the end of the file",
                     std::to_string(file.size() - place) + " bytes more");
}

// Decodes planes of bytes to [H, W, C], floats or bytes.
class PlanarSet final : public Dataset {
 public:
  PlanarSet(const Form& form, std::vector<std::byte> records, bool raw)
      : form_(form), records_(std::move(records)), raw_(raw) {
    fields_ = {{"image", Shape{kSide, kSide, kChannels}, raw ? u8 : f32}, {"label", Shape{}, i32}};
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(records_.size() / form_.record()); }
  const std::vector<FieldSpec>& fields() const override { return fields_; }
  bool read(std::int64_t index, std::span<const Field> dst) const override {
    const auto record = std::span(records_).subspan(static_cast<std::size_t>(index) * form_.record(), form_.record());
    const auto* pixels = reinterpret_cast<const std::uint8_t*>(record.data() + form_.labels);
    if (raw_)
      interleave(pixels, dst[0].as<std::uint8_t>(), [](std::uint8_t pixel) { return pixel; });
    else
      interleave(pixels, dst[0].as<float>(), [](std::uint8_t pixel) { return static_cast<float>(pixel) / 255.0f; });
    dst[1].as<std::int32_t>()[0] = std::to_integer<std::int32_t>(record[form_.label]);
    return true;
  }

 private:
  template <class T, class Convert>
  static void interleave(const std::uint8_t* planes, std::span<T> image, Convert convert) {
    for (std::size_t i = 0; i < kPlane; ++i)
      for (std::size_t c = 0; c < 3; ++c) image[3 * i + c] = convert(planes[c * kPlane + i]);
  }

  Form form_;
  std::vector<std::byte> records_;
  bool raw_;
  std::vector<FieldSpec> fields_;
};

// The folder itself, or its subfolder from the archive.
std::string folder_of(const std::string& folder, const char* archive) {
  std::error_code ignored;
  const auto inner = std::filesystem::path(folder) / archive;
  return std::filesystem::is_directory(inner, ignored) ? inner.string() : folder;
}

DatasetPtr read_cifar_part(const Form& form, const std::string& folder, const std::vector<std::string>& names,
                           bool raw) {
  std::vector<std::byte> records;
  for (const std::string& name : names) {
    const std::string path = detail::find_file(form.reader, folder, name);
    name.ends_with(".jpegs") ? append_packed(form, path, records) : append_records(form, path, records);
  }
  return std::make_shared<PlanarSet>(form, std::move(records), raw);
}

// One name per line.
std::vector<std::string> read_names(const std::string& path) {
  const std::vector<std::byte> file = io::read_file(path);
  std::vector<std::string> names(1);
  for (const std::byte byte : file) {
    const char c = std::to_integer<char>(byte);
    if (c == '\n' && !names.back().empty()) names.emplace_back();
    if (c != '\n' && c != '\r') names.back() += c;
  }
  if (names.back().empty()) names.pop_back();
  return names;
}

}  // namespace

Split cifar10(const std::string& folder, const CifarOptions& options) {
  const Form form{.reader = "cifar10", .labels = 1, .label = 0, .classes = 10};
  const std::string inner = folder_of(folder, "cifar-10-batches-bin");
  Split split;
  if (detail::has_file(inner, "train.bin")) {
    split = {read_cifar_part(form, inner, {"train.bin"}, options.raw),
             read_cifar_part(form, inner, {"test.bin"}, options.raw)};
  } else if (detail::has_file(inner, "train.jpegs")) {
    split = {read_cifar_part(form, inner, {"train.jpegs"}, options.raw),
             read_cifar_part(form, inner, {"test.jpegs"}, options.raw)};
  } else {
    std::vector<std::string> batches;
    for (int i = 1; i <= 5; ++i) batches.push_back("data_batch_" + std::to_string(i) + ".bin");
    split = {read_cifar_part(form, inner, batches, options.raw),
             read_cifar_part(form, inner, {"test_batch.bin"}, options.raw)};
  }
  split.classes = {"airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  return split;
}

Split cifar100(const std::string& folder, const CifarOptions& options) {
  const Form form{
      .reader = "cifar100", .labels = 2, .label = options.coarse ? 0u : 1u, .classes = options.coarse ? 20 : 100};
  const std::string inner = folder_of(folder, "cifar-100-binary");
  Split split{read_cifar_part(form, inner, {"train.bin"}, options.raw),
              read_cifar_part(form, inner, {"test.bin"}, options.raw)};
  const std::string names = options.coarse ? "coarse_label_names.txt" : "fine_label_names.txt";
  if (!detail::has_file(inner, names)) return split;
  const std::string path = detail::find_file("cifar100", inner, names);
  split.classes = read_names(path);
  if (split.classes.size() != static_cast<std::size_t>(form.classes))
    detail::throw_io("cifar100", path, -1, std::to_string(form.classes) + " names",
                     std::to_string(split.classes.size()));
  return split;
}

}  // namespace samebytes::data

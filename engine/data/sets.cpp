#include "samebytes/data/sets.h"

#include <array>
#include <cmath>
#include <utility>

#include "core/embedded.h"
#include "core/io_error.h"
#include "data/find_file.h"
#include "samebytes/data/csv.h"
#include "samebytes/data/idx.h"
#include "samebytes/io/files.h"

namespace samebytes::data {
namespace {

struct Pixels {
  HostArray images;  // [N, H, W] u8
  HostArray labels;  // [N] i32
};

Pixels read_mnist_part(const std::string& folder, const std::string& part, int classes) {
  const std::string image_path = detail::find_file("mnist", folder, part + "-images-idx3-ubyte");
  const std::string label_path = detail::find_file("mnist", folder, part + "-labels-idx1-ubyte");
  Pixels pixels{read_idx(image_path), {}};
  if (pixels.images.dtype != u8 || pixels.images.shape.rank() != 3)
    detail::throw_io(
        "mnist", image_path, 0, "the magic number 0x00000803 (three axes of bytes)",
        std::to_string(pixels.images.shape.rank()) + " axes of " + std::string(name_of(pixels.images.dtype)));
  const HostArray labels = read_idx(label_path);
  if (labels.dtype != u8 || labels.shape.rank() != 1)
    detail::throw_io("mnist", label_path, 0, "the magic number 0x00000801 (one axis of bytes)",
                     std::to_string(labels.shape.rank()) + " axes of " + std::string(name_of(labels.dtype)));
  constexpr std::int64_t kSizeOffset = 4, kLabelsOffset = 8;
  if (labels.size() != pixels.images.shape[0])
    detail::throw_io("mnist", label_path, kSizeOffset,
                     std::to_string(pixels.images.shape[0]) + " labels, one for each image",
                     std::to_string(labels.size()));
  pixels.labels = HostArray(labels.shape, i32);
  const auto src = labels.as<std::uint8_t>();
  const auto dst = pixels.labels.as<std::int32_t>();
  for (std::size_t i = 0; i < src.size(); ++i) {
    dst[i] = src[i];
    if (dst[i] >= classes)
      detail::throw_io("mnist", label_path, kLabelsOffset + static_cast<std::int64_t>(i),
                       "a label from 0 to " + std::to_string(classes - 1), std::to_string(dst[i]));
  }
  return pixels;
}

// Decodes bytes to floats through a table of the 256 values.
class PixelSet final : public Dataset {
 public:
  PixelSet(Pixels pixels, const std::array<float, 256>& values)
      : pixels_(std::move(pixels)), values_(values), size_(pixels_.images.shape[0]) {
    const Shape image{pixels_.images.shape[1], pixels_.images.shape[2], 1};
    image_size_ = static_cast<std::size_t>(image.size());
    fields_ = {{"image", image, f32, values_[0]}, {"label", Shape{}, i32}};
  }

  std::int64_t size() const override { return size_; }
  const std::vector<FieldSpec>& fields() const override { return fields_; }
  bool read(std::int64_t index, std::span<const Field> dst) const override {
    const auto row = static_cast<std::size_t>(index);
    const auto src = pixels_.images.as<std::uint8_t>().subspan(row * image_size_, image_size_);
    const std::span<float> image = dst[0].as<float>();
    for (std::size_t i = 0; i < image_size_; ++i) image[i] = values_[src[i]];
    dst[1].as<std::int32_t>()[0] = pixels_.labels.as<std::int32_t>()[row];
    return true;
  }

 private:
  Pixels pixels_;
  std::array<float, 256> values_;
  std::vector<FieldSpec> fields_;
  std::int64_t size_;
  std::size_t image_size_;
};

// Mean and deviation of pixel / 255, from exact counts.
std::pair<double, double> moments(std::span<const std::uint8_t> pixels) {
  std::array<std::uint64_t, 256> counts{};
  for (const std::uint8_t pixel : pixels) ++counts[pixel];
  double sum = 0, squares = 0;
  for (std::size_t value = 0; value < counts.size(); ++value) {
    const double scaled = static_cast<double>(value) / 255.0, count = static_cast<double>(counts[value]);
    sum += count * scaled;
    squares += count * scaled * scaled;
  }
  const double n = pixels.empty() ? 1.0 : static_cast<double>(pixels.size());
  const double mean = sum / n, variance = squares / n - mean * mean;
  return {mean, variance > 0 ? std::sqrt(variance) : 1.0};
}

DatasetPtr raw_set(Pixels pixels) {
  const Shape& shape = pixels.images.shape;
  pixels.images.shape = Shape{shape[0], shape[1], shape[2], 1};
  std::vector<Column> columns;
  columns.push_back({"image", std::move(pixels.images)});
  columns.push_back({"label", std::move(pixels.labels)});
  return in_memory(std::move(columns));
}

}  // namespace

Split mnist(const std::string& folder, const MnistOptions& options) {
  if (options.deviation && !(*options.deviation > 0))
    throw ArgumentError("mnist: deviation must be above 0, got " + std::to_string(*options.deviation));
  Pixels train = read_mnist_part(folder, "train", options.classes);
  Pixels test = read_mnist_part(folder, "t10k", options.classes);
  if (options.raw) return {raw_set(std::move(train)), raw_set(std::move(test))};
  const auto [train_mean, train_deviation] = moments(train.images.as<std::uint8_t>());
  const double mean = options.mean ? *options.mean : train_mean;
  const double deviation = options.deviation ? *options.deviation : train_deviation;
  std::array<float, 256> values{};
  for (std::size_t pixel = 0; pixel < values.size(); ++pixel)
    values[pixel] = static_cast<float>((static_cast<double>(pixel) / 255.0 - mean) / deviation);
  return {std::make_shared<PixelSet>(std::move(train), values), std::make_shared<PixelSet>(std::move(test), values)};
}

Split digits() {
  constexpr std::int64_t kTrain = 1437, kTest = 360;
  constexpr float kLargest = 16;
  for (const detail::EmbeddedFile& file : detail::embedded_digits()) {
    if (file.name != "digits.csv.gz") continue;
    const auto text = io::unpack_if_gzip(file.name, std::as_bytes(std::span(file.bytes.data(), file.bytes.size())));
    Table table = parse_csv(file.name, text, {.label = "-1", .classes = 10});
    for (float& value : table.values.as<float>()) value /= kLargest;
    table.values.shape = Shape{kTrain + kTest, 8, 8, 1};
    std::vector<Column> columns;
    columns.push_back({"image", std::move(table.values)});
    columns.push_back({"label", std::move(table.labels)});
    const DatasetPtr all = in_memory(std::move(columns));
    return {slice(all, 0, kTrain), slice(all, kTrain, kTest)};
  }
  throw IoError("digits: digits.csv.gz was not built into this library", "digits.csv.gz");
}

}  // namespace samebytes::data

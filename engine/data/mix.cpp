#include "samebytes/data/mix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/batch_fields.h"

namespace samebytes::data {
namespace {

// G. Marsaglia, W. Tsang, "A simple method for generating gamma variables", ACM TOMS 26 (2000); alpha below 1 through
// the power of a uniform number.
double draw_gamma(Random& random, double shape) {
  if (shape < 1) {
    const double uniform = 1 - static_cast<double>(random.uniform());
    return draw_gamma(random, shape + 1) * std::pow(uniform, 1 / shape);
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const auto x = static_cast<double>(random.normal());
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    const double uniform = 1 - static_cast<double>(random.uniform());
    if (std::log(uniform) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
  }
}

double draw_beta(Random& random, double alpha) {
  const double a = draw_gamma(random, alpha), b = draw_gamma(random, alpha);
  return a + b > 0 ? a / (a + b) : 0.5;
}

enum class Way { mixup, cutmix, either };

const char* name_of(Way way) {
  return way == Way::mixup ? "mixup" : (way == Way::cutmix ? "cutmix" : "mixup_or_cutmix");
}

class Mix final : public Collate {
 public:
  Mix(Way way, const MixOptions& options, CollatePtr inner)
      : way_(way), name_(name_of(way)), options_(options), inner_(inner ? std::move(inner) : default_collate()) {
    if (options.classes < 1)
      throw ArgumentError(name_ + ": classes must be 1 or more, got " + std::to_string(options.classes));
    if (!(options.alpha > 0))
      throw ArgumentError(name_ + ": alpha must be above 0, got " + std::to_string(options.alpha));
    if (!(options.probability >= 0 && options.probability <= 1))
      throw ArgumentError(name_ + ": probability must be from 0 to 1, got " + std::to_string(options.probability));
    if (options.image == options.label)
      throw ArgumentError(name_ + ": image and label must be two fields, got " + std::to_string(options.image) +
                          " twice");
  }

  std::vector<FieldSpec> fields(const Dataset& dataset, std::span<const std::int64_t> indices) const override {
    std::vector<FieldSpec> batch = inner_->fields(dataset, indices);
    if (options_.image >= batch.size() || options_.label >= batch.size())
      throw ArgumentError(name_ + ": fields " + std::to_string(options_.image) + " and " +
                          std::to_string(options_.label) + " of a batch with " + std::to_string(batch.size()));
    const FieldSpec& image = batch[options_.image];
    FieldSpec& label = batch[options_.label];
    const bool is_cut = way_ != Way::mixup;
    const bool takes_bytes = way_ == Way::cutmix;
    if (image.dtype != f32 && !(takes_bytes && image.dtype == u8))
      throw ArgumentError(name_ + ": needs f32" + (takes_bytes ? " or u8" : "") + ", field '" + image.name + "' is " +
                          std::string(samebytes::name_of(image.dtype)));
    if (is_cut && image.shape.rank() != 4)
      throw ArgumentError(name_ + ": needs images [H, W, C], field '" + image.name + "' of a batch is " +
                          image.shape.to_string());
    if (!detail::is_whole_number(label.dtype) || label.shape.rank() != 1)
      throw ArgumentError(name_ + ": needs one i32 or i64 label for each sample, field '" + label.name +
                          "' of a batch is " + std::string(samebytes::name_of(label.dtype)) + " " +
                          label.shape.to_string());
    label.shape = Shape{label.shape[0], options_.classes};
    label.dtype = f32;
    return batch;
  }

  std::int64_t fill(const Dataset& dataset, std::span<const std::int64_t> indices, const ReadSample& read,
                    std::span<Field> batch, const SequenceKey& key) const override {
    // Labels are read into a separate buffer, since each needs room for all classes.
    const std::size_t rows = static_cast<std::size_t>(batch[options_.label].shape[0]);
    const Dtype type = inner_->fields(dataset, indices)[options_.label].dtype;
    std::vector<std::byte> read_labels(rows * bytes_of(type));
    std::vector<Field> inner(batch.begin(), batch.end());
    inner[options_.label] = {std::span(read_labels), Shape{static_cast<std::int64_t>(rows)}, type, 0};
    SequenceKey inner_key = key;
    --inner_key.lane;
    const std::int64_t samples = inner_->fill(dataset, indices, read, inner, inner_key);
    for (std::size_t f = 0; f < batch.size(); ++f)
      if (f != options_.label) batch[f].shape = inner[f].shape;
    batch[options_.label].shape[0] = inner[options_.label].shape[0];
    std::vector<std::int64_t> labels(static_cast<std::size_t>(inner[options_.label].shape[0]));
    for (std::size_t i = 0; i < labels.size(); ++i) labels[i] = detail::whole_number(inner[options_.label], i);
    for (const std::int64_t label : labels)
      if (label < 0 || label >= options_.classes)
        throw ArgumentError(name_ + ": labels must be from 0 to " + std::to_string(options_.classes - 1) + ", got " +
                            std::to_string(label));

    Random random(key);
    double share = 1;
    if (!labels.empty() && static_cast<double>(random.uniform()) < options_.probability) {
      const bool is_cut = way_ == Way::cutmix || (way_ == Way::either && random.below(2) == 1);
      share = draw_beta(random, options_.alpha);
      if (is_cut)
        share = paste(batch[options_.image], random, share);
      else
        blend(batch[options_.image], static_cast<float>(share));
    }
    const std::span<float> dst = batch[options_.label].as<float>();
    const auto classes = static_cast<std::size_t>(options_.classes);
    std::ranges::fill(dst, 0.0f);
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const std::int64_t before = labels[i == 0 ? labels.size() - 1 : i - 1];
      dst[i * classes + static_cast<std::size_t>(labels[i])] += static_cast<float>(share);
      dst[i * classes + static_cast<std::size_t>(before)] += static_cast<float>(1 - share);
    }
    return samples;
  }

 private:
  // From the last row to the first, since each row is also mixed into the next one.
  static void blend(const Field& images, float share) {
    const auto rows = static_cast<std::size_t>(images.shape[0]);
    const std::span<float> values = images.as<float>().first(static_cast<std::size_t>(images.shape.size()));
    const std::size_t size = values.size() / rows;
    const std::vector<float> last(values.end() - static_cast<std::ptrdiff_t>(size), values.end());
    for (std::size_t i = rows; i-- > 0;) {
      float* const row = values.data() + i * size;
      const float* const before = i == 0 ? last.data() : row - size;
      for (std::size_t j = 0; j < size; ++j) row[j] = share * row[j] + (1 - share) * before[j];
    }
  }

  // Returns the share of an image that is unchanged.
  static double paste(const Field& images, Random& random, double share) {
    const std::int64_t count = images.shape[0], height = images.shape[1], width = images.shape[2];
    if (images.shape.size() == 0) return 1;
    const auto middle_y = static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(height)));
    const auto middle_x = static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(width)));
    const double half = 0.5 * std::sqrt(1 - share);
    const auto half_height = static_cast<std::int64_t>(half * static_cast<double>(height));
    const auto half_width = static_cast<std::int64_t>(half * static_cast<double>(width));
    const std::int64_t top = std::max<std::int64_t>(0, middle_y - half_height);
    const std::int64_t bottom = std::min(height, middle_y + half_height);
    const std::int64_t left = std::max<std::int64_t>(0, middle_x - half_width);
    const std::int64_t right = std::min(width, middle_x + half_width);
    if (bottom <= top || right <= left) return 1;
    const auto pixel = static_cast<std::int64_t>(bytes_of(images.dtype)) * images.shape[3];
    const std::int64_t image = height * width * pixel;
    const auto length = static_cast<std::size_t>((right - left) * pixel);
    const std::byte* const end = images.bytes.data() + (count - 1) * image;
    const std::vector<std::byte> last(end, end + image);
    for (std::int64_t i = count; i-- > 0;) {
      std::byte* const to = images.bytes.data() + i * image;
      const std::byte* const from = i == 0 ? last.data() : to - image;
      for (std::int64_t y = top; y < bottom; ++y) {
        const std::int64_t place = (y * width + left) * pixel;
        std::memmove(to + place, from + place, length);
      }
    }
    return 1 - static_cast<double>((bottom - top) * (right - left)) / static_cast<double>(height * width);
  }

  Way way_;
  std::string name_;
  MixOptions options_;
  CollatePtr inner_;
};

}  // namespace

CollatePtr mixup(const MixOptions& options, CollatePtr inner) {
  return std::make_shared<Mix>(Way::mixup, options, std::move(inner));
}
CollatePtr cutmix(const MixOptions& options, CollatePtr inner) {
  return std::make_shared<Mix>(Way::cutmix, options, std::move(inner));
}
CollatePtr mixup_or_cutmix(const MixOptions& options, CollatePtr inner) {
  return std::make_shared<Mix>(Way::either, options, std::move(inner));
}

}  // namespace samebytes::data

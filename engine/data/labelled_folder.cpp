#include "samebytes/data/labelled_folder.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <vector>

#include "core/io_error.h"
#include "data/find_file.h"
#include "samebytes/data/cifar.h"
#include "samebytes/data/folds.h"
#include "samebytes/data/image_folder.h"
#include "samebytes/data/image_transform.h"
#include "samebytes/data/sound_folder.h"
#include "samebytes/data/transform.h"
#include "samebytes/data/ucr.h"

namespace samebytes::data {
namespace {

namespace fs = std::filesystem;

// `classes` where the split does not name them.
LabelledFolder of_split(Split split, std::int64_t classes = 0) {
  LabelledFolder result;
  result.split = std::move(split);
  result.classes = classes > 0 ? classes : std::ssize(result.split.classes);
  result.kind = result.split.train->fields()[0].name;
  return result;
}

struct ClassFolder {
  DatasetPtr set;
  std::vector<std::string> classes;
  std::vector<std::int32_t> labels;
};

bool has_sounds(const fs::path& folder) {
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string extension = entry->path().extension().string();
    if (extension == ".wav" || extension == ".WAV") return true;
    if (entry->is_regular_file()) return false;
  }
  return false;
}

ClassFolder class_folder(const std::string& folder, const LabelledFolderOptions& options) {
  if (has_sounds(folder)) {
    SoundFolder sounds = sound_folder(folder, {.samples = options.length});
    return {sounds.set, std::move(sounds.classes), std::move(sounds.labels)};
  }
  ImageFolder images =
      image_folder(folder, {.height = options.height, .width = options.width, .channels = options.channels});
  return {images.set, std::move(images.classes), std::move(images.labels)};
}

LabelledFolder in_two_folders(const std::string& train, const std::string& test, const LabelledFolderOptions& options) {
  LabelledFolderOptions same = options;
  const ClassFolder training = class_folder(train, options);
  const FieldSpec& field = training.set->fields()[0];
  if (field.name == "image") {
    same.height = field.shape[0];
    same.width = field.shape[1];
  } else {
    same.length = field.shape[0];
  }
  const ClassFolder testing = class_folder(test, same);
  if (testing.classes != training.classes)
    detail::throw_io("labelled_folder", test, -1,
                     "the " + std::to_string(training.classes.size()) + " classes of " + train,
                     std::to_string(testing.classes.size()) + " classes, or others");
  return of_split({training.set, testing.set, training.classes});
}

LabelledFolder divided(const std::string& folder, const LabelledFolderOptions& options) {
  if (!(options.validation > 0 && options.validation < 1))
    throw ArgumentError("labelled_folder: the share for validation lies between 0 and 1, got " +
                        std::to_string(options.validation));
  ClassFolder all = class_folder(folder, options);
  const Fold parts = stratified_split(all.labels, {.share = options.validation, .seed = options.seed});
  return of_split({subset(all.set, parts.train), subset(all.set, parts.test), std::move(all.classes)});
}

// The names of the UCR archive's sets in a folder: NAME_TRAIN.tsv, .ts, .tsv.gz, ...
std::set<std::string> series_names(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (const std::size_t at = name.find("_TRAIN.ts"); at != name.npos && at > 0) names.insert(name.substr(0, at));
  }
  return names;
}

// Grey images [H, W, 1] as [H, W, 3].
class GreyInColour final : public Transform {
 public:
  void check(std::span<const FieldSpec> /*fields*/) const override {}
  bool moves() const override { return true; }
  std::vector<FieldSpec> output(std::span<const FieldSpec> fields) const override {
    std::vector<FieldSpec> result(fields.begin(), fields.end());
    result[0].shape = Shape{result[0].shape[0], result[0].shape[1], 3};
    return result;
  }
  void convert(std::span<const Field> src, std::span<const Field> dst, const SequenceKey& /*key*/) const override {
    auto colour = dst[0].as<float>().begin();
    for (const float grey : src[0].as<float>()) colour = std::fill_n(colour, 3, grey);
    for (std::size_t i = 1; i < src.size(); ++i)
      std::copy(src[i].bytes.begin(), src[i].bytes.end(), dst[i].bytes.begin());
  }
};

DatasetPtr fitted(DatasetPtr set, const LabelledFolderOptions& options) {
  std::vector<TransformPtr> changes;
  const Shape& shape = set->fields()[0].shape;
  if (shape[2] == 1 && options.channels == 3)
    changes.push_back(std::make_shared<GreyInColour>());
  else if (shape[2] != options.channels)
    changes.push_back(grayscale({.channels = options.channels}));
  if (options.height > 0 && (shape[0] != options.height || shape[1] != options.width))
    changes.push_back(resize({.size = {options.height, options.width}}));
  return changes.empty() ? set : transformed(std::move(set), changes);
}

LabelledFolder with_images(Split split, std::int64_t classes, const LabelledFolderOptions& options) {
  return of_split({fitted(split.train, options), fitted(split.test, options), std::move(split.classes)}, classes);
}

LabelledFolder any_folder(const std::string& folder, const LabelledFolderOptions& options) {
  using detail::has_file;
  const auto has_folder = [&](const char* name) { return fs::is_directory(fs::path(folder) / name); };
  if (has_file(folder, "train-images-idx3-ubyte"))
    return with_images(mnist(folder, {.mean = 0.0f, .deviation = 1.0f}), 10, options);
  const bool has_fine_names = has_file(folder, "fine_label_names.txt") || has_folder("cifar-100-binary");
  if (has_fine_names) return with_images(cifar100(folder), 100, options);
  if (has_file(folder, "data_batch_1.bin") || has_file(folder, "train.bin") || has_file(folder, "train.jpegs") ||
      has_folder("cifar-10-batches-bin"))
    return with_images(cifar10(folder), 10, options);
  const std::set<std::string> names = series_names(folder);
  const bool is_named = !options.name.empty();
  if (is_named || names.size() == 1)
    return of_split(
        ucr(folder, is_named ? options.name : *names.begin(), {.normalise = true, .length = options.length}));
  if (!names.empty())
    throw ArgumentError("labelled_folder: " + folder + " has " + std::to_string(names.size()) +
                        " sets of series; say the name of one, such as " + *names.begin());
  if (has_folder("train"))
    for (const char* test : {"val", "valid", "validation", "test"})
      if (has_folder(test)) return in_two_folders(folder + "/train", folder + "/" + test, options);
  return divided(folder, options);
}

}  // namespace

LabelledFolder labelled_folder(const std::string& folder, const LabelledFolderOptions& options) {
  return any_folder(folder, options);
}

}  // namespace samebytes::data

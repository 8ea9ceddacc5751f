#include "samebytes/data/sound_folder.h"

#include <algorithm>
#include <utility>

#include "core/io_error.h"
#include "data/class_files.h"
#include "samebytes/data/wav.h"

namespace samebytes::data {
namespace {

class SoundSet final : public Dataset {
 public:
  SoundSet(std::vector<HostArray> sounds, std::vector<std::int32_t> labels, const Shape& shape)
      : sounds_(std::move(sounds)), labels_(std::move(labels)) {
    fields_ = {{"sound", shape, f32}, {"label", Shape{}, i32}};
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(sounds_.size()); }
  const std::vector<FieldSpec>& fields() const override { return fields_; }
  bool read(std::int64_t index, std::span<const Field> dst) const override {
    const auto row = static_cast<std::size_t>(index);
    const std::span<const float> src = sounds_[row].as<float>();
    const std::span<float> sound = dst[0].as<float>();
    const std::size_t count = std::min(src.size(), sound.size());
    std::copy_n(src.begin(), count, sound.begin());
    std::fill(sound.begin() + static_cast<std::ptrdiff_t>(count), sound.end(), 0.0f);
    dst[1].as<std::int32_t>()[0] = labels_[row];
    return true;
  }

 private:
  std::vector<HostArray> sounds_;  // [T, channels], each as long as it is
  std::vector<std::int32_t> labels_;
  std::vector<FieldSpec> fields_;
};

}  // namespace

SoundFolder sound_folder(const std::string& folder, const SoundFolderOptions& options) {
  if (options.samples < 0)
    throw ArgumentError("sound_folder: samples must be 0 or more, got " + std::to_string(options.samples));
  detail::ClassFiles files = detail::find_class_files("sound_folder", folder, {".wav"}, "files .wav");
  SoundFolder result;
  std::vector<HostArray> sounds;
  std::int64_t longest = 0, channels = 0;
  for (const std::string& path : files.paths) {
    Wav wav = read_wav(path);
    if (sounds.empty()) {
      result.rate = wav.rate;
      channels = wav.samples.shape[1];
    }
    if (wav.rate != result.rate || wav.samples.shape[1] != channels)
      detail::throw_io("sound_folder", path, -1,
                       std::to_string(result.rate) + " samples a second in " + std::to_string(channels) +
                           (channels == 1 ? " channel" : " channels") + ", as the first file has",
                       std::to_string(wav.rate) + " in " + std::to_string(wav.samples.shape[1]));
    longest = std::max(longest, wav.samples.shape[0]);
    sounds.push_back(std::move(wav.samples));
  }
  result.labels = files.labels;
  result.set = std::make_shared<SoundSet>(std::move(sounds), std::move(files.labels),
                                          Shape{options.samples > 0 ? options.samples : longest, channels});
  result.classes = std::move(files.classes);
  result.paths = std::move(files.paths);
  return result;
}

}  // namespace samebytes::data

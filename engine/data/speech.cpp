#include "samebytes/data/speech.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <tuple>
#include <utility>

#include "core/io_error.h"
#include "data/archive.h"
#include "data/lines.h"
#include "samebytes/data/wav.h"

namespace samebytes::data {
namespace {

constexpr int kDigits = 10;

struct Recording {
  std::string path, speaker;
  int digit = 0, take = 0;
  std::optional<std::vector<std::byte>> bytes;  // if it is in an archive, whose names are no paths here
};

// {digit}_{speaker}_{take}.wav
Recording parse_name(const std::filesystem::path& path) {
  Recording recording;
  recording.path = path.string();
  const std::string name = path.stem().string();
  std::string_view rest = name, digit, speaker;
  const bool has_parts = detail::cut(rest, '_', digit) && detail::cut(rest, '_', speaker);
  if (!has_parts || !detail::parse_number(digit, recording.digit) || recording.digit < 0 ||
      recording.digit >= kDigits || speaker.empty() || !detail::parse_number(rest, recording.take) ||
      recording.take < 0)
    detail::throw_io("speech_digits", recording.path, -1, "a name {digit}_{speaker}_{take}.wav", "'" + name + "'");
  recording.speaker = speaker;
  return recording;
}

// Reads the archives in a folder without sound files.
std::vector<Recording> find_in_archives(const std::filesystem::path& folder) {
  std::vector<Recording> recordings;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".tar.gz") && !name.ends_with(".tgz") && !name.ends_with(".tar") && !name.ends_with(".zip"))
      continue;
    for (detail::ArchiveMember& member : detail::read_archive("speech_digits", entry.path().string())) {
      if (!member.name.ends_with(".wav")) continue;
      Recording& recording = recordings.emplace_back(parse_name(entry.path() / member.name));
      recording.bytes = std::move(member.bytes);
    }
  }
  return recordings;
}

// Sorted by digit, speaker and take, independent of the file system.
std::vector<Recording> find_recordings(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path inner = fs::path(folder) / "recordings";
  const fs::path place = fs::is_directory(inner, error) ? inner : fs::path(folder);
  std::vector<Recording> recordings;
  for (fs::directory_iterator entry(place, error), end; !error && entry != end; entry.increment(error))
    if (entry->path().extension() == ".wav") recordings.push_back(parse_name(entry->path()));
  if (recordings.empty() && !error) recordings = find_in_archives(place);
  if (error || recordings.empty())
    detail::throw_io("speech_digits", place.string(), -1,
                     "a folder with files {digit}_{speaker}_{take}.wav, or an archive of them",
                     error ? error.message() : "none");
  std::sort(recordings.begin(), recordings.end(), [](const Recording& a, const Recording& b) {
    return std::tie(a.digit, a.speaker, a.take) < std::tie(b.digit, b.speaker, b.take);
  });
  return recordings;
}

struct Sound {
  std::vector<float> samples;
  std::int32_t label, speaker;
};

class SpeechSet final : public Dataset {
 public:
  SpeechSet(std::vector<Sound> sounds, std::int64_t samples, std::shared_ptr<const MelSpectrogram> mel, bool speaker)
      : sounds_(std::move(sounds)), samples_(samples), mel_(std::move(mel)), speaker_(speaker) {
    if (mel_)
      fields_ = {{"mel", Shape{mel_->frames(samples), mel_->mels()}, f32}};
    else
      fields_ = {{"sound", Shape{samples, 1}, f32}};
    fields_.push_back({"label", Shape{}, i32});
    if (speaker) fields_.push_back({"speaker", Shape{}, i32});
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(sounds_.size()); }
  const std::vector<FieldSpec>& fields() const override { return fields_; }
  bool read(std::int64_t index, std::span<const Field> dst) const override {
    const Sound& sound = sounds_[static_cast<std::size_t>(index)];
    if (mel_) {
      std::vector<float> whole(static_cast<std::size_t>(samples_));
      copy(sound, whole);
      mel_->apply(whole, dst[0].as<float>());
    } else {
      copy(sound, dst[0].as<float>());
    }
    dst[1].as<std::int32_t>()[0] = sound.label;
    if (speaker_) dst[2].as<std::int32_t>()[0] = sound.speaker;
    return true;
  }

 private:
  static void copy(const Sound& sound, std::span<float> dst) {
    const std::size_t kept = std::min(sound.samples.size(), dst.size());
    std::fill(std::copy_n(sound.samples.begin(), kept, dst.begin()), dst.end(), 0.0f);
  }

  std::vector<Sound> sounds_;
  std::int64_t samples_;
  std::shared_ptr<const MelSpectrogram> mel_;
  bool speaker_;
  std::vector<FieldSpec> fields_;
};

}  // namespace

Split speech_digits(const std::string& folder, const SpeechOptions& options) {
  if (options.samples < 0)
    throw ArgumentError("speech_digits: samples must be 0 or more, got " + std::to_string(options.samples));
  const std::vector<Recording> recordings = find_recordings(folder);
  std::vector<std::string> speakers;
  speakers.reserve(recordings.size());
  for (const Recording& recording : recordings) speakers.push_back(recording.speaker);
  std::sort(speakers.begin(), speakers.end());
  speakers.erase(std::unique(speakers.begin(), speakers.end()), speakers.end());

  std::vector<Sound> train, test;
  int rate = 0;
  std::int64_t samples = options.samples;
  for (const Recording& recording : recordings) {
    const Wav wav = recording.bytes ? parse_wav(recording.path, *recording.bytes) : read_wav(recording.path);
    if (wav.samples.shape[1] != 1)
      detail::throw_io("speech_digits", recording.path, -1, "one channel", std::to_string(wav.samples.shape[1]));
    if (rate != 0 && wav.rate != rate)
      detail::throw_io("speech_digits", recording.path, -1,
                       std::to_string(rate) + " samples a second as in " + recordings.front().path,
                       std::to_string(wav.rate));
    rate = wav.rate;
    const auto values = wav.samples.as<float>();
    const auto speaker = std::lower_bound(speakers.begin(), speakers.end(), recording.speaker) - speakers.begin();
    if (options.samples == 0) samples = std::max(samples, wav.samples.shape[0]);
    (recording.take < options.test_takes ? test : train)
        .push_back({{values.begin(), values.end()}, recording.digit, static_cast<std::int32_t>(speaker)});
  }

  std::shared_ptr<const MelSpectrogram> mel;
  if (options.mel) {
    MelOptions wanted = *options.mel;
    if (wanted.rate == 0) wanted.rate = rate;
    if (wanted.rate != rate)
      throw ArgumentError("speech_digits: mel.rate must be 0 or that of the files, " + std::to_string(rate) + ", got " +
                          std::to_string(wanted.rate));
    mel = std::make_shared<const MelSpectrogram>(wanted);
  }
  Split split{std::make_shared<SpeechSet>(std::move(train), samples, mel, options.speaker),
              std::make_shared<SpeechSet>(std::move(test), samples, mel, options.speaker)};
  for (int digit = 0; digit < kDigits; ++digit) split.classes.push_back(std::to_string(digit));
  return split;
}

}  // namespace samebytes::data

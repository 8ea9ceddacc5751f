// WAV files, spectrograms against a plain Fourier sum, and the folder of spoken digits.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>
#include <numbers>
#include <thread>

#include "samebytes/data/spectrogram.h"
#include "samebytes/data/speech.h"
#include "samebytes/data/wav.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/io_errors.h"
#include "support/process.h"
#include "support/samples.h"

namespace samebytes::data {
namespace {

using testing::expect_io_error;
using testing::put;
using testing::Sample;
using testing::TemporaryFolder;
using namespace std::string_literals;

using Floats = std::vector<float>;

std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string format_chunk(unsigned code, unsigned channels, unsigned rate, unsigned bits, const std::string& more = "") {
  const unsigned block = channels * bits / 8;
  return "fmt " + little(16 + more.size(), 4) + little(code, 2) + little(channels, 2) + little(rate, 4) +
         little(rate * block, 4) + little(block, 2) + little(bits, 2) + more;
}

std::string riff(const std::string& chunks) { return "RIFF" + little(4 + chunks.size(), 4) + "WAVE" + chunks; }

std::string wav(const std::string& format, const std::string& samples) {
  return riff(format + "data" + little(samples.size(), 4) + samples);
}

Wav parse(const std::string& file) { return parse_wav("sound", std::as_bytes(std::span(file.data(), file.size()))); }

Floats values(const HostArray& array) {
  const auto span = array.as<float>();
  return {span.begin(), span.end()};
}

TEST(Wav, reads_every_width_as_one_range) {
  Wav sound = parse(wav(format_chunk(1, 1, 8000, 16), raw<std::int16_t>({0, 16384, -32768, 32767})));
  EXPECT_EQ(sound.rate, 8000);
  EXPECT_EQ(sound.samples.shape, (Shape{4, 1}));
  EXPECT_EQ(values(sound.samples), (Floats{0, 0.5f, -1, 32767 / 32768.0f}));
  EXPECT_EQ(values(parse(wav(format_chunk(1, 1, 8000, 8), "\x80\xc0\0\xff"s)).samples),
            (Floats{0, 0.5f, -1, 127 / 128.0f}));
  EXPECT_EQ(values(parse(wav(format_chunk(1, 1, 8000, 24), "\0\0\x40\0\0\x80\xff\xff\xff"s)).samples),
            (Floats{0.5f, -1, -1 / 8388608.0f}));
  EXPECT_EQ(values(parse(wav(format_chunk(1, 1, 8000, 32), raw<std::int32_t>({1 << 30, INT32_MIN}))).samples),
            (Floats{0.5f, -1}));
  EXPECT_EQ(values(parse(wav(format_chunk(3, 1, 8000, 32), raw<float>({0.25f, -2}))).samples), (Floats{0.25f, -2}));
  EXPECT_EQ(values(parse(wav(format_chunk(3, 1, 8000, 64), raw<double>({0.25, -2}))).samples), (Floats{0.25f, -2}));
  EXPECT_EQ(parse(wav(format_chunk(1, 1, 8000, 16), "")).samples.shape, (Shape{0, 1}));
}

TEST(Wav, reads_channels_extensible_formats_and_passes_other_chunks) {
  const std::string extra = little(22, 2) + little(16, 2) + little(3, 4) + little(1, 2) + std::string(14, 'g');
  Wav sound = parse(riff("LIST" + little(3, 4) + "odd\0"s + format_chunk(0xfffe, 2, 44100, 16, extra) + "fact" +
                         little(4, 4) + "1234" + "data" + little(8, 4) + raw<std::int16_t>({1, 2, 3, 4}) + "junk"));
  EXPECT_EQ(sound.rate, 44100);
  EXPECT_EQ(sound.samples.shape, (Shape{2, 2}));
  EXPECT_EQ(values(sound.samples), (Floats{1 / 32768.0f, 2 / 32768.0f, 3 / 32768.0f, 4 / 32768.0f}));
  sound = parse(riff(format_chunk(1, 1, 8000, 16) + "data" + little(0xffffffff, 4) + "\0\0\0\0\0"s));
  EXPECT_EQ(sound.samples.shape, (Shape{2, 1}));
}

TEST(Wav, reports_file_offset_and_expectation) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.wav";
  const auto with = [&](const std::string& file, std::int64_t offset, std::initializer_list<const char*> parts) {
    put(path, file);
    expect_io_error([&] { read_wav(path); }, path, offset, parts);
  };
  const std::string good = wav(format_chunk(1, 1, 8000, 16), raw<std::int16_t>({1, 2, 3, 4}));
  expect_io_error([&] { read_wav(path); }, path, -1, {"No such file"});
  with("", 0, {"the letters RIFF", "end of the file"});
  with("OggS and more", 0, {"the letters RIFF", "'OggS'"});
  with("RIFF\1\0\0\0AVI "s, 8, {"the letters WAVE", "'AVI '"});
  with(good.substr(0, 12), 12, {"a chunk 'fmt '", "end of the file"});
  with(good.substr(0, 30), 30, {"16 bytes of chunk 'fmt '", "found 10"});
  with(good.substr(0, 36), 36, {"a chunk 'data'", "end of the file"});
  with(good.substr(0, 38), 38, {"a chunk 'data'"});
  with(good.substr(0, 49), 49, {"8 bytes of chunk 'data'", "found 5"});
  with(riff("data" + little(2, 4) + "ab"), 12, {"a chunk 'fmt ' before"});
  with(wav(format_chunk(6, 1, 8000, 8), "ab"), 20, {"coding 1", "coding 6 of 8 bits"});
  with(wav(format_chunk(1, 1, 8000, 12), "ab"), 20, {"coding 1 of 12 bits"});
  with(wav(format_chunk(1, 0, 8000, 16), "ab"), 22, {"one channel or more"});
  with(wav(format_chunk(1, 1, 0, 16), "ab"), 24, {"samples a second"});
  with(wav(format_chunk(1, 2, 8000, 16), "abc"), 40, {"a multiple of 4 bytes", "found 3"});
  std::string block = good;
  block[32] = 7;
  with(block, 32, {"2 bytes for one value", "found 7"});
  with(riff("fmt " + little(8, 4) + "12345678"), 16, {"16 bytes or more", "found 8"});
  with(wav(format_chunk(0xfffe, 1, 8000, 16), "ab"), 16, {"40 bytes of an extensible format"});
}

// |sum window x exp|^power of one frame, term by term.
std::vector<double> plain_frame(const Floats& sound, const SpectrogramOptions& o, std::int64_t frame) {
  const int window = o.window ? o.window : o.fft, hop = o.hop ? o.hop : window / 2;
  std::vector<double> result;
  for (int k = 0; k <= o.fft / 2; ++k) {
    std::complex<double> sum = 0;
    for (int n = 0; n < o.fft; ++n) {
      std::int64_t place = frame * hop + n - (o.centre ? o.fft / 2 : 0);
      const auto samples = static_cast<std::int64_t>(sound.size());
      if (o.reflect) place = place < 0 ? -place : place >= samples ? 2 * samples - 2 - place : place;
      if (place < 0 || place >= samples) continue;
      const int m = n - (o.fft - window) / 2;
      if (m < 0 || m >= window) continue;
      const double weight = std::pow(std::sin(std::numbers::pi * m / window), 2);
      const double angle = -2 * std::numbers::pi * k * n / o.fft;
      sum += weight * static_cast<double>(sound[static_cast<std::size_t>(place)]) *
             std::complex(std::cos(angle), std::sin(angle));
    }
    result.push_back(std::pow(std::abs(sum), o.power));
  }
  return result;
}

Floats some_sound(std::size_t samples) {
  Floats sound;
  for (std::size_t i = 0; i < samples; ++i)
    sound.push_back(std::sin(0.37f * static_cast<float>(i)) + 0.3f * static_cast<float>((i * 7919) % 13) / 13);
  return sound;
}

TEST(Spectrogram, is_the_windowed_fourier_sum) {
  const Floats sound = some_sound(61);
  for (const SpectrogramOptions& options :
       {SpectrogramOptions{.fft = 16}, SpectrogramOptions{.fft = 22, .window = 13, .hop = 5, .power = 1},
        SpectrogramOptions{.fft = 15, .hop = 7, .reflect = false},
        SpectrogramOptions{.fft = 20, .hop = 3, .centre = false}, SpectrogramOptions{.fft = 2}}) {
    const Spectrogram spectrogram(options);
    const HostArray result = spectrogram(sound);
    const int hop = spectrogram.options().hop;
    const std::int64_t frames = 1 + (options.centre ? 61 : 61 - options.fft) / hop;
    ASSERT_EQ(result.shape, (Shape{frames, options.fft / 2 + 1})) << options.fft;
    const std::span<const float> got = result.as<float>();
    for (std::int64_t frame = 0; frame < frames; ++frame) {
      const std::vector<double> wanted = plain_frame(sound, options, frame);
      for (std::size_t k = 0; k < wanted.size(); ++k)
        EXPECT_NEAR(static_cast<double>(got[static_cast<std::size_t>(frame) * wanted.size() + k]), wanted[k],
                    1e-5 * (1 + wanted[k]))
            << "fft " << options.fft << " frame " << frame << " bin " << k;
    }
  }
}

TEST(Spectrogram, mel_scales_have_their_published_values) {
  EXPECT_NEAR(hz_to_mel(1000), 999.9855, 1e-4);
  EXPECT_NEAR(hz_to_mel(60, MelScale::slaney), 0.9, 1e-12);  // librosa.hz_to_mel's own examples
  EXPECT_NEAR(hz_to_mel(440, MelScale::slaney), 6.6, 1e-12);
  // librosa.mel_frequencies(n_mels=40) up to 11025 Hz, its first, thirteenth and last but one
  const double top = hz_to_mel(11025, MelScale::slaney);
  EXPECT_NEAR(mel_to_hz(top / 39, MelScale::slaney), 85.317, 1e-3);
  EXPECT_NEAR(mel_to_hz(top * 12 / 39, MelScale::slaney), 1024.856, 1e-3);
  EXPECT_NEAR(mel_to_hz(top * 38 / 39, MelScale::slaney), 10096.408, 1e-3);
  for (const MelScale scale : {MelScale::htk, MelScale::slaney})
    for (const double hz : {0.0, 300.0, 1000.0, 7777.0}) EXPECT_NEAR(mel_to_hz(hz_to_mel(hz, scale), scale), hz, 1e-9);
}

TEST(Spectrogram, mel_filters_are_triangles_over_the_bins) {
  const Floats sound = some_sound(300);
  const SpectrogramOptions spectrum{.fft = 128, .hop = 50};
  const HostArray powers = Spectrogram(spectrum)(sound);
  for (const bool area : {false, true}) {
    const MelSpectrogram mel(
        {.rate = 8000, .mels = 5, .low = 100, .high = 3500, .area = area, .log = false, .spectrum = spectrum});
    const HostArray result = mel(sound);
    ASSERT_EQ(result.shape, (Shape{7, 5}));
    for (std::size_t m = 0; m < 5; ++m) {
      const auto corner = [&](double i) {
        return mel_to_hz(hz_to_mel(100) + (hz_to_mel(3500) - hz_to_mel(100)) * i / 6);
      };
      const double from = corner(static_cast<double>(m)), at = corner(static_cast<double>(m) + 1),
                   to = corner(static_cast<double>(m) + 2);
      double wanted = 0;
      for (std::size_t k = 0; k < 65; ++k) {
        const double hz = static_cast<double>(k) * 8000 / 128;
        const double weight = std::max(0.0, std::min((hz - from) / (at - from), (to - hz) / (to - at)));
        wanted += weight * static_cast<double>(powers.as<float>()[3 * 65 + k]) * (area ? 2 / (to - from) : 1);
      }
      EXPECT_NEAR(static_cast<double>(result.as<float>()[3 * 5 + m]), wanted, 1e-5 * (1 + wanted)) << m;
    }
  }
  const MelSpectrogram logarithm({.rate = 8000, .mels = 5, .floor = 1e-3, .spectrum = spectrum});
  EXPECT_FLOAT_EQ(logarithm(Floats(300)).as<float>()[0], std::log(1e-3f));
}

TEST(Spectrogram, says_what_is_wrong_with_its_options) {
  EXPECT_ERROR(Spectrogram({.fft = 0}), ArgumentError, "spectrogram: fft must be 1 or more, got 0");
  EXPECT_ERROR(Spectrogram({.fft = 8, .window = 9}), ArgumentError,
               "spectrogram: expected a window of at most 8 samples (fft), got 9");
  EXPECT_ERROR(Spectrogram({.hop = -1}), ArgumentError, "spectrogram: hop must be 1 or more, got -1");
  EXPECT_ERROR(Spectrogram({.power = 3}), ArgumentError, "spectrogram: power must be 1 or 2, got 3.000000");
  EXPECT_ERROR(Spectrogram({.fft = 8}).frames(4), ArgumentError,
               "spectrogram: expected a sound of at least 5 samples, got 4");
  EXPECT_ERROR(Spectrogram({.fft = 8, .centre = false}).frames(7), ArgumentError,
               "spectrogram: expected a sound of at least 8 samples, got 7");
  EXPECT_EQ(Spectrogram({.fft = 8, .reflect = false}).frames(1), 1);
  EXPECT_ERROR(
      MelSpectrogram({.rate = 8000, .high = 5000}), ArgumentError,
      "mel_spectrogram: expected 0 <= low < high <= rate / 2 = 4000.000000 Hz, got low 0.000000 and high 5000.000000");
  EXPECT_ERROR(MelSpectrogram({.floor = 0}), ArgumentError, "mel_spectrogram: floor must be above 0, got 0.000000");
  EXPECT_ERROR(MelSpectrogram({.mels = 128, .spectrum = {.fft = 64}}), ArgumentError,
               "mel_spectrogram: every filter wants a bin, filter 0 from 0.000000 to 27.890097 Hz has none; ask for "
               "fewer mels or a larger fft");
  Floats room(3);
  EXPECT_ERROR(MelSpectrogram().apply(Floats(400), room), ArgumentError,
               "mel_spectrogram: expected room for 120 values, got 3");
}

TEST(Spectrogram, may_be_shared_by_threads) {
  const MelSpectrogram mel({.mels = 3, .spectrum = {.fft = 77}});  // 77: a size that needs scratch memory
  const Floats sound = some_sound(500);
  const HostArray wanted = mel(sound);
  std::vector<HostArray> got(3);
  std::vector<std::thread> threads;
  for (HostArray& one : got)
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) one = mel(sound);
    });
  for (std::thread& thread : threads) thread.join();
  for (const HostArray& one : got) EXPECT_EQ(one.bytes, wanted.bytes);
}

void put_sound(const std::string& path, const std::vector<std::int16_t>& samples, unsigned rate = 8000) {
  put(path, wav(format_chunk(1, 1, rate, 16), raw(samples)));
}

TEST(SpeechDigits, takes_label_speaker_and_part_from_the_name) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "recordings");
  put_sound(folder / "recordings/7_theo_0.wav", {16384});
  put_sound(folder / "recordings/7_theo_5.wav", {16384, -16384, 0, 8192});
  put_sound(folder / "recordings/3_anna_12.wav", {-16384, 16384});
  put(folder / "recordings/readme.md", "not a sound");
  const Split set = speech_digits(folder.string(), {.speaker = true});
  EXPECT_EQ(set.train->size(), 2);
  EXPECT_EQ(set.test->size(), 1);
  EXPECT_EQ(set.classes.size(), 10u);
  EXPECT_EQ(set.train->fields()[0].shape, (Shape{4, 1}));
  const Sample first(*set.train, 0), second(*set.train, 1), test(*set.test, 0);
  EXPECT_EQ(first.values<float>(0), (Floats{-0.5f, 0.5f, 0, 0}));
  EXPECT_EQ(first.value<std::int32_t>(1), 3);
  EXPECT_EQ(first.value<std::int32_t>(2), 0);
  EXPECT_EQ(second.value<std::int32_t>(1), 7);
  EXPECT_EQ(second.value<std::int32_t>(2), 1);
  EXPECT_EQ(test.values<float>(0), (Floats{0.5f, 0, 0, 0}));
  const Split cut = speech_digits(folder.string(), {.samples = 2, .test_takes = 0});
  EXPECT_EQ(cut.train->size(), 3);
  EXPECT_EQ(cut.train->fields().size(), 2u);
  EXPECT_EQ(Sample(*cut.train, 2).values<float>(0), (Floats{0.5f, -0.5f}));
}

TEST(SpeechDigits, reports_wrong_names_and_files) {
  const TemporaryFolder folder;
  const auto act = [&] { speech_digits(folder.string()); };
  expect_io_error([&] { speech_digits(folder / "absent"); }, folder / "absent", -1, {"a folder with files"});
  expect_io_error(act, folder.string(), -1, {"a folder with files", "none"});
  for (const char* name : {"10_theo_1.wav", "seven_theo_1.wav", "7_theo.wav", "7_theo_x.wav", "7__1.wav"}) {
    put_sound(folder / name, {1});
    expect_io_error(act, folder / name, -1, {"a name {digit}_{speaker}_{take}.wav"});
    std::filesystem::remove(folder / name);
  }
  put_sound(folder / "1_a_1.wav", {1});
  put_sound(folder / "2_a_1.wav", {1}, 16000);
  expect_io_error(act, folder / "2_a_1.wav", -1, {"8000 samples a second", "found 16000"});
  put(folder / "2_a_1.wav", wav(format_chunk(1, 2, 8000, 16), "abcd"));
  expect_io_error(act, folder / "2_a_1.wav", -1, {"one channel", "found 2"});
  put(folder / "2_a_1.wav", "RIFF");
  expect_io_error(act, folder / "2_a_1.wav", 4, {"end of the file"});
  put_sound(folder / "2_a_1.wav", {1});
  EXPECT_ERROR(speech_digits(folder.string(), {.samples = -1}), ArgumentError,
               "speech_digits: samples must be 0 or more, got -1");
  EXPECT_ERROR(speech_digits(folder.string(), {.mel = MelOptions{.rate = 16000}}), ArgumentError,
               "speech_digits: mel.rate must be 0 or that of the files, 8000, got 16000.000000");
}

// An empty member whose name is a path of this machine: nothing is read from there.
TEST(SpeechDigits, names_in_archives_are_no_paths) {
  const TemporaryFolder folder, elsewhere;
  const std::string secret = elsewhere / "1_secret_7.wav";
  put(secret, "");
  ASSERT_EQ(testing::run_program({"tar", "-P", "-cf", folder / "sounds.tar", secret}).status, 0);
  put_sound(secret, {1});
  EXPECT_THROW(speech_digits(folder.string()), IoError);
}

TEST(SpeechDigits, links_in_archives_are_not_followed) {
  const TemporaryFolder folder, elsewhere;
  put_sound(elsewhere / "1_secret_7.wav", {1});
  std::filesystem::create_symlink(elsewhere / "1_secret_7.wav", elsewhere / "1_link_7.wav");
  ASSERT_EQ(
      testing::run_program({"tar", "-C", elsewhere.string(), "-cf", folder / "sounds.tar", "1_link_7.wav"}).status, 0);
  EXPECT_THROW(speech_digits(folder.string()), IoError);
}

TEST(SpeechDigits, an_archive_that_unpacks_to_far_more_than_its_size_is_refused) {
  const TemporaryFolder folder, elsewhere;
  std::filesystem::resize_file((put(elsewhere / "1_long_7.wav", ""), elsewhere / "1_long_7.wav"), 70 << 20);
  ASSERT_EQ(
      testing::run_program({"tar", "-C", elsewhere.string(), "-czf", folder / "sounds.tar.gz", "1_long_7.wav"}).status,
      0);
  try {
    speech_digits(folder.string());
    ADD_FAILURE() << "threw nothing";
  } catch (const IoError& error) {
    EXPECT_NE(std::string(error.what()).find("expected at most 67108864 bytes from an archive of "), std::string::npos)
        << error.what();
  }
}

TEST(SpeechDigits, reports_a_damaged_archive) {
  const TemporaryFolder folder;
  put(folder / "sounds.tar.gz", std::string("\x1f\x8b\x08\0\0\0\0\0\0\0nonsense", 18));
  try {
    speech_digits(folder.string());
    ADD_FAILURE() << "threw nothing";
  } catch (const IoError& error) {
    EXPECT_EQ(error.path(), folder / "sounds.tar.gz");
    EXPECT_NE(std::string(error.what()).find("expected a whole archive"), std::string::npos) << error.what();
  }
}

TEST(SpeechDigits, reads_the_real_recordings) {
  const std::string folder = testing::data_folder("speech_digits");  // one archive
  if (!std::filesystem::exists(folder + "/fsdd_subset.tar.gz"))
    GTEST_SKIP() << "no archive in " << folder << "; set SAMEBYTES_DATA";
  const Split set = speech_digits(
      folder, {.samples = 8000, .mel = MelOptions{.rate = 0, .mels = 32, .spectrum = {.fft = 256, .hop = 128}}});
  EXPECT_EQ(set.train->size(), 480);
  EXPECT_EQ(set.test->size(), 300);
  EXPECT_EQ(set.train->fields()[0].shape, (Shape{63, 32}));
  std::vector<int> counts(10);
  for (std::int64_t i = 0; i < 300; ++i) {
    const Sample sample(*set.test, i);
    ++counts.at(static_cast<std::size_t>(sample.value<std::int32_t>(1)));
    for (const float value : sample.values<float>(0)) ASSERT_TRUE(std::isfinite(value));
  }
  EXPECT_EQ(counts, std::vector<int>(10, 30));
  EXPECT_EQ(speech_digits(folder).train->fields()[0].shape[1], 1);
}

}  // namespace
}  // namespace samebytes::data

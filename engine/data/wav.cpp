#include "samebytes/data/wav.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/io_error.h"
#include "samebytes/io/files.h"

namespace samebytes::data {
namespace {

static_assert(std::endian::native == std::endian::little, "WAV stores numbers as this machine has them");

constexpr unsigned kWhole = 1, kFloat = 3, kExtensible = 0xfffe;
constexpr std::uint32_t kUnknownSize = 0xffffffff;  // written if the output was a pipe

struct Format {
  unsigned code = 0, channels = 0, bits = 0, block = 0;
  std::uint32_t rate = 0;
};

class Reader {
 public:
  Reader(std::string_view name, std::span<const std::byte> bytes) : name_(name), bytes_(bytes) {}

  Wav read() {
    if (word(0, "the letters RIFF") != "RIFF") fail(0, "the letters RIFF", quoted(word(0, "")));
    (void)number<std::uint32_t>(4, "the size of the file");
    if (word(8, "the letters WAVE") != "WAVE") fail(8, "the letters WAVE", quoted(word(8, "")));
    std::size_t place = 12;
    Format format;
    while (true) {
      const std::string id = word(place, format.code == 0 ? "a chunk 'fmt '" : "a chunk 'data'");
      const auto size = number<std::uint32_t>(place + 4, "the size of chunk " + quoted(id));
      const std::size_t begin = place + 8, rest = bytes_.size() - begin;
      const bool is_open = id == "data" && size == kUnknownSize;
      if (size > rest && !is_open)
        fail(bytes_.size(), std::to_string(size) + " bytes of chunk " + quoted(id), std::to_string(rest));
      if (id == "data") {
        if (format.code == 0) fail(place, "a chunk 'fmt ' before the samples", "'data'");
        return decode(format, begin, is_open ? rest / format.block * format.block : size);
      }
      if (id == "fmt ") format = read_format(begin, size);
      place = begin + size + size % 2;  // a chunk of odd size is followed by one byte of padding
    }
  }

 private:
  [[noreturn]] void fail(std::size_t offset, const std::string& expected, const std::string& found) const {
    detail::throw_io("wav", std::string(name_), static_cast<std::int64_t>(offset), expected, found);
  }
  void need(std::size_t place, std::size_t count, const std::string& what) const {
    if (place > bytes_.size() || bytes_.size() - place < count) fail(bytes_.size(), what, "the end of the file");
  }
  template <class T>
  T number(std::size_t place, const std::string& what) const {
    need(place, sizeof(T), what);
    T value;
    std::memcpy(&value, bytes_.data() + place, sizeof value);
    return value;
  }
  std::string word(std::size_t place, const std::string& what) const {
    constexpr std::size_t kLetters = 4;
    need(place, kLetters, what);
    return {reinterpret_cast<const char*>(bytes_.data() + place), kLetters};
  }
  // Letters of a damaged file may be anything.
  static std::string quoted(const std::string& text) {
    std::string result(1, '\'');
    for (const char c : text) result += c >= ' ' && c <= '~' ? c : '?';
    return result + '\'';
  }

  Format read_format(std::size_t place, std::uint32_t size) const {
    constexpr std::uint32_t kPlain = 16, kWithSubformat = 40;
    if (size < kPlain) fail(place - 4, "a chunk 'fmt ' of 16 bytes or more", std::to_string(size));
    Format format{.code = number<std::uint16_t>(place, ""),
                  .channels = number<std::uint16_t>(place + 2, ""),
                  .bits = number<std::uint16_t>(place + 14, ""),
                  .block = number<std::uint16_t>(place + 12, ""),
                  .rate = number<std::uint32_t>(place + 4, "")};
    if (format.code == kExtensible) {
      if (size < kWithSubformat) fail(place - 4, "40 bytes of an extensible format", std::to_string(size));
      format.code = number<std::uint16_t>(place + 24, "");
    }
    const bool is_whole =
        format.code == kWhole && (format.bits == 8 || format.bits == 16 || format.bits == 24 || format.bits == 32);
    const bool is_float = format.code == kFloat && (format.bits == 32 || format.bits == 64);
    if (!is_whole && !is_float)
      fail(place, "coding 1 (whole numbers of 8, 16, 24 or 32 bits) or 3 (floats of 32 or 64 bits)",
           "coding " + std::to_string(format.code) + " of " + std::to_string(format.bits) + " bits");
    if (format.channels == 0) fail(place + 2, "one channel or more", "0");
    if (format.rate == 0 || format.rate > static_cast<std::uint32_t>(INT32_MAX))
      fail(place + 4, "a number of samples a second", std::to_string(format.rate));
    if (format.block != format.channels * format.bits / 8)
      fail(place + 12, std::to_string(format.channels * format.bits / 8) + " bytes for one value of each channel",
           std::to_string(format.block));
    return format;
  }

  Wav decode(const Format& format, std::size_t begin, std::size_t size) const {
    if (size % format.block != 0)
      fail(begin - 4, "a multiple of " + std::to_string(format.block) + " bytes of samples", std::to_string(size));
    Wav wav;
    wav.rate = static_cast<int>(format.rate);
    wav.samples = HostArray(Shape{static_cast<std::int64_t>(size / format.block), format.channels}, f32);
    const std::span<float> dst = wav.samples.as<float>();
    const std::byte* src = bytes_.data() + begin;
    if (format.code == kFloat && format.bits == 32) {
      if (size > 0) std::memcpy(dst.data(), src, size);
    } else if (format.code == kFloat) {
      convert<double>(src, dst, [](double value) { return static_cast<float>(value); });
    } else if (format.bits == 8) {
      convert<std::uint8_t>(src, dst, [](std::uint8_t value) { return (static_cast<float>(value) - 128.0f) / 128.0f; });
    } else if (format.bits == 16) {
      convert<std::int16_t>(src, dst, [](std::int16_t value) { return static_cast<float>(value) / 32768.0f; });
    } else if (format.bits == 24) {
      for (std::size_t i = 0; i < dst.size(); ++i) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, src + 3 * i, 3);
        dst[i] = static_cast<float>(static_cast<std::int32_t>(bits << 8)) / 2147483648.0f;
      }
    } else {
      convert<std::int32_t>(src, dst, [](std::int32_t value) { return static_cast<float>(value) / 2147483648.0f; });
    }
    return wav;
  }

  template <class T, class Act>
  static void convert(const std::byte* src, std::span<float> dst, Act act) {
    for (std::size_t i = 0; i < dst.size(); ++i) {
      T value;
      std::memcpy(&value, src + i * sizeof(T), sizeof value);
      dst[i] = act(value);
    }
  }

  std::string_view name_;
  std::span<const std::byte> bytes_;
};

}  // namespace

Wav parse_wav(std::string_view name, std::span<const std::byte> bytes) { return Reader(name, bytes).read(); }

Wav read_wav(const std::string& path) { return parse_wav(path, io::read_file(path)); }

}  // namespace samebytes::data

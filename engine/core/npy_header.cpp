#include "core/npy_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "core/io_error.h"

namespace samebytes::detail {
namespace {

struct Entries {
  std::string descr;
  bool fortran = false;
  std::vector<std::int64_t> sizes;
};

// Reads the Python dictionary {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class HeaderParser {
 public:
  HeaderParser(const std::string& path, std::string_view text, std::size_t offset)
      : path_(path), text_(text), offset_(offset) {}

  Entries parse() {
    Entries header;
    bool descr = false, fortran = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        header.descr = string();
        descr = true;
      } else if (key == "fortran_order") {
        header.fortran = boolean();
        fortran = true;
      } else if (key == "shape") {
        header.sizes = tuple();
        shape = true;
      } else {
        fail("a key descr, fortran_order or shape");
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!descr || !fortran || !shape) fail("the keys descr, fortran_order and shape");
    return header;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    const std::string rest(text_.substr(place_, 24));
    throw_io("npy", path_, static_cast<std::int64_t>(offset_ + place_), expected,
             rest.empty() ? "the end of the header" : "'" + rest + "'");
  }
  void blanks() {
    while (place_ < text_.size() && (text_[place_] == ' ' || text_[place_] == '\n')) ++place_;
  }
  bool accept(char c) {
    blanks();
    if (place_ >= text_.size() || text_[place_] != c) return false;
    ++place_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("'") + c + "'");
  }
  std::string string() {
    blanks();
    const char quote = place_ < text_.size() ? text_[place_] : '\0';
    if (quote != '\'' && quote != '"') fail("a string (structured types cannot be read)");
    const std::size_t end = text_.find(quote, place_ + 1);
    if (end == std::string_view::npos) fail("a closing quote");
    std::string result(text_.substr(place_ + 1, end - place_ - 1));
    place_ = end + 1;
    return result;
  }
  bool boolean() {
    blanks();
    for (const bool value : {false, true}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(place_, word.size()) != word) continue;
      place_ += word.size();
      return value;
    }
    fail("True or False");
  }
  std::vector<std::int64_t> tuple() {
    std::vector<std::int64_t> sizes;
    expect('(');
    while (!accept(')')) {
      std::int64_t size = 0;
      const std::size_t start = place_;
      while (place_ < text_.size() && text_[place_] >= '0' && text_[place_] <= '9') {
        if (size > std::numeric_limits<std::int64_t>::max() / 10 - 1) fail("a size that fits 64 bits");
        size = size * 10 + (text_[place_++] - '0');
      }
      if (place_ == start) fail("a size");
      if (sizes.size() == Shape::kMaxRank) fail("at most 8 axes");
      sizes.push_back(size);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return sizes;
  }

  const std::string& path_;
  std::string_view text_;
  std::size_t offset_, place_ = 0;
};

static_assert(std::endian::native == std::endian::little, "values are stored as this machine has them");

// Reorders values from first index fastest to last index fastest.
std::vector<std::byte> from_fortran(std::span<const std::byte> src, std::span<const std::int64_t> sizes,
                                    std::size_t width) {
  std::vector<std::byte> dst(src.size());
  std::vector<std::int64_t> index(sizes.size(), 0), stride(sizes.size(), 1);
  for (std::size_t axis = sizes.size() - 1; axis-- > 0;) stride[axis] = stride[axis + 1] * sizes[axis + 1];
  std::int64_t to = 0;
  for (std::size_t from = 0; from < src.size(); from += width) {
    std::memcpy(dst.data() + static_cast<std::size_t>(to) * width, src.data() + from, width);
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      to += stride[axis];
      if (++index[axis] < sizes[axis]) break;
      to -= stride[axis] * sizes[axis];
      index[axis] = 0;
    }
  }
  return dst;
}

}  // namespace

bool is_big_endian(const NpyHeader& header, std::size_t width) { return header.descr.front() == '>' && width > 1; }

bool is_first_index_fastest(const NpyHeader& header) {
  return header.fortran && header.sizes.size() > 1 &&
         std::find(header.sizes.begin(), header.sizes.end(), 0) == header.sizes.end();
}

NpyHeader read_npy_header(const std::string& path, std::span<const std::byte> file) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.substr(0, kNpyMagic.size()) != kNpyMagic)
    throw_io("npy", path, 0, "the magic \\x93NUMPY", file.size() < kNpyMagic.size() ? "a shorter file" : "other bytes");
  constexpr std::size_t kVersion = 6;
  const auto byte = [&](std::size_t i) {
    if (i >= file.size())
      throw_io("npy", path, static_cast<std::int64_t>(file.size()), "a header", "the end of the file");
    return std::to_integer<std::size_t>(file[i]);
  };
  const std::size_t major = byte(kVersion);
  (void)byte(kVersion + 1);
  if (major < 1 || major > 3) throw_io("npy", path, kVersion, "version 1, 2 or 3", std::to_string(major));
  std::size_t length = byte(8) | byte(9) << 8, begin = 10;
  if (major > 1) {
    length |= byte(10) << 16 | byte(11) << 24;
    begin = 12;
  }
  if (file.size() - begin < length)
    throw_io("npy", path, static_cast<std::int64_t>(file.size()), "a header of " + std::to_string(length) + " bytes",
             "the end of the file");
  Entries entries = HeaderParser(path, text.substr(begin, length), begin).parse();
  return {std::move(entries.descr), entries.fortran, std::move(entries.sizes), begin, begin + length};
}

void check_npy_size(const std::string& path, std::span<const std::byte> file, const NpyHeader& header,
                    std::size_t width) {
  const std::uint64_t need = bytes_of_sizes(header.sizes, width);
  const std::size_t have = file.size() - header.start;
  if (have != need)
    throw_io("npy", path, static_cast<std::int64_t>(file.size()),
             std::to_string(need) + " bytes of values for shape " + text_of_sizes(header.sizes), std::to_string(have));
}

std::vector<std::byte> npy_values(std::span<const std::byte> file, const NpyHeader& header, std::size_t width) {
  std::vector<std::byte> values(file.begin() + static_cast<std::ptrdiff_t>(header.start), file.end());
  if (is_big_endian(header, width))
    for (std::size_t i = 0; i < values.size(); i += width)
      std::reverse(values.begin() + static_cast<std::ptrdiff_t>(i),
                   values.begin() + static_cast<std::ptrdiff_t>(i + width));
  return is_first_index_fastest(header) ? from_fortran(values, header.sizes, width) : values;
}

std::string npy_header_text(std::string_view descr, std::span<const std::int64_t> sizes) {
  std::string header = "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t size : sizes) header += std::to_string(size) + ", ";
  if (sizes.size() > 1) header.resize(header.size() - 2);
  if (sizes.size() == 1) header.pop_back();
  header += "), }";
  constexpr std::size_t kPrefix = 10, kAlignment = 64;
  header.append(kAlignment - (kPrefix + header.size() + 1) % kAlignment, ' ');
  header += '\n';
  std::string text(kNpyMagic);
  text += '\1';
  text += '\0';
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  return text + header;
}

}  // namespace samebytes::detail

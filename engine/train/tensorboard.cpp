// TensorBoard's event files: records framed as in TensorFlow's tfrecord (length, its checksum, bytes, their checksum;
// checksums are CRC-32C, masked), each an Event message of event.proto in protocol buffers' wire format.
#include "samebytes/tensorboard.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <vector>

#include "core/files.h"
#include "samebytes/error.h"

namespace samebytes {
namespace {

constexpr double kFlushSeconds = 2;

// ---- protocol buffers: a field is its number and wire type, then a varint, 8 or 4 bytes, or a length and bytes

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

template <class T>
void put_little_endian(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i) out += static_cast<char>(value >> (8 * i));
}

void put_integer(std::string& out, int field, std::int64_t value) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3);
  put_varint(out, static_cast<std::uint64_t>(value));
}

void put_double(std::string& out, int field, double value) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | 1);
  put_little_endian(out, std::bit_cast<std::uint64_t>(value));
}

void put_float(std::string& out, int field, float value) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | 5);
  put_little_endian(out, std::bit_cast<std::uint32_t>(value));
}

void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string packed_doubles(std::span<const double> values) {
  std::string out;
  for (const double value : values) put_little_endian(out, std::bit_cast<std::uint64_t>(value));
  return out;
}

// ---- records

std::uint32_t crc32c(std::string_view bytes) {
  static const auto table = [] {
    std::array<std::uint32_t, 256> made{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      made[i] = i;
      for (int bit = 0; bit < 8; ++bit) made[i] = (made[i] >> 1) ^ ((made[i] & 1) ? 0x82f63b78u : 0);
    }
    return made;
  }();
  std::uint32_t crc = 0xffffffffu;
  for (const char c : bytes) crc = (crc >> 8) ^ table[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  return ~crc;
}

std::uint32_t masked(std::uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Value of summary.proto, but for its tag: which plugin shows it.
std::string with_plugin(std::string value, std::string_view plugin) {
  std::string data, metadata;
  put_bytes(data, 1, plugin);
  put_bytes(metadata, 1, data);
  put_bytes(value, 9, metadata);
  return value;
}

}  // namespace

SummaryWriter::SummaryWriter(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::array<char, 256> host{"localhost"};
  ::gethostname(host.data(), host.size() - 1);
  const std::string name = "events.out.tfevents." + std::to_string(static_cast<std::int64_t>(wall_seconds())) + "." +
                           host.data() + "." + std::to_string(::getpid());
  path_ = (std::filesystem::path(folder) / name).string();
  // Two runs of one process in one second do not share a file, and whoever knows the name may have put a link there.
  const auto is_taken = [this] {
    file_.reset(detail::open_to_write("tensorboard", path_, O_EXCL));
    return !file_ && errno == EEXIST;
  };
  for (int i = 1; is_taken(); ++i) path_ = (std::filesystem::path(folder) / (name + "." + std::to_string(i))).string();
  if (!file_) throw IoError("tensorboard: " + path_ + " cannot be written: " + std::strerror(errno), path_);
  std::string event;
  put_double(event, 1, wall_seconds());
  put_bytes(event, 3, "brain.Event:2");
  write_event(event);
  flush();
}

void SummaryWriter::write_event(std::string_view event) {
  std::string record;
  put_little_endian(record, static_cast<std::uint64_t>(event.size()));
  put_little_endian(record, masked(crc32c(record)));
  record += event;
  put_little_endian(record, masked(crc32c(event)));
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) != record.size())
    throw IoError("tensorboard: writing " + path_ + " failed: " + std::strerror(errno), path_);
  if (wall_seconds() - flushed_at_ > kFlushSeconds) flush();
}

void SummaryWriter::flush() {
  if (std::fflush(file_.get()) != 0)
    throw IoError("tensorboard: writing " + path_ + " failed: " + std::strerror(errno), path_);
  flushed_at_ = wall_seconds();
}

void SummaryWriter::write_summary(std::string_view value, std::int64_t step) {
  std::string summary, event;
  put_bytes(summary, 1, value);
  put_double(event, 1, wall_seconds());
  put_integer(event, 2, step);
  put_bytes(event, 5, summary);
  write_event(event);
}

void SummaryWriter::scalar(std::string_view tag, double value, std::int64_t step) {
  std::string entry;
  put_bytes(entry, 1, tag);
  put_float(entry, 2, static_cast<float>(value));
  write_summary(with_plugin(std::move(entry), "scalars"), step);
}

void SummaryWriter::histogram(std::string_view tag, std::span<const float> values, std::int64_t step, int buckets) {
  if (buckets < 1) throw ArgumentError("histogram: buckets must be 1 or more, got " + std::to_string(buckets));
  double low = 0, high = 0, sum = 0, squares = 0, count = 0;
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    low = count == 0 ? value : std::min<double>(low, value);
    high = count == 0 ? value : std::max<double>(high, value);
    sum += value;
    squares += static_cast<double>(value) * value;
    ++count;
  }
  const double width = high > low ? (high - low) / buckets : 1;
  std::vector<double> limits, counts(static_cast<std::size_t>(buckets), 0);
  for (int i = 1; i <= buckets; ++i) limits.push_back(low + width * i);
  for (const float value : values) {
    if (!std::isfinite(value)) continue;
    const auto bucket = static_cast<std::ptrdiff_t>((value - low) / width);
    ++counts[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(bucket, 0, buckets - 1))];
  }
  std::string histogram, entry;
  put_double(histogram, 1, low);
  put_double(histogram, 2, high);
  put_double(histogram, 3, count);
  put_double(histogram, 4, sum);
  put_double(histogram, 5, squares);
  put_bytes(histogram, 6, packed_doubles(limits));
  put_bytes(histogram, 7, packed_doubles(counts));
  put_bytes(entry, 1, tag);
  put_bytes(entry, 5, histogram);
  write_summary(with_plugin(std::move(entry), "histograms"), step);
}

void SummaryWriter::text(std::string_view tag, std::string_view text, std::int64_t step) {
  constexpr int kString = 7;  // DT_STRING of types.proto
  std::string shape, axis, tensor, entry;
  put_integer(axis, 1, 1);
  put_bytes(shape, 2, axis);
  put_integer(tensor, 1, kString);
  put_bytes(tensor, 2, shape);
  put_bytes(tensor, 8, text);
  put_bytes(entry, 1, tag);
  put_bytes(entry, 8, tensor);
  write_summary(with_plugin(std::move(entry), "text"), step);
}

}  // namespace samebytes

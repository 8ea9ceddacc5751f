#include "core/embedded.h"

#include <zlib.h>

#include "samebytes/error.h"

namespace samebytes::detail {

EmbeddedFiles::EmbeddedFiles(std::string_view packed, std::span<const EmbeddedEntry> entries) {
  constexpr int kGzipWindow = 15 + 16;
  std::size_t size = 0;
  for (const EmbeddedEntry& entry : entries) size += entry.size;
  bytes_.resize(size);
  z_stream stream{};
  bool is_whole = inflateInit2(&stream, kGzipWindow) == Z_OK;
  if (is_whole) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));  // zlib only reads it
    stream.avail_in = static_cast<uInt>(packed.size());
    stream.next_out = reinterpret_cast<Bytef*>(bytes_.data());
    stream.avail_out = static_cast<uInt>(size);
    is_whole = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.total_out == size;
    inflateEnd(&stream);
  }
  if (!is_whole) throw Error("embedded files: the bytes in this library are damaged; build it again");
  std::size_t offset = 0;
  for (const EmbeddedEntry& entry : entries) {
    files_.push_back({entry.name, std::string_view(bytes_).substr(offset, entry.size)});
    offset += entry.size;
  }
}

}  // namespace samebytes::detail

#include <csetjmp>
#include <cstdio>
#include <cstring>

// jpeglib.h uses size_t and FILE without including them.
#include <jerror.h>
#include <jpeglib.h>

#include "data/image_codec.h"

namespace samebytes::detail {
namespace {

// The library's error record is the first member, so that its callbacks find ours.
struct Trouble {
  jpeg_error_mgr library{};
  std::jmp_buf jump{};
  char message[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void keep_jpeg_error(j_common_ptr jpeg) {
  auto* trouble = reinterpret_cast<Trouble*>(jpeg->err);
  jpeg->err->format_message(jpeg, trouble->message);
  std::longjmp(trouble->jump, 1);
}

// The library fills missing data with grey; here that is an error. Irregularities without loss of data are not.
void judge_warning(j_common_ptr jpeg, int level) {
  if (level >= 0) return;
  const int code = jpeg->err->msg_code;
  if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE || code == JWRN_MUST_RESYNC)
    keep_jpeg_error(jpeg);
}

void say_nothing(j_common_ptr) {}

// Converts CMYK to RGB in place: 4 bytes per pixel become 3. Adobe's files store inks inverted.
void rgb_from_cmyk(std::uint8_t* row, std::int64_t width, bool is_inverted) {
  for (std::int64_t x = 0; x < width; ++x) {
    const std::uint8_t* ink = row + 4 * x;
    const int black = is_inverted ? ink[3] : 255 - ink[3];
    std::uint8_t light[3];
    for (int c = 0; c < 3; ++c)
      light[c] = static_cast<std::uint8_t>(((is_inverted ? ink[c] : 255 - ink[c]) * black + 127) / 255);
    std::memcpy(row + 3 * x, light, sizeof light);
  }
}

class JpegDecoder final : public ImageDecoder {
 public:
  JpegDecoder(std::string_view name, std::span<const std::byte> file) : name_(name), file_(file) {
    jpeg_.err = jpeg_std_error(&trouble_.library);
    trouble_.library.error_exit = keep_jpeg_error;
    trouble_.library.emit_message = judge_warning;
    trouble_.library.output_message = say_nothing;
  }
  ~JpegDecoder() override { jpeg_destroy_decompress(&jpeg_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  ImageHeader read_header(int wanted) override {
    ImageHeader header;
    if (!try_header(wanted, &header)) fail();
    return header;
  }

  void read_rows(std::span<std::uint8_t*> rows) override {
    if (jpeg_.out_color_space != JCS_CMYK) {
      if (!try_rows(rows.data(), nullptr)) fail();
      return;
    }
    std::string inks(static_cast<std::size_t>(jpeg_.output_width) * 4, '\0');
    if (!try_rows(rows.data(), reinterpret_cast<std::uint8_t*>(inks.data()))) fail();
  }

 private:
  [[noreturn]] void fail() const {
    // The library's position lags behind its bit reader, and past the end it reads an end marker that it inserts.
    const bool is_end = trouble_.library.msg_code == JWRN_JPEG_EOF || jpeg_.src == nullptr;
    const std::size_t left = is_end ? 0 : jpeg_.src->bytes_in_buffer;
    const std::size_t place = left <= file_.size() ? file_.size() - left : file_.size();
    throw_image(name_, static_cast<std::int64_t>(place), "JPEG", trouble_.message);
  }

  bool try_header(int wanted, ImageHeader* header) {
    if (setjmp(trouble_.jump) != 0) return false;
    jpeg_create_decompress(&jpeg_);
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(file_.data()),
                 static_cast<unsigned long>(file_.size()));
    jpeg_read_header(&jpeg_, TRUE);
    if (jpeg_.jpeg_color_space == JCS_CMYK || jpeg_.jpeg_color_space == JCS_YCCK)
      jpeg_.out_color_space = JCS_CMYK;
    else
      jpeg_.out_color_space = wanted == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_calc_output_dimensions(&jpeg_);
    header->height = jpeg_.output_height;
    header->width = jpeg_.output_width;
    header->channels = jpeg_.out_color_space == JCS_GRAYSCALE ? 1 : 3;
    return true;
  }

  // `inks`: buffer for one row of CMYK; null if rows need no conversion.
  bool try_rows(std::uint8_t** rows, std::uint8_t* inks) {
    if (setjmp(trouble_.jump) != 0) return false;
    jpeg_start_decompress(&jpeg_);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      std::uint8_t* const row = rows[jpeg_.output_scanline];
      std::uint8_t* target = inks != nullptr ? inks : row;
      jpeg_read_scanlines(&jpeg_, &target, 1);
      if (inks == nullptr) continue;
      rgb_from_cmyk(inks, jpeg_.output_width, jpeg_.saw_Adobe_marker != FALSE);
      std::memcpy(row, inks, static_cast<std::size_t>(jpeg_.output_width) * 3);
    }
    jpeg_finish_decompress(&jpeg_);
    return true;
  }

  std::string_view name_;
  std::span<const std::byte> file_;
  Trouble trouble_;
  jpeg_decompress_struct jpeg_{};
};

}  // namespace

std::unique_ptr<ImageDecoder> make_jpeg_decoder(std::string_view name, std::span<const std::byte> file) {
  return std::make_unique<JpegDecoder>(name, file);
}

}  // namespace samebytes::detail

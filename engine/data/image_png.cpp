#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <new>

#include "data/image_codec.h"

namespace samebytes::detail {
namespace {

// State of the library's callbacks: only plain values, since they longjmp.
struct Source {
  const std::byte* bytes = nullptr;
  std::size_t size = 0, place = 0;
  char message[kImageMessage] = "";
};

void read_bytes(png_structp png, png_bytep dst, std::size_t count) {
  auto* source = static_cast<Source*>(png_get_io_ptr(png));
  if (source->size - source->place < count) {
    source->place = source->size;
    png_error(png, "the end of the file");
  }
  std::memcpy(dst, source->bytes + source->place, count);
  source->place += count;
}

void keep_png_error(png_structp png, png_const_charp message) {
  auto* source = static_cast<Source*>(png_get_error_ptr(png));
  std::snprintf(source->message, sizeof source->message, "%s", message);
  png_longjmp(png, 1);
}

void pass_warning(png_structp, png_const_charp) {}

class PngDecoder final : public ImageDecoder {
 public:
  PngDecoder(std::string_view name, std::span<const std::byte> file) : name_(name) {
    source_.bytes = file.data();
    source_.size = file.size();
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source_, keep_png_error, pass_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
    png_set_read_fn(png_, &source_, read_bytes);
  }
  ~PngDecoder() override { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  ImageHeader read_header(int wanted) override {
    ImageHeader header;
    if (!try_header(wanted, &header)) fail();
    return header;
  }
  void read_rows(std::span<std::uint8_t*> rows) override {
    if (!try_rows(rows.data())) fail();
  }

 private:
  [[noreturn]] void fail() const {
    throw_image(name_, static_cast<std::int64_t>(source_.place), "PNG", source_.message);
  }

  bool try_header(int wanted, ImageHeader* header) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_info(png_, info_);
    const int color = png_get_color_type(png_, info_);
    const bool is_transparent = png_get_valid(png_, info_, PNG_INFO_tRNS) != 0;
    png_set_expand(png_);  // palettes, fewer than 8 bits, and a transparent colour
    png_set_scale_16(png_);
    if ((color & PNG_COLOR_MASK_COLOR) == 0 && wanted > 1) png_set_gray_to_rgb(png_);
    if (wanted < 4)
      png_set_strip_alpha(png_);
    else if ((color & PNG_COLOR_MASK_ALPHA) == 0 && !is_transparent)
      png_set_add_alpha(png_, 0xff, PNG_FILLER_AFTER);
    (void)png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    header->height = png_get_image_height(png_, info_);
    header->width = png_get_image_width(png_, info_);
    header->channels = png_get_channels(png_, info_);
    return true;
  }

  bool try_rows(std::uint8_t** rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  std::string_view name_;
  Source source_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

std::unique_ptr<ImageDecoder> make_png_decoder(std::string_view name, std::span<const std::byte> file) {
  return std::make_unique<PngDecoder>(name, file);
}

}  // namespace samebytes::detail

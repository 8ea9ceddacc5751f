#include <png.h>

#include <cstdio>
#include <cstdlib>
// jpeglib.h uses size_t and FILE without including them.
#include <jpeglib.h>

#include "fuzz/target.h"
#include "samebytes/data/image.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

// 5 x 3 pixels.
std::string png(int color, int channels, int depth, bool interlaced) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp p, png_bytep bytes, std::size_t count) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<const char*>(bytes), count);
      },
      nullptr);
  png_set_IHDR(png, info, 5, 3, depth, color, interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  const png_color palette[] = {{1, 2, 3}, {255, 0, 0}};
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_PLTE(png, info, palette, 2);
  png_write_info(png, info);
  std::vector<png_byte> row(std::size_t(5 * channels * depth / 8 + 1), color == PNG_COLOR_TYPE_PALETTE ? 0 : 0x40);
  png_bytep rows[] = {row.data(), row.data(), row.data()};
  png_write_image(png, rows);
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

std::string jpeg(J_COLOR_SPACE space, int channels, bool progressive) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = 17;
  jpeg.image_height = 9;
  jpeg.input_components = channels;
  jpeg.in_color_space = space;
  jpeg_set_defaults(&jpeg);
  if (progressive) jpeg_simple_progression(&jpeg);
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<JSAMPLE> row(std::size_t(17 * channels));
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = static_cast<JSAMPLE>(i * 9);
  for (int y = 0; y < 9; ++y) {
    JSAMPROW rows = row.data();
    jpeg_write_scanlines(&jpeg, &rows, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string file(reinterpret_cast<const char*>(memory), size);
  std::free(memory);
  return file;
}

const Added added({
    .name = "image",
    .file = "x",
    .make =
        [](const std::string& folder) {
          testing::put(folder + "/rgb.png", png(PNG_COLOR_TYPE_RGB, 3, 8, false));
          testing::put(folder + "/grey16.png", png(PNG_COLOR_TYPE_GRAY, 1, 16, true));
          testing::put(folder + "/palette.png", png(PNG_COLOR_TYPE_PALETTE, 1, 1, false));
          testing::put(folder + "/rgb.jpg", jpeg(JCS_RGB, 3, false));
          testing::put(folder + "/progressive.jpg", jpeg(JCS_RGB, 3, true));
          testing::put(folder + "/grey.jpg", jpeg(JCS_GRAYSCALE, 1, false));
        },
    .read = [](const std::string& path) { data::read_image(path); },
    .words = {"IHDR", "IDAT", "PLTE", "tRNS", "IEND", "\xff\xd8", "\xff\xc0", "\xff\xc4", "\xff\xda", "\xff\xdb"},
    .growth = 16384,  // images are packed: deflate's 1 032, 4 channels, rows of 16 bits; a block of 64 pixels in a bit
});

}  // namespace
}  // namespace samebytes::fuzz

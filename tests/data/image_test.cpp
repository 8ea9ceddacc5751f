// Images written by libpng and libjpeg themselves come back; damaged ones are named; folders of them become a set.
#include "samebytes/data/image.h"

#include <gtest/gtest.h>
#include <png.h>
#include <zlib.h>

#include <cmath>
#include <cstdio>
#include <thread>
// jpeglib.h uses size_t and FILE without including them.
#include <jpeglib.h>

#include "samebytes/data/image_folder.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/io_errors.h"
#include "support/samples.h"

namespace samebytes::data {
namespace {

using testing::expect_io_error;
using testing::put;
using testing::Sample;
using testing::TemporaryFolder;

using Bytes = std::vector<std::uint8_t>;

struct Png {
  std::uint32_t width, height;
  int depth, color;
  Bytes bytes;      // rows as PNG stores them
  std::size_t row;  // bytes of one
  bool interlaced = false;
  std::vector<png_color> palette = {};
  Bytes alphas = {};  // of the palette
};

std::string encode(const Png& image) {
  std::string file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp p, png_bytep bytes, std::size_t count) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<const char*>(bytes), count);
      },
      nullptr);
  png_set_IHDR(png, info, image.width, image.height, image.depth, image.color,
               image.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  if (!image.palette.empty()) png_set_PLTE(png, info, image.palette.data(), static_cast<int>(image.palette.size()));
  if (!image.alphas.empty())
    png_set_tRNS(png, info, image.alphas.data(), static_cast<int>(image.alphas.size()), nullptr);
  png_write_info(png, info);
  std::vector<png_bytep> rows;
  for (std::size_t y = 0; y < image.height; ++y)
    rows.push_back(const_cast<png_bytep>(image.bytes.data() + y * image.row));
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

std::string jpeg(int width, int height, J_COLOR_SPACE space, int channels, const Bytes& bytes) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &memory, &size);
  jpeg.image_width = static_cast<JDIMENSION>(width);
  jpeg.image_height = static_cast<JDIMENSION>(height);
  jpeg.input_components = channels;
  jpeg.in_color_space = space;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 100, TRUE);
  jpeg.comp_info[0].h_samp_factor = jpeg.comp_info[0].v_samp_factor = 1;  // no shared colour
  jpeg_start_compress(&jpeg, TRUE);
  for (int y = 0; y < height; ++y) {
    JSAMPROW row = const_cast<JSAMPROW>(bytes.data() + y * width * channels);
    jpeg_write_scanlines(&jpeg, &row, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string file(reinterpret_cast<const char*>(memory), size);
  std::free(memory);
  return file;
}

Bytes decode(const std::string& file, int channels) {
  Bytes pixels;
  decode_image("image", std::as_bytes(std::span(file.data(), file.size())), channels,
               [&](std::int64_t height, std::int64_t width) {
                 pixels.resize(static_cast<std::size_t>(height * width * channels));
                 return std::span(pixels);
               });
  return pixels;
}

TEST(Image, expands_every_kind_of_png) {
  const std::string rgb = encode({2, 1, 8, PNG_COLOR_TYPE_RGB, {10, 20, 30, 255, 0, 0}, 6});
  EXPECT_EQ(decode(rgb, 3), (Bytes{10, 20, 30, 255, 0, 0}));
  EXPECT_EQ(decode(rgb, 4), (Bytes{10, 20, 30, 255, 255, 0, 0, 255}));
  EXPECT_EQ(decode(rgb, 1), (Bytes{18, 76}));  // 18.15, 76.245
  const std::string alpha = encode({1, 2, 8, PNG_COLOR_TYPE_RGBA, {1, 2, 3, 4, 5, 6, 7, 0}, 4});
  EXPECT_EQ(decode(alpha, 4), (Bytes{1, 2, 3, 4, 5, 6, 7, 0}));
  EXPECT_EQ(decode(alpha, 3), (Bytes{1, 2, 3, 5, 6, 7}));
  const std::string bits = encode({9, 1, 1, PNG_COLOR_TYPE_GRAY, {0xa5, 0x80}, 2});
  EXPECT_EQ(decode(bits, 1), (Bytes{255, 0, 255, 0, 0, 255, 0, 255, 255}));
  EXPECT_EQ(decode(encode({2, 1, 4, PNG_COLOR_TYPE_GRAY, {0x3f}, 1}), 3), (Bytes{51, 51, 51, 255, 255, 255}));
  EXPECT_EQ(decode(encode({2, 1, 16, PNG_COLOR_TYPE_GRAY, {0x80, 0x00, 0xff, 0xff}, 4}), 1), (Bytes{128, 255}));
  const std::string grey = encode({1, 1, 8, PNG_COLOR_TYPE_GRAY_ALPHA, {9, 77}, 2});
  EXPECT_EQ(decode(grey, 4), (Bytes{9, 9, 9, 77}));
  EXPECT_EQ(decode(grey, 3), (Bytes{9, 9, 9}));
  EXPECT_EQ(decode(grey, 1), (Bytes{9}));
  const Png palette{2, 1, 8, PNG_COLOR_TYPE_PALETTE, {1, 0}, 2, false, {{1, 2, 3}, {4, 5, 6}}, {128}};
  EXPECT_EQ(decode(encode(palette), 3), (Bytes{4, 5, 6, 1, 2, 3}));
  EXPECT_EQ(decode(encode(palette), 4), (Bytes{4, 5, 6, 255, 1, 2, 3, 128}));
}

TEST(Image, puts_interlaced_rows_in_order) {
  Bytes bytes;
  for (int i = 0; i < 11 * 13; ++i) bytes.push_back(static_cast<std::uint8_t>(i));
  EXPECT_EQ(decode(encode({11, 13, 8, PNG_COLOR_TYPE_GRAY, bytes, 11, true}), 1), bytes);
}

TEST(Image, decodes_jpeg_in_colour_grey_and_inks) {
  Bytes bytes;
  for (int y = 0; y < 16; ++y)
    for (int x = 0; x < 24; ++x)
      for (const int value : {x * 10, y * 15, 128}) bytes.push_back(static_cast<std::uint8_t>(value));
  const auto expect_near = [](const Bytes& got, const Bytes& wanted, int tolerance) {
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], wanted[i], tolerance) << i;
  };
  const std::string colour = jpeg(24, 16, JCS_RGB, 3, bytes);
  expect_near(decode(colour, 3), bytes, 4);
  Bytes grey, opaque, inks;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    grey.push_back(static_cast<std::uint8_t>(0.299 * bytes[i] + 0.587 * bytes[i + 1] + 0.114 * bytes[i + 2]));
    for (std::size_t c = 0; c < 3; ++c) opaque.push_back(bytes[i + c]);
    opaque.push_back(255);
    // Adobe's way, inverted: the light that each ink leaves, and a black ink that takes nothing.
    for (std::size_t c = 0; c < 3; ++c) inks.push_back(bytes[i + c]);
    inks.push_back(255);
  }
  expect_near(decode(colour, 1), grey, 3);
  expect_near(decode(colour, 4), opaque, 4);
  EXPECT_EQ(decode(jpeg(24, 16, JCS_GRAYSCALE, 1, grey), 3).size(), bytes.size());
  expect_near(decode(jpeg(24, 16, JCS_GRAYSCALE, 1, grey), 1), grey, 2);
  expect_near(decode(jpeg(24, 16, JCS_CMYK, 4, inks), 3), bytes, 4);
}

TEST(Image, names_damage_and_where_it_is) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.png";
  const auto act = [&] { read_image(path); };
  expect_io_error(act, path, -1, {"No such file"});
  put(path, "");
  expect_io_error(act, path, 0, {"PNG or JPEG", "an empty file"});
  put(path, "GIF89a and so on");
  expect_io_error(act, path, 0, {"PNG or JPEG", "other bytes"});
  Bytes bytes(64 * 64);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * i);
  const std::string png = encode({64, 64, 8, PNG_COLOR_TYPE_GRAY, bytes, 64});
  for (const std::size_t cut : {std::size_t{9}, std::size_t{20}, png.size() / 2, png.size() - 13}) {
    put(path, png.substr(0, cut));
    expect_io_error(act, path, static_cast<std::int64_t>(cut), {"an intact PNG", "the end of the file"});
  }
  std::string damaged = png;
  damaged[png.size() / 2] = static_cast<char>(~damaged[png.size() / 2]);
  put(path, damaged);
  EXPECT_THROW(act(), IoError);
  damaged = png;
  damaged[16] = 0x7f;  // the width, with its checksum wrong
  put(path, damaged);
  EXPECT_THROW(act(), IoError);
  damaged = png;  // a width and a height, with their checksum, that so few bytes cannot fill
  damaged[18] = damaged[22] = 0x30;
  const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(damaged.data()) + 12, 17);
  for (std::size_t i = 0; i < 4; ++i) damaged[29 + i] = static_cast<char>(sum >> (24 - 8 * i));
  put(path, damaged);
  expect_io_error(act, path, -1, {"pixels that", "bytes can hold"});
  const std::string colour = jpeg(64, 64, JCS_GRAYSCALE, 1, bytes);
  for (const std::size_t cut : {std::size_t{3}, std::size_t{30}, colour.size() / 2}) {
    put(path, colour.substr(0, cut));
    expect_io_error(act, path, static_cast<std::int64_t>(cut), {"an intact JPEG"});
  }
  EXPECT_ERROR(read_image(path, 2), ArgumentError, "image: channels must be 1, 3 or 4, got 2");
}

TEST(Image, is_decoded_by_several_threads_at_once) {
  Bytes bytes(32 * 32 * 3, 77);
  const std::string good = jpeg(32, 32, JCS_RGB, 3, bytes), bad = good.substr(0, good.size() / 2);
  std::vector<int> failures(3);
  std::vector<std::thread> threads;
  for (int& count : failures)
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) try {
          decode(i % 2 ? good : bad, 3);
        } catch (const IoError&) {
          ++count;
        }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, (std::vector<int>{25, 25, 25}));
}

TEST(Image, is_resized_under_a_triangle) {
  const auto resize = [](const Bytes& src, std::int64_t h, std::int64_t w, std::int64_t to_h, std::int64_t to_w,
                         int c) {
    std::vector<float> dst(static_cast<std::size_t>(to_h * to_w * c));
    resize_bilinear<float>(src, h, w, dst, to_h, to_w, c);
    return dst;
  };
  const auto expect_near = [](const std::vector<float>& got, const std::vector<float>& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], wanted[i], 1e-3f) << i;
  };
  expect_near(resize({0, 255}, 1, 2, 1, 4, 1), {0, 63.75f, 191.25f, 255});
  expect_near(resize({0, 100, 200, 50}, 4, 1, 2, 1, 1), {125 / 1.75f, 212.5f / 1.75f});
  expect_near(resize({10, 20, 30, 40}, 1, 2, 1, 1, 2), {20, 30});
  expect_near(resize({1, 2, 3, 4}, 2, 2, 2, 2, 1), {1, 2, 3, 4});
  const std::vector<float> constant = resize(Bytes(7 * 5 * 3, 99), 7, 5, 3, 11, 3);
  for (const float value : constant) EXPECT_NEAR(value, 99, 1e-3f);
  Bytes rounded(4);
  resize_bilinear<std::uint8_t>(Bytes{0, 255}, 1, 2, rounded, 1, 4, 1);
  EXPECT_EQ(rounded, (Bytes{0, 64, 191, 255}));
  EXPECT_THROW(resize({1, 2, 3}, 2, 2, 1, 1, 1), ArgumentError);
}

TEST(ImageFolder, sorts_classes_and_decodes_into_the_row) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "pear/old");
  std::filesystem::create_directories(folder / "apple");
  put(folder / "pear/old/b.PNG", encode({2, 1, 8, PNG_COLOR_TYPE_GRAY, {0, 255}, 2}));
  put(folder / "pear/a.png", encode({1, 2, 8, PNG_COLOR_TYPE_RGB, {255, 0, 51, 0, 255, 102}, 3}));
  put(folder / "apple/z.jpeg", jpeg(1, 2, JCS_GRAYSCALE, 1, {51, 51}));
  put(folder / "apple/notes.txt", "not an image");
  put(folder / "readme.txt", "not a class");
  const ImageFolder images = image_folder(folder.string());
  EXPECT_EQ(images.classes, (std::vector<std::string>{"apple", "pear"}));
  ASSERT_EQ(images.set->size(), 3);
  EXPECT_EQ(images.paths[2], folder / "pear/old/b.PNG");
  EXPECT_EQ(images.set->fields()[0].shape, (Shape{2, 1, 3}));
  const Sample second(*images.set, 1);
  EXPECT_EQ(second.values<float>(0), (std::vector<float>{1, 0, 0.2f, 0, 1, 0.4f}));
  EXPECT_EQ(second.value<std::int32_t>(1), 1);
  const std::vector<float> third = Sample(*images.set, 2).values<float>(0);
  for (const float value : third) EXPECT_NEAR(value, 0.5f, 1e-6f);
  const ImageFolder raw = image_folder(folder.string(), {.height = 1, .width = 2, .channels = 1, .raw = true});
  EXPECT_EQ(Sample(*raw.set, 2).values<std::uint8_t>(0), (Bytes{0, 255}));
  EXPECT_EQ(Sample(*raw.set, 0).values<std::uint8_t>(0), (Bytes{51, 51}));
}

TEST(ImageFolder, names_what_is_wrong) {
  const TemporaryFolder folder;
  const auto act = [&] { image_folder(folder.string()); };
  expect_io_error([&] { image_folder(folder / "absent"); }, folder / "absent", -1, {"expected a folder"});
  expect_io_error(act, folder.string(), -1, {"a subfolder for each class"});
  std::filesystem::create_directories(folder / "a");
  expect_io_error(act, folder / "a", -1, {"files .png, .jpg or .jpeg", "none"});
  const std::string png = encode({2, 1, 8, PNG_COLOR_TYPE_GRAY, {0, 255}, 2});
  put(folder / "a/1.png", png);
  put(folder / "a/2.png", png.substr(0, 40));
  put(folder / "a/3.png", encode({1, 1, 8, PNG_COLOR_TYPE_GRAY, {0}, 1}));
  const ImageFolder images = image_folder(folder.string(), {.resize = false});
  const auto read = [&](std::int64_t index) { return [&images, index] { Sample(*images.set, index); }; };
  expect_io_error(read(1), folder / "a/2.png", 40, {"an intact PNG"});
  expect_io_error(read(2), folder / "a/3.png", -1, {"2 by 1 pixels (or ask for resize)", "found 1 by 1"});
  std::filesystem::remove(folder / "a/2.png");
  expect_io_error(read(1), folder / "a/2.png", -1, {"No such file"});
  EXPECT_ERROR(image_folder(folder.string(), {.height = 3}), ArgumentError,
               "image_folder: height and width are both given or both 0, got 3 and 0");
  EXPECT_ERROR(image_folder(folder.string(), {.channels = 2}), ArgumentError,
               "image_folder: channels must be 1, 3 or 4, got 2");
}

}  // namespace
}  // namespace samebytes::data

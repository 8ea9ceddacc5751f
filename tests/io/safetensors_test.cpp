#include "samebytes/io/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "support/errors.h"
#include "support/files.h"

namespace samebytes::io {
namespace {

using testing::get;
using testing::put;
using testing::TemporaryFolder;

std::string file_of(const std::string& header, const std::string& values) {
  std::string text(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(text.data(), &length, sizeof length);
  return text + header + values;
}

void expect_io_error(const std::string& path, std::int64_t offset, std::initializer_list<const char*> parts) {
  try {
    const TensorFile file(path);
    for (std::size_t i = 0; i < file.tensors().size(); ++i) file.read(i);
    ADD_FAILURE() << "got no error";
  } catch (const IoError& error) {
    EXPECT_EQ(error.path(), path);
    EXPECT_EQ(error.offset(), offset) << error.what();
    for (const char* part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << part << " is not in: " << error.what();
  }
}

TEST(Safetensors, returns_what_was_saved_for_every_dtype) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  std::vector<HostArray> arrays;
  std::vector<TensorView> views;
  for (const Dtype dtype : {u8, f32, f16, bf16, f64, i32, bool_})
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{0, 2}, Shape{2, 3, 5}}) {
      HostArray array(shape, dtype);
      for (std::size_t i = 0; i < array.bytes.size(); ++i) array.bytes[i] = static_cast<std::byte>(i * 31 + 1);
      arrays.push_back(std::move(array));
    }
  for (const HostArray& array : arrays)
    views.push_back({"t" + std::to_string(views.size()), array.dtype, array.shape, array.bytes});
  save_tensors(path, views, {{"format", "pt"}, {"about", "a test"}});

  const TensorFile file(path);
  EXPECT_EQ(file.tensors().size(), arrays.size());
  EXPECT_EQ(file.metadata(), (Metadata{{"about", "a test"}, {"format", "pt"}}));
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto index = file.find("t" + std::to_string(i));
    ASSERT_TRUE(index);
    const HostArray back = file.read(*index);
    EXPECT_EQ(back.dtype, arrays[i].dtype);
    EXPECT_EQ(back.shape, arrays[i].shape);
    EXPECT_EQ(back.bytes, arrays[i].bytes);
  }
  EXPECT_FALSE(file.find("absent"));
}

// The layout as other tools read it: header padded to 8 bytes, values without gaps, each aligned to its dtype.
TEST(Safetensors, writes_the_documented_layout) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  const std::vector<std::uint8_t> small{1, 2, 3};
  const std::vector<float> wide{1.5f, -2.0f};
  const TensorView views[] = {{"small", u8, Shape{3}, std::as_bytes(std::span(small))},
                              {"wide \"x\"", f32, Shape{2, 1}, std::as_bytes(std::span(wide))}};
  save_tensors(path, views);
  const std::string text = get(path);
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), sizeof length);
  EXPECT_EQ(length % 8, 0u);
  EXPECT_EQ(text[8], '{');
  const auto header = nlohmann::json::parse(text.substr(8, length));
  EXPECT_EQ(header["small"], (nlohmann::json{{"dtype", "U8"}, {"shape", {3}}, {"data_offsets", {8, 11}}}));
  EXPECT_EQ(header["wide \"x\""], (nlohmann::json{{"dtype", "F32"}, {"shape", {2, 1}}, {"data_offsets", {0, 8}}}));
  ASSERT_EQ(text.size(), 8 + length + 11);
  EXPECT_EQ(std::memcmp(text.data() + 8 + length, wide.data(), 8), 0);
}

TEST(Safetensors, gives_narrow_integers_as_i32_and_wide_ones_as_i64) {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  using namespace std::string_literals;
  put(path, file_of(R"({"a":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"b":{"dtype":"U16","shape":[1],)"
                    R"("data_offsets":[8,10]},"c":{"dtype":"I8","shape":[1],"data_offsets":[10,11]}}   )",
                    "\xff\xff\xff\xff\xff\xff\xff\xff"s + "\xff\xff" + "\x80"));
  const TensorFile file(path);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.read(0).as<std::int64_t>()[0], -1);
  EXPECT_EQ(file.read(1).as<std::int32_t>()[0], 65535);
  EXPECT_EQ(file.read(2).as<std::int32_t>()[0], -128);
  put(path, file_of(R"({"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}})", "\0\0\0\0\1\0\0\0"s));
  const HostArray wide = TensorFile(path).read(0);
  EXPECT_EQ(wide.as<std::int64_t>()[0], std::int64_t{1} << 32);
  const TensorView views[] = {{"b", i64, Shape{1}, wide.bytes}};
  save_tensors(path, views);
  EXPECT_EQ(TensorFile(path).read(0).dtype, i64);
  EXPECT_EQ(TensorFile(path).read(0).bytes, wide.bytes);
}

TEST(Safetensors, reports_damage_with_offset_and_expectation) {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  expect_io_error(path, -1, {"No such file"});
  put(path, "short");
  expect_io_error(path, 5, {"8 bytes", "end of the file"});
  put(path, "PK\3\4 this is a zip archive");
  expect_io_error(path, 0, {"at most 100000000 bytes"});
  put(path, file_of("{}", "").replace(0, 1, 1, '\x40'));
  expect_io_error(path, 10, {"a header of 64 bytes"});
  put(path, file_of("{\"a\": nonsense}", ""));
  expect_io_error(path, 8 + 7, {"expected JSON"});
  put(path, file_of("[1, 2]", ""));
  expect_io_error(path, 8, {"a JSON object"});

  const auto entry = [](const std::string& name, const std::string& dtype, const std::string& shape,
                        const std::string& offsets) {
    return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
  };
  const std::string good = entry("a", "F32", "[2]", "[0,8]");
  put(path, file_of("{" + good + "}", "12345678"));
  EXPECT_EQ(TensorFile(path).tensors().size(), 1u);
  put(path, file_of("{" + good + "}", "1234"));
  expect_io_error(path, static_cast<std::int64_t>(8 + good.size() + 2 + 4), {"8 bytes of values", "found 4"});
  put(path, file_of("{" + good + "}", "1234567890"));
  expect_io_error(path, static_cast<std::int64_t>(8 + good.size() + 2 + 8), {"8 bytes of values", "found 10"});
  put(path, file_of("{" + good + "," + good + "}", "12345678"));
  expect_io_error(path, 8, {"'a' twice"});
  put(path, file_of("{" + good + "," + entry("b", "F32", "[1]", "[4,8]") + "}", "12345678"));
  expect_io_error(path, static_cast<std::int64_t>(8 + 2 + good.size() + 1 + good.size() + 8), {"'b' to begin"});
  for (const auto& [bad, part] : std::vector<std::pair<std::string, const char*>>{
           {entry("a", "F32", "[3]", "[0,8]"), "12 bytes apart"},
           {entry("a", "F32", "[2]", "[8,0]"), "8 bytes apart"},
           {entry("a", "F32", "[4611686018427387904,4]", "[0,8]"), "apart"},
           {entry("a", "F8_E4M3", "[8]", "[0,8]"), "F8_E4M3"},
           {entry("a", "F32", "[-2]", "[0,8]"), "sizes"},
           {entry("a", "F32", "[2]", "[0]"), "two offsets"},
           {entry("a", "F32", "[1,1,1,1,1,1,1,1,2]", "[0,8]"), "at most 8 axes"},
           {"\"a\":{\"dtype\":\"F32\"}", "dtype, shape and data_offsets"},
           {"\"__metadata__\":{\"a\":1}", "object of strings"}}) {
    put(path, file_of("{" + bad + "}", "12345678"));
    expect_io_error(path, 8, {part});
  }
}

TEST(Safetensors, checks_what_it_is_given) {
  const TemporaryFolder folder;
  const std::vector<float> values{1, 2};
  const auto bytes = std::as_bytes(std::span(values));
  const std::string path = folder / "x";
  const std::vector<TensorView> wrong_size{{"a", f32, Shape{3}, bytes}},
      reserved{{"__metadata__", f32, Shape{2}, bytes}}, twice{{"a", f32, Shape{2}, bytes}, {"a", f32, Shape{2}, bytes}},
      good{{"a", f32, Shape{2}, bytes}};
  EXPECT_THROW(save_tensors(path, wrong_size), ArgumentError);
  EXPECT_THROW(save_tensors(path, reserved), ArgumentError);
  EXPECT_THROW(save_tensors(path, twice), ArgumentError);
  const std::vector<TensorView> no_utf8{{"a\xff", f32, Shape{2}, bytes}};
  EXPECT_ERROR(save_tensors(path, no_utf8), ArgumentError,
               "save_tensors: expected names and texts in UTF-8, got \"a\ufffd\"");
  EXPECT_ERROR(save_tensors(path, good, {{"about", "b\xff"}}), ArgumentError,
               "save_tensors: expected names and texts in UTF-8, got \"b\ufffd\"");
  EXPECT_EQ(folder.count(), 0u);
  EXPECT_THROW(save_tensors("/proc/samebytes", good), IoError);
  save_tensors(path, good);
  std::vector<std::byte> small(4);
  EXPECT_THROW(TensorFile(path).read(0, small), ArgumentError);
}

}  // namespace
}  // namespace samebytes::io

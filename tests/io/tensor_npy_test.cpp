// Exact tensors of ONNX models in NumPy's files.
#include "samebytes/io/tensor_npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "samebytes/engine.h"
#include "samebytes/io/files.h"
#include "support/errors.h"
#include "support/files.h"

namespace samebytes::io {
namespace {

using onnx::Tensor;
using onnx::Type;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

// A file of format 1 with this header and these bytes behind it.
std::string file_of(const std::string& header, const std::string& values) {
  std::string text("\x93NUMPY\x01\x00", 8);
  text += static_cast<char>(header.size() & 0xff);
  text += static_cast<char>(header.size() >> 8);
  return text + header + values;
}

TEST(TensorNpy, every_type_comes_back_byte_for_byte) {
  const TemporaryFolder folder;
  const std::pair<Type, std::size_t> types[] = {
      {Type::f32, 4}, {Type::f64, 8}, {Type::i8, 1},  {Type::i16, 2},     {Type::i32, 4}, {Type::i64, 8}, {Type::u8, 1},
      {Type::u16, 2}, {Type::u32, 4}, {Type::u64, 8}, {Type::boolean, 1}, {Type::f16, 2}, {Type::bf16, 2}};
  for (const auto& [type, width] : types)
    for (const std::vector<std::int64_t>& sizes :
         {std::vector<std::int64_t>{}, std::vector<std::int64_t>{3}, std::vector<std::int64_t>{2, 0, 4},
          std::vector<std::int64_t>{1, 2, 3}}) {
      std::size_t count = 1;
      for (const std::int64_t size : sizes) count *= static_cast<std::size_t>(size);
      Tensor tensor{type, sizes, std::vector<std::byte>(count * width)};
      for (std::size_t i = 0; i < tensor.bytes.size(); ++i) tensor.bytes[i] = static_cast<std::byte>(i % 2);
      const std::string path = folder / "x.npy";
      write_tensor_npy(path, tensor);
      const Tensor again = read_tensor_npy(path);
      EXPECT_EQ(again.type, type) << onnx::name_of(type);
      EXPECT_EQ(again.sizes, sizes);
      EXPECT_EQ(again.bytes, tensor.bytes);
    }
}

TEST(TensorNpy, floating_tensors_become_arrays_and_come_back) {
  const Engine engine;
  for (const Type type : {Type::f32, Type::f64, Type::f16, Type::bf16}) {
    const std::size_t width = type == Type::f32 ? 4 : type == Type::f64 ? 8 : 2;
    for (const std::vector<std::int64_t>& sizes : {std::vector<std::int64_t>{0, 3}, std::vector<std::int64_t>{2, 3}}) {
      Tensor tensor{type, sizes, std::vector<std::byte>(static_cast<std::size_t>(sizes[0] * 3) * width)};
      for (std::size_t i = 0; i < tensor.bytes.size(); ++i) tensor.bytes[i] = static_cast<std::byte>(i % 59);
      const onnx::Value value = value_of(tensor);
      ASSERT_TRUE(std::holds_alternative<Array>(value)) << onnx::name_of(type);
      const Tensor again = tensor_of(value);
      EXPECT_EQ(again.type, type) << onnx::name_of(type);
      EXPECT_EQ(again.sizes, sizes);
      EXPECT_EQ(again.bytes, tensor.bytes) << onnx::name_of(type);
    }
  }
}

// numpy.save keeps the order of an array that was transposed, and the order of bytes of one that another machine wrote.
TEST(TensorNpy, either_order_of_indices_and_of_bytes_gives_the_same_tensor) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  const auto read = [&](const std::string& descr, const std::string& order, const std::string& shape,
                        const std::vector<std::uint8_t>& values) {
    write_file(path, file_of("{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }\n",
                             std::string(values.begin(), values.end())));
    const Tensor tensor = read_tensor_npy(path);
    std::vector<std::uint8_t> bytes;
    for (const std::byte byte : tensor.bytes) bytes.push_back(std::to_integer<std::uint8_t>(byte));
    return bytes;
  };
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(read("|u1", "True", "(2, 3)", {1, 4, 2, 5, 3, 6}), (Bytes{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read("|u1", "True", "(2, 1, 3)", {1, 4, 2, 5, 3, 6}), (Bytes{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(read("|u1", "True", "(2, 2, 2)", {1, 5, 3, 7, 2, 6, 4, 8}), (Bytes{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(read("|u1", "True", "(3,)", {1, 2, 3}), (Bytes{1, 2, 3}));
  EXPECT_EQ(read("|u1", "True", "(2, 0)", {}), Bytes{});
  EXPECT_EQ(read(">i2", "False", "(2,)", {1, 2, 3, 4}), (Bytes{2, 1, 4, 3}));
  EXPECT_EQ(read(">i2", "True", "(2, 2)", {0, 1, 0, 3, 0, 2, 0, 4}), (Bytes{1, 0, 2, 0, 3, 0, 4, 0}));
}

TEST(TensorNpy, a_file_that_cannot_be_a_tensor_says_why) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  const auto message = [&](const std::string& header, const std::string& values = std::string(24, '\0')) {
    write_file(path, file_of(header, values));
    return message_of<IoError>([&] { read_tensor_npy(path); });
  };
  EXPECT_THAT(message("{'descr': '<c8', 'fortran_order': False, 'shape': (3,), }\n"), HasSubstr("'<c8'"));
  EXPECT_THAT(message("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }\n"), HasSubstr("32 bytes"));
  EXPECT_THAT(message("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 8), }\n"),
              HasSubstr("bytes of values"));
  EXPECT_THAT(message("{'descr': '<f4'}\n"), HasSubstr("descr, fortran_order and shape"));
  write_file(path, "no array");
  EXPECT_THAT(message_of<IoError>([&] { read_tensor_npy(path); }), HasSubstr("NUMPY"));
}

// A header may be as long as the file says; what reads it needs no memory for each character.
TEST(TensorNpy, a_header_of_a_megabyte_is_refused_and_ends_no_process) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (";
  while (header.size() < (1 << 20)) header += "1, ";
  header += "), }\n";
  std::string text("\x93NUMPY\x02\x00", 8);
  for (int i = 0; i < 4; ++i) text += static_cast<char>(header.size() >> 8 * i & 0xff);
  write_file(path, text + header + std::string(4, '\0'));
  EXPECT_THAT(message_of<IoError>([&] { read_tensor_npy(path); }), HasSubstr("at most 8 axes"));
}

}  // namespace
}  // namespace samebytes::io

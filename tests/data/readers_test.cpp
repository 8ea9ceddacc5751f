// IDX, CSV and NPY: values as written, and an error with file, offset and expectation for every kind of damage.
#include <gtest/gtest.h>

#include "samebytes/data.h"
#include "support/files.h"
#include "support/io_errors.h"

namespace samebytes::data {
namespace {

using testing::expect_io_error;
using testing::put;
using testing::TemporaryFolder;
using namespace std::string_literals;

template <class T>
std::vector<T> values(const HostArray& array) {
  const auto span = array.as<T>();
  return {span.begin(), span.end()};
}

Table parse(const std::string& text, const CsvOptions& options = {}) {
  return parse_csv("table", std::as_bytes(std::span(text.data(), text.size())), options);
}

TEST(Idx, reads_every_type_big_endian) {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  put(path, "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"s + "abcdef");
  HostArray array = read_idx(path);
  EXPECT_EQ(array.shape, (Shape{2, 3}));
  EXPECT_EQ(values<std::uint8_t>(array), (std::vector<std::uint8_t>{'a', 'b', 'c', 'd', 'e', 'f'}));
  put(path, "\0\0\x09\x01\0\0\0\x02\xff\x05"s);
  EXPECT_EQ(values<std::int32_t>(read_idx(path)), (std::vector<std::int32_t>{-1, 5}));
  put(path, "\0\0\x0b\x01\0\0\0\x02\xff\xfe\x01\x00"s);
  EXPECT_EQ(values<std::int32_t>(read_idx(path)), (std::vector<std::int32_t>{-2, 256}));
  put(path, "\0\0\x0c\x01\0\0\0\x01\x00\x01\x00\x02"s);
  EXPECT_EQ(values<std::int32_t>(read_idx(path)), (std::vector<std::int32_t>{65538}));
  put(path, "\0\0\x0d\x01\0\0\0\x01\x3f\xc0\x00\x00"s);
  EXPECT_EQ(values<float>(read_idx(path)), (std::vector<float>{1.5f}));
  put(path, "\0\0\x0e\x01\0\0\0\x01\xbf\xf8\0\0\0\0\0\0"s);
  EXPECT_EQ(values<double>(read_idx(path)), (std::vector<double>{-1.5}));
  put(path, "\0\0\x08\x02\0\0\0\0\0\0\0\x03"s);
  EXPECT_EQ(read_idx(path).shape, (Shape{0, 3}));
}

TEST(Idx, reports_file_offset_and_expectation) {
  const TemporaryFolder folder;
  const std::string path = folder / "x";
  expect_io_error([&] { read_idx(path); }, path, -1, {"No such file"});
  put(path, "\0\0"s);
  expect_io_error([&] { read_idx(path); }, path, 2, {"magic number", "end of the file"});
  put(path, "\x7f"s + "ELF and so on");
  expect_io_error([&] { read_idx(path); }, path, 0, {"magic number", "0x7f454c46"});
  put(path, "\0\0\x08\x03\0\0\0\x02\0\0\0\x02"s);
  expect_io_error([&] { read_idx(path); }, path, 12, {"3 sizes of 4 bytes"});
  put(path, "\0\0\x08\x01\0\0\0\x05"s + "four");
  expect_io_error([&] { read_idx(path); }, path, 12, {"expected 5 bytes", "found 4"});
  put(path, "\0\0\x08\x01\0\0\0\x03"s + "four");
  expect_io_error([&] { read_idx(path); }, path, 12, {"expected 3 bytes", "found 4"});
  put(path, "\0\0\x0e\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"s);  // a product beyond 64 bits
  expect_io_error([&] { read_idx(path); }, path, 16, {"found 0"});
}

TEST(Csv, reads_numbers_names_and_labels) {
  const Table table = parse("a,b,kind\n1,2.5,0\n-3e2, +4 ,1\n\n", {.header = true, .label = "kind"});
  EXPECT_EQ(table.columns, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(table.values.shape, (Shape{2, 2}));
  EXPECT_EQ(values<float>(table.values), (std::vector<float>{1, 2.5f, -300, 4}));
  EXPECT_EQ(values<std::int32_t>(table.labels), (std::vector<std::int32_t>{0, 1}));
}

TEST(Csv, finds_tabs_and_semicolons_and_carriage_returns) {
  EXPECT_EQ(parse("1\t2\r\n3\t4\r\n").values.shape, (Shape{2, 2}));
  EXPECT_EQ(values<float>(parse("1;2\n3;4").values), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(parse("7").values.shape, (Shape{1, 1}));
}

TEST(Csv, takes_the_label_by_place_and_from_words) {
  const Table first = parse("1 0.5\n2 0.25\n", {.label = "0", .label_dtype = f32});
  EXPECT_EQ(values<float>(first.labels), (std::vector<float>{1, 2}));
  EXPECT_EQ(values<float>(first.values), (std::vector<float>{0.5f, 0.25f}));
  const Table words = parse("1,\"pear, ripe\"\n2,apple\n3,\"a \"\"b\"\"\"\n", {.label = "-1"});
  EXPECT_EQ(words.classes, (std::vector<std::string>{"a \"b\"", "apple", "pear, ripe"}));
  EXPECT_EQ(values<std::int32_t>(words.labels), (std::vector<std::int32_t>{2, 1, 0}));
  const Table mixed = parse("1,7\n2,apple\n3,7\n", {.label = "-1"});
  EXPECT_EQ(mixed.classes, (std::vector<std::string>{"7", "apple"}));
  EXPECT_EQ(values<std::int32_t>(mixed.labels), (std::vector<std::int32_t>{0, 1, 0}));
}

TEST(Csv, skips_lines_drops_columns_and_fills_empty_cells) {
  const Table table =
      parse("150,3\nid,x,y\n9,,2\n8,1,\n", {.skip_lines = 1, .header = true, .drop = {"id"}, .empty_value = -1.0f});
  EXPECT_EQ(values<float>(table.values), (std::vector<float>{-1, 2, 1, -1}));
}

TEST(Csv, reports_line_and_offset) {
  const auto act = [](const std::string& text, const CsvOptions& options = {}) {
    return [text, options] { parse(text, options); };
  };
  expect_io_error(act("1,2\n3,x\n"), "table", 6, {"a number in line 2", "'x'"});
  expect_io_error(act("1,2\n3,\n"), "table", 6, {"line 2", "an empty cell"});
  expect_io_error(act("1,2\n3\n"), "table", 4, {"2 cells as in the first row in line 2", "found 1"});
  expect_io_error(act("1,2\n3,4,5\n"), "table", 4, {"found 3"});
  expect_io_error(act("1,\"2\n3,4\n"), "table", 2, {"closing quote", "line 1"});
  expect_io_error(act(""), "table", 0, {"a table"});
  expect_io_error(act("a,b\n", {.header = true}), "table", 4, {"at least one row"});
  expect_io_error(act("1,9\n2,10\n", {.label = "-1", .classes = 10}), "table", 6, {"0 to 9", "line 2", "'10'"});
  expect_io_error(act("1,-1\n", {.label = "-1", .classes = 10}), "table", 2, {"0 to 9"});
  expect_io_error(act("1,0.5\n", {.label = "-1"}), "table", 2, {"class number"});
  EXPECT_THROW(parse("a,b\n1,2\n", {.header = true, .label = "c"}), ArgumentError);
  EXPECT_THROW(parse("1,2\n", {.label = "2"}), ArgumentError);
}

TEST(Npy, returns_what_was_written_for_every_dtype_and_shape) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  for (const Dtype dtype : {f32, f16, bf16, f64, i32, i64, u8, bool_})
    for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{7}, Shape{2, 3, 5}}) {
      HostArray array(shape, dtype);
      for (std::size_t i = 0; i < array.bytes.size(); ++i)
        array.bytes[i] = static_cast<std::byte>(dtype == bool_ ? i % 2 : i * 37);
      write_npy(path, array);
      EXPECT_EQ(testing::get(path).find('\n') % 64, 63u);
      const HostArray back = read_npy(path);
      EXPECT_EQ(back.dtype, dtype);
      EXPECT_EQ(back.shape, shape);
      EXPECT_EQ(back.bytes, array.bytes);
    }
}

std::string npy(const std::string& header, const std::string& values) {
  return "\x93NUMPY\1"s + '\0' + static_cast<char>(header.size()) + '\0' + header + values;
}

TEST(Npy, converts_fortran_order_big_endian_and_64_bit_integers) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  put(path, npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", "adbecf"));
  EXPECT_EQ(values<std::uint8_t>(read_npy(path)), (std::vector<std::uint8_t>{'a', 'b', 'c', 'd', 'e', 'f'}));
  put(path, npy("{'shape': (1,), 'fortran_order': False, 'descr': '>f4'}", "\x3f\xc0\0\0"s));
  EXPECT_EQ(values<float>(read_npy(path)), (std::vector<float>{1.5f}));
  put(path, npy("{'descr': '<i8', 'fortran_order': False, 'shape': (2,), }",
                "\xfe\xff\xff\xff\xff\xff\xff\xff\x05\0\0\0\0\0\0\0"s));
  EXPECT_EQ(values<std::int64_t>(read_npy(path)), (std::vector<std::int64_t>{-2, 5}));
  put(path, npy("{'descr': '>i8', 'fortran_order': False, 'shape': (1,), }", "\0\0\0\1\0\0\0\0"s));
  EXPECT_EQ(values<std::int64_t>(read_npy(path)), std::vector<std::int64_t>{std::int64_t{1} << 32});
  put(path, npy("{'descr': '<u2', 'fortran_order': False, 'shape': (1,), }", "\xff\xff"s));
  EXPECT_EQ(values<std::int32_t>(read_npy(path)), (std::vector<std::int32_t>{65535}));
  put(path, "\x93NUMPY\2\0\x3b\0\0\0"s + "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), } \n" + "z");
  EXPECT_EQ(values<std::uint8_t>(read_npy(path)), (std::vector<std::uint8_t>{'z'}));
}

TEST(Npy, reports_file_offset_and_expectation) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  const auto act = [&] { read_npy(path); };
  expect_io_error(act, path, -1, {"No such file"});
  put(path, "PK\3\4 a zip file");
  expect_io_error(act, path, 0, {"NUMPY"});
  put(path, "\x93NUMPY\1"s);
  expect_io_error(act, path, 7, {"a header"});
  put(path, "\x93NUMPY\x09\0\0\0"s);
  expect_io_error(act, path, 6, {"version", "9"});
  put(path, "\x93NUMPY\1\0\x40\0{'descr'"s);
  expect_io_error(act, path, 18, {"a header of 64 bytes"});
  put(path, npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", "12345678"));
  expect_io_error(act, path, 75, {"12 bytes", "found 8"});
  put(path, npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "12345678"));
  expect_io_error(act, path, 10, {"a type", "<c8"});
  put(path, npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234"));
  expect_io_error(act, path, 20, {"structured"});
  put(path, npy("{'descr': '<f4', 'shape': (1,), }", "1234"));
  expect_io_error(act, path, 43, {"the keys descr, fortran_order and shape"});
  put(path, npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", ""));
  expect_io_error(act, path, 87, {"found 0"});
  put(path, npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4, 0), }", ""));
  expect_io_error(act, path, 90, {"found 0"});
}

TEST(Readers, read_the_real_tables) {
  const std::string folder = testing::data_folder("tabular");
  SAMEBYTES_NEED_DATA(folder);
  const Table iris = read_csv(folder + "/iris.csv", {.skip_lines = 1, .label = "-1", .classes = 3});
  EXPECT_EQ(iris.values.shape, (Shape{150, 4}));
  const Table digits = read_csv(folder + "/digits.csv.gz", {.label = "64", .classes = 10});
  EXPECT_EQ(digits.values.shape, (Shape{1797, 64}));
  EXPECT_EQ(read_csv(folder + "/diabetes_data_raw.csv.gz").values.shape, (Shape{442, 10}));
  const Table curves = read_csv(testing::data_folder("light_curves") + "/space_telescope_221.csv.gz",
                                {.header = true, .label = "label", .drop = {"star_id", "mission"}});
  EXPECT_EQ(curves.values.shape, (Shape{221, 384}));
  EXPECT_EQ(curves.classes, (std::vector<std::string>{"false_positive", "non_planet", "planet"}));
  const Table ecg = read_csv(testing::data_folder("ucr") + "/ECG200_TRAIN.tsv.gz", {.label = "0"});
  EXPECT_EQ(ecg.values.shape, (Shape{100, 96}));
}

}  // namespace
}  // namespace samebytes::data

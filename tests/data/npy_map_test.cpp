#include "samebytes/data/npy_map.h"

#include <gtest/gtest.h>

#include <numeric>

#include "samebytes/data/npy.h"
#include "samebytes/ops.h"
#include "support/devices.h"
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
using namespace std::string_literals;

HostArray counted(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.size()));
  std::iota(values.begin(), values.end(), 0.0f);
  return HostArray(shape, values);
}

TEST(NpyMap, shows_the_values_where_they_lie) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  write_npy(path, counted(Shape{5, 3}));
  const NpyMap map(path);
  EXPECT_EQ(map.shape(), (Shape{5, 3}));
  EXPECT_EQ(map.dtype(), f32);
  EXPECT_EQ(map.as<float>()[14], 14);
  EXPECT_ERROR(map.as<std::int32_t>(), ArgumentError, "npy_map: holds f32, read as i32");
  write_npy(path, HostArray(Shape{0, 3}, i32));
  EXPECT_EQ(NpyMap(path).bytes().size(), 0u);
}

TEST(NpyMap, columns_become_a_set) {
  const TemporaryFolder folder;
  write_npy(folder / "x.npy", counted(Shape{5, 3}));
  write_npy(folder / "y.npy", HostArray(Shape{5}, std::vector<std::int32_t>{9, 8, 7, 6, 5}));
  const NpyMap x(folder / "x.npy"), y(folder / "y.npy");
  const DatasetPtr set = mapped({{"x", x}, {"y", y}});
  EXPECT_EQ(set->size(), 5);
  const Sample sample(*set, 3);
  EXPECT_EQ(sample.values<float>(0), (std::vector<float>{9, 10, 11}));
  EXPECT_EQ(sample.value<std::int32_t>(1), 6);
  EXPECT_ERROR(mapped({}), ArgumentError, "mapped: a sample has at least one field, got none");
  EXPECT_ERROR((mapped({{"x", x}, {"x", y}})), ArgumentError, "mapped: fields have different names, got 'x' twice");
  write_npy(folder / "z.npy", HostArray(Shape{4}, i32));
  EXPECT_ERROR((mapped({{"x", x}, {"z", NpyMap(folder / "z.npy")}})), ArgumentError,
               "mapped: columns of one length: 'x' has 5 samples, 'z' 4");
  write_npy(folder / "z.npy", HostArray(Shape{}, i32));
  EXPECT_ERROR((mapped({{"z", NpyMap(folder / "z.npy")}})), ArgumentError,
               "mapped: 'z' wants a first axis that counts samples, got a scalar");
}

std::string npy(const std::string& header, const std::string& values) {
  return "\x93NUMPY\1"s + '\0' + static_cast<char>(header.size()) + '\0' + header + values;
}

TEST(NpyMap, refuses_what_cannot_be_used_as_it_lies) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  const auto act = [&] { NpyMap map(path); };
  expect_io_error(act, path, -1, {"No such file"});
  expect_io_error([&] { NpyMap map(folder.string()); }, folder.string(), -1, {"a folder"});
  put(path, "");
  expect_io_error(act, path, 0, {"NUMPY", "a shorter file"});
  put(path, "\x1f\x8b and packed bytes");
  expect_io_error(act, path, 0, {"an unpacked file (read_npy reads others)", "gzip"});
  // A header of 54 bytes behind the first 10: values begin at 64.
  put(path, npy("{'descr':'<f4','fortran_order':False,'shape':(3,)}    ", "12345678"));
  expect_io_error(act, path, 72, {"12 bytes", "found 8"});
  put(path, npy("{'descr':'>f4','fortran_order':False,'shape':(2,)}    ", "12345678"));
  expect_io_error(act, path, 64, {"little-endian"});
  put(path, npy("{'descr':'<i2','fortran_order':False,'shape':(4,)}    ", "12345678"));
  expect_io_error(act, path, 64, {"no conversion", "16-bit integers"});
  put(path, npy("{'descr':'<f4','fortran_order':True,'shape':(2,1)}    ", "12345678"));
  expect_io_error(act, path, 64, {"C order", "Fortran order"});
  put(path, npy("{'descr':'<f4','fortran_order':False,'shape':(2,)} ", "12345678"));
  expect_io_error(act, path, 61, {"a multiple of their size", "61 bytes"});
}

class NpyMapTest : public testing::OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(NpyMapTest);

TEST_P(NpyMapTest, gives_arrays_that_leave_the_file_alone) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.npy";
  write_npy(path, counted(Shape{300, 7}));
  const std::string before = testing::get(path);
  Array first, second;
  Adoption verdict;
  {
    const NpyMap map(path);
    const std::uint64_t copied = engine().transfers().bytes_copied;
    first = map.array(&verdict);
    second = map.array();
    if (verdict.adopted) {
      EXPECT_EQ(engine().transfers().bytes_copied, copied) << verdict.reason;
    }
  }  // the arrays outlive the map
  EXPECT_EQ(first.shape(), (Shape{300, 7}));
  EXPECT_EQ(sum(first).value(), 2100.0 * 2099 / 2);
  first.mutable_host<float>()[0] = 1000;
  EXPECT_EQ(sum(first).value(), 2100.0 * 2099 / 2 + 1000);
  EXPECT_EQ(sum(second).value(), 2100.0 * 2099 / 2);
  EXPECT_EQ(testing::get(path), before);
  write_npy(path, HostArray(Shape{0, 2}, f32));
  EXPECT_EQ(NpyMap(path).array().size(), 0);
}

}  // namespace
}  // namespace samebytes::data

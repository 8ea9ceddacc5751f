// Sets of files behind a Loader: batches in shared memory, whatever the number of workers, and errors at their batch.
#include <gtest/gtest.h>

#include "samebytes/data.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/files.h"

namespace samebytes::data {
namespace {

using testing::put;
using testing::TemporaryFolder;
using namespace std::string_literals;

class ReadersLoaderTest : public testing::OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(ReadersLoaderTest);

TEST_P(ReadersLoaderTest, series_come_with_label_and_length_and_nothing_is_copied) {
  const TemporaryFolder folder;
  put(folder / "x.ts",
      "@dimensions 2\n@classLabel true a b\n@data\n1,2,3:4,5,6:a\n7:8:b\n9,10:11,12:a\n13,14,15:16,17,18:b\n");
  const DatasetPtr set = from_series(read_ts(folder / "x.ts"));
  const std::uint64_t copied = engine().transfers().bytes_copied;
  for (const int workers : {0, 2}) {
    Loader batches(engine(), set, {.batch = 2, .workers = workers});
    std::vector<double> sums;
    std::vector<std::int32_t> lengths;
    for (const Batch& batch : batches) {
      const auto [series, label, length] = batch.as<3>();
      EXPECT_EQ(series.shape(), (Shape{2, 3, 2}));
      sums.push_back(sum(series).value());
      for (const std::int32_t value : batch["length"].to_vector<std::int32_t>()) lengths.push_back(value);
    }
    EXPECT_EQ(sums, (std::vector<double>{36, 135}));
    EXPECT_EQ(lengths, (std::vector<std::int32_t>{3, 1, 2, 3}));
  }
  if (engine().device().memory_mode == MemoryMode::fine) {
    EXPECT_EQ(engine().transfers().bytes_copied, copied);
  }
}

TEST_P(ReadersLoaderTest, a_damaged_image_comes_out_of_its_batch_with_its_name) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a");
  // The smallest PNG: one grey pixel.
  const std::string png =
      "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0\x3a\x7e\x9b\x55\0\0\0\nIDAT\x78\x9c\x63\x60\0\0\0\2\0"
      "\1\x48"
      "\xaf\xa4\x71\0\0\0\0IEND\xae\x42\x60\x82"s;
  for (const char* name : {"1.png", "2.png", "3.png", "4.png"}) put(folder / ("a/"s + name), png);
  const ImageFolder images = image_folder(folder.string());
  put(folder / "a/3.png", png.substr(0, 45));
  for (const int workers : {0, 2}) {
    Loader batches(engine(), images.set, {.batch = 1, .workers = workers});
    int steps = 0;
    try {
      for (const auto& [image, label] : batches) {
        EXPECT_EQ(image.shape(), (Shape{1, 1, 1, 3}));
        ++steps;
      }
      ADD_FAILURE() << "got no error";
    } catch (const IoError& error) {
      EXPECT_EQ(error.path(), folder / "a/3.png");
      EXPECT_EQ(error.offset(), 45);
    }
    EXPECT_EQ(steps, 2);
  }
}

}  // namespace
}  // namespace samebytes::data

// Tensors of a file as arrays over its mapped pages.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "samebytes/io/safetensors.h"
#include "samebytes/ops.h"
#include "samebytes/weights.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

class MappedTensorsTest : public OnDevice {
 protected:
  MappedTensorsTest() {
    const std::vector<float> a{1, 2, 3, 4};
    const std::vector<std::uint16_t> b{0x3f80, 0x4000};  // bf16 1 and 2
    const std::vector<std::int32_t> c{5};
    const io::TensorView views[] = {{"a", f32, Shape{2, 2}, std::as_bytes(std::span(a))},
                                    {"b", bf16, Shape{2}, std::as_bytes(std::span(b))},
                                    {"c", i32, Shape{1}, std::as_bytes(std::span(c))},
                                    {"none", f32, Shape{0}, {}}};
    io::save_tensors(path_, views);
  }
  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "x.safetensors";
};
SAMEBYTES_ON_EVERY_DEVICE(MappedTensorsTest);

TEST_P(MappedTensorsTest, have_the_values_of_the_file_and_outlive_it) {
  std::optional<io::TensorFile> file(std::in_place, path_);
  Adoption verdict;
  const auto copied = engine().transfers().bytes_copied;
  const Array a = file->map(*file->find("a"), &verdict), b = file->map(*file->find("b"));
  const Array c = file->map(*file->find("c"));
  file.reset();
  std::filesystem::remove(path_);
  EXPECT_EQ(a.to_vector<double>(), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(sum(astype(b, f32)).value(), 3.0);
  EXPECT_EQ(c.value(), 5.0);
  const MemoryMode mode = engine().device().memory_mode;
  EXPECT_EQ(verdict.adopted, mode != MemoryMode::copy) << verdict.reason;
  if (mode == MemoryMode::fine || mode == MemoryMode::system) {
    EXPECT_EQ(engine().transfers().bytes_copied, copied);
  }
}

TEST_P(MappedTensorsTest, keep_what_is_written_to_themselves) {
  const std::string before = get(path_);
  const io::TensorFile file(path_);
  const Array weight = cell_over(file.map(*file.find("a")), "a");
  assign(weight, full({2, 2}, 7.0));
  EXPECT_EQ(sum(weight).value(), 28.0);
  EXPECT_EQ(get(path_), before);
  EXPECT_EQ(sum(io::TensorFile(path_).map(0)).value(), 10.0);
}

TEST_P(MappedTensorsTest, come_from_the_file_again_after_their_pages_were_dropped) {
  const std::vector<float> ones(65536, 1.0f);
  const io::TensorView view{"large", f32, Shape{65536}, std::as_bytes(std::span(ones))};
  io::save_tensors(path_, std::span(&view, 1));
  const io::TensorFile file(path_);
  file.drop_pages(0);  // was never mapped
  Adoption verdict;
  const Array weight = cell_over(file.map(0, &verdict), "large");
  assign(weight, full({65536}, 7.0));
  EXPECT_EQ(sum(weight).value(), 7.0 * 65536);
  if (!verdict.adopted) return;  // the device has a copy
  file.drop_pages(0);
  EXPECT_EQ(weight.to_vector<float>().at(32768), 1.0f);
}

TEST_P(MappedTensorsTest, that_do_not_lie_at_a_multiple_of_their_elements_are_copied) {
  const std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string text(8, '\0');
  const std::uint64_t length = header.size();
  ASSERT_NE(length % 4, 0u);
  std::memcpy(text.data(), &length, sizeof length);
  const float value = 2.5f;
  text += header + std::string(reinterpret_cast<const char*>(&value), sizeof value);
  put(path_, text);
  Adoption verdict;
  const Array a = io::TensorFile(path_).map(0, &verdict);
  EXPECT_EQ(a.value(), 2.5);
  EXPECT_FALSE(verdict.adopted);
  EXPECT_EQ(verdict.reason, "copied: its offset is no multiple of 4");
}

TEST_P(MappedTensorsTest, without_elements_or_of_other_widths_are_refused) {
  const io::TensorFile file(path_);
  EXPECT_ERROR((file.map(*file.find("none"))), ArgumentError, "safetensors: 'none' has no elements to map");
  const std::string header = R"({"n":{"dtype":"I16","shape":[4],"data_offsets":[0,8]}})";
  std::string text(8, '\0');
  const std::uint64_t length = header.size();
  std::memcpy(text.data(), &length, sizeof length);
  put(folder_ / "y", text + header + "12345678");
  EXPECT_ERROR((io::TensorFile(folder_ / "y").map(0)), ArgumentError,
               "safetensors: 'n' of I16 cannot be mapped; read() it");
}

}  // namespace
}  // namespace samebytes::testing

// Checkpoints of which whole checksums say nothing about how their weights lie.
#include "samebytes/io/convert_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samebytes/engine.h"
#include "samebytes/host_array.h"
#include "support/errors.h"
#include "support/files.h"
#include "train/run_parts.h"

namespace samebytes::io {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ConvertFile, layouts_that_do_not_fit_the_weights_are_refused) {
  Engine engine;
  const EngineScope scope(engine);
  const testing::TemporaryFolder folder;
  const std::string path = folder / "checkpoint.safetensors", to = folder / "weights.safetensors";
  const HostArray weight(Shape{2, 3}, f32), bias(Shape{3}, f32);
  const TensorView tensors[] = {{"model/weight", f32, weight.shape, weight.bytes},
                                {"model/bias", f32, bias.shape, bias.bytes}};
  const auto convert = [&](const std::string& layouts) {
    detail::write_run_file(path, tensors, R"({"device": "", "tuning": "", "random_counter": 0, "expect": {},
"parts": {}, "layouts": )" + layouts + "}");
    return convert_file(path, to);
  };
  EXPECT_EQ(convert(R"({"model": {"weight": [2, 1], "bias": [0, 1]}})").tensors, 2u);
  EXPECT_EQ(TensorFile(to).tensors()[*TensorFile(to).find("weight")].shape, (Shape{3, 2}));
  for (const char* layouts :
       {"7", "[1]", "\"model\"", R"({"model": {"weight": 7}})", R"({"model": {"weight": [1]}})",
        R"({"model": {"weight": ["x", 1]}})", R"({"model": {"weight": [5, 1]}})", R"({"model": {"weight": [-1, 1]}})",
        R"({"model": {"bias": [1, 2]}})", R"({"model": {"bias": [2, 1]}})", R"({"model": {"bias": [3, 1]}})"})
    EXPECT_THAT(message_of<IoError>([&] { convert(layouts); }),
                AllOf(HasSubstr("convert: " + path + ": expected "), Not(HasSubstr("json.exception"))))
        << layouts;
}

}  // namespace
}  // namespace samebytes::io

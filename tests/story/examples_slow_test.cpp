// The example that trains a network on MNIST, where the data is.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/files.h"
#include "support/process.h"

namespace samebytes::testing {
namespace {

TEST(Examples, mnist_cnn_trains_and_saves) {
  const std::string data = data_folder("mnist");
  SAMEBYTES_NEED_DATA(data);
  const std::string program = built_program("examples/04_mnist_cnn");
  if (!std::filesystem::exists(program)) GTEST_SKIP() << "built without examples";
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "data");
  std::filesystem::create_directory_symlink(std::filesystem::absolute(data), folder / "data/mnist");
  const Outcome outcome = run_program({"/bin/sh", "-c", "cd \"$0\" && exec \"$1\"", folder.string(), program});
  ASSERT_EQ(outcome.status, 0) << outcome.output;
  const std::size_t last = outcome.output.rfind("loss ");
  ASSERT_NE(last, std::string::npos) << outcome.output;
  EXPECT_LT(std::strtod(outcome.output.c_str() + last + 5, nullptr), 0.08);
  EXPECT_GT(std::filesystem::file_size(folder / "mnist.safetensors"), 100000u);
}

}  // namespace
}  // namespace samebytes::testing

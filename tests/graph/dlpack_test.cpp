// DLPack: an array's bytes as a tensor of another library, and a tensor's as an array.
#include "samebytes/interop/dlpack.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/places.h"
#include "support/process.h"

namespace samebytes::testing {
namespace {

// The engine lets go of memory in a thread of its own.
void wait_until(const std::atomic<int>& deleted, int count) {
  for (int i = 0; i < 1000 && deleted < count; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));  // a thread
}

class DlpackTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(DlpackTest);

std::vector<std::int64_t> strides_of(const interop::DlpackTensor& tensor) {
  return {tensor->dl_tensor.strides, tensor->dl_tensor.strides + tensor->dl_tensor.ndim};
}

// A tensor over `values` that counts the calls of its deleter.
struct Foreign {
  std::vector<std::int64_t> shape, strides;
  std::atomic<int>* deleted = nullptr;
  DLManagedTensor tensor{};

  template <class T>
  static interop::DlpackTensor over(T* first, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides,
                                    DLDataType type, std::atomic<int>* deleted) {
    auto* made = new Foreign{std::move(shape), std::move(strides), deleted, {}};
    made->tensor.dl_tensor = {first, {kDLCPU, 0},        static_cast<int>(made->shape.size()),
                              type,  made->shape.data(), made->strides.empty() ? nullptr : made->strides.data(),
                              0};
    made->tensor.manager_ctx = made;
    made->tensor.deleter = [](DLManagedTensor* self) {
      auto* all = static_cast<Foreign*>(self->manager_ctx);
      ++*all->deleted;
      delete all;
    };
    return interop::DlpackTensor(&made->tensor);
  }
};
constexpr DLDataType kFloat{kDLFloat, 32, 1};

TEST_P(DlpackTest, an_array_shows_its_bytes_and_lives_as_long_as_the_tensor) {
  interop::DlpackTensor tensor;
  {
    const Array x = arange(0, 6) * 2.0;
    tensor = interop::to_dlpack(reshape(x, {2, 3}));
    EXPECT_EQ(static_cast<const void*>(x.host<float>().data()), tensor->dl_tensor.data);
  }
  const DLTensor& shown = tensor->dl_tensor;
  EXPECT_EQ(shown.device.device_type, kDLCPU);
  EXPECT_EQ(shown.dtype.code, kDLFloat);
  EXPECT_EQ(shown.dtype.bits, 32);
  EXPECT_EQ(std::vector<std::int64_t>(shown.shape, shown.shape + shown.ndim), (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(strides_of(tensor), (std::vector<std::int64_t>{3, 1}));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(static_cast<const float*>(shown.data)[i], 2.0f * static_cast<float>(i));
}

TEST_P(DlpackTest, views_keep_their_strides) {
  const Array x = reshape(arange(0, 24), {4, 6});
  x.eval();
  const auto* first = x.host<float>().data();
  const auto turned = interop::to_dlpack(transpose(x));
  EXPECT_EQ(strides_of(turned), (std::vector<std::int64_t>{1, 6}));
  EXPECT_EQ(turned->dl_tensor.data, first);
  const auto part = interop::to_dlpack(slice(slice(x, 0, 1, 4, 2), 1, 2, 6, 3));
  EXPECT_EQ(strides_of(part), (std::vector<std::int64_t>{12, 3}));
  EXPECT_EQ(part->dl_tensor.data, first + 8);
  const auto wide = interop::to_dlpack(broadcast_to(slice(x, 0, 0, 1), {3, 6}));
  EXPECT_EQ(strides_of(wide), (std::vector<std::int64_t>{0, 1}));
}

TEST_P(DlpackTest, a_reading_tensor_forbids_writes_and_a_writable_one_is_seen) {
  const Array x = cell(zeros({4}), "x");
  x.eval();
  {
    const auto tensor = interop::to_dlpack(x);
    EXPECT_THROW(
        {
          assign(x, ones({4}));
          x.wait();
        },
        ArgumentError);
  }
  {
    const auto tensor = interop::to_dlpack(x, {.writable = true});
    static_cast<float*>(tensor->dl_tensor.data)[2] = 7;
  }
  EXPECT_EQ(x.to_vector<float>(), (std::vector<float>{0, 0, 7, 0}));
}

TEST_P(DlpackTest, a_tensor_becomes_an_array_over_its_bytes) {
  std::vector<float> mine{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  std::atomic<int> deleted{0};
  Adoption verdict;
  const std::uint64_t before = engine().transfers().bytes_copied;
  {
    const Array x = interop::from_dlpack(Foreign::over(mine.data(), {3, 4}, {}, kFloat, &deleted), &verdict);
    EXPECT_EQ(x.shape(), (Shape{3, 4}));
    EXPECT_EQ(sum(x).value(), 66.0);
    if (verdict.adopted) {
      EXPECT_EQ(x.host<float>().data(), mine.data());
      EXPECT_EQ(engine().transfers().bytes_copied, before);
      EXPECT_EQ(deleted, 0);  // a copy needs the tensor no longer
    }
  }
  engine().wait();
  wait_until(deleted, 1);
  EXPECT_EQ(deleted, 1);
}

TEST_P(DlpackTest, strides_are_kept_negative_and_repeated_ones_too) {
  std::vector<float> one{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, two = one, three = one;
  std::atomic<int> deleted{0};
  {
    const Array columns = interop::from_dlpack(Foreign::over(one.data(), {2, 3}, {1, 4}, kFloat, &deleted));
    EXPECT_EQ((columns + 0.0).to_vector<float>(), (std::vector<float>{0, 4, 8, 1, 5, 9}));
    const Array back = interop::from_dlpack(Foreign::over(two.data() + 11, {2, 3}, {-6, -2}, kFloat, &deleted));
    EXPECT_EQ((back * 2.0).to_vector<float>(), (std::vector<float>{22, 18, 14, 10, 6, 2}));
    EXPECT_EQ(matmul(back, transpose(columns)).to_vector<float>(), (std::vector<float>{92, 119, 20, 29}));
    const Array again = interop::from_dlpack(Foreign::over(three.data() + 3, {2, 2}, {0, 1}, kFloat, &deleted));
    EXPECT_EQ((again + 0.0).to_vector<float>(), (std::vector<float>{3, 4, 3, 4}));
    const Array x = cell(ones({2, 3}), "x");
    EXPECT_EQ(gradients(sum(x * back), std::vector<Array>{x})[0].to_vector<float>(),
              (std::vector<float>{11, 9, 7, 5, 3, 1}));
  }
  wait_until(deleted, 3);
  EXPECT_EQ(deleted, 3);
}

TEST_P(DlpackTest, there_and_back_is_the_same_array) {
  for (const Dtype dtype : {f32, f16, bf16, i32, i64, u8, bool_}) {
    const Array x = astype(reshape(arange(0, 6), {2, 3}), dtype);
    const Array y = interop::from_dlpack(interop::to_dlpack(transpose(x)));
    EXPECT_EQ(y.dtype(), dtype);
    EXPECT_EQ(y.to_vector<double>(), transpose(x).to_vector<double>()) << name_of(dtype);
  }
  const Array none = interop::from_dlpack(interop::to_dlpack(zeros({0, 3})));
  EXPECT_EQ(none.shape(), (Shape{0, 3}));
}

TEST_P(DlpackTest, what_does_not_fit_is_refused_and_let_go_of) {
  float mine[4] = {};
  std::atomic<int> deleted{0};
  const auto refused = [&](std::vector<std::int64_t> shape, std::vector<std::int64_t> strides, DLDataType type,
                           DLDeviceType device = kDLCPU) {
    auto tensor = Foreign::over(mine, std::move(shape), std::move(strides), type, &deleted);
    tensor->dl_tensor.device.device_type = device;
    EXPECT_THROW(interop::from_dlpack(std::move(tensor)), ArgumentError);
  };
  refused({4}, {}, {kDLInt, 16, 1});
  refused({2}, {}, {kDLFloat, 32, 2});
  refused({4}, {}, kFloat, kDLCUDA);
  refused({-1}, {}, kFloat);
  refused({2, 2}, {std::int64_t{1} << 62, 1}, kFloat);
  refused({1, 1, 1, 1, 1, 1, 1, 1, 1}, {}, kFloat);
  EXPECT_EQ(deleted, 6);
  EXPECT_THROW(interop::from_dlpack(nullptr), ArgumentError);
  EXPECT_THROW(interop::to_dlpack(Array()), ArgumentError);
}

// NumPy, and PyTorch where that Python has it: values, strides, no copy. SAMEBYTES_ONNX_PYTHON names the Python, else
// Debian's.
TEST(Dlpack, numpy_and_pytorch_read_arrays_and_give_theirs) {
  if (is_sanitized()) GTEST_SKIP() << "Python is not instrumented";
  const char* python = std::getenv("SAMEBYTES_ONNX_PYTHON");
  const std::string program = python == nullptr ? "/usr/bin/python3" : python;
  if (run_program({program, "-c", "import numpy"}).status != 0) GTEST_SKIP() << program << " has no NumPy";
  const Outcome outcome = run_program(
      {program, "-B", source_folder() + "/tests/support/dlpack_probe.py", built_program("libdlpack_probe.so")});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("NumPy agrees"), std::string::npos) << outcome.output;
}

}  // namespace
}  // namespace samebytes::testing

// Errors of what an array needs name the user's line that asked for it: of an op, an operator, a layer, a gradient.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "graph/context.h"
#include "graph/node.h"
#include "runtime/faults.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

// "written at FILE:LINE" of this file.
std::string written_at(int line) { return "written at " + std::string(__FILE__) + ":" + std::to_string(line); }

// Launches of an op fail while it lives.
class FailingOp {
 public:
  explicit FailingOp(const char* op) {
    {
      const detail::MutexLock lock(detail::faults().mutex);
      detail::faults().failing_op = op;
    }
    detail::faults().fail_launch = true;
  }
  ~FailingOp() { detail::faults().fail_launch = false; }
  FailingOp(const FailingOp&) = delete;
  FailingOp& operator=(const FailingOp&) = delete;
};

class SourceLineTest : public ::testing::TestWithParam<DeviceCase> {
 protected:
  // An engine of its own: failures stay in it.
  explicit SourceLineTest(const EngineOptions& options = {})
      : engine_(make_engine(GetParam(), options)), scope_(*engine_) {}
  Engine& engine() { return *engine_; }
  std::string failure_of(const char* op, const Array& array) {
    const FailingOp failing(op);
    return message_of<DeviceError>([&] { array.wait(); });
  }

 private:
  std::unique_ptr<Engine> engine_;
  const EngineScope scope_;
};
SAMEBYTES_ON_EVERY_DEVICE(SourceLineTest);

TEST_P(SourceLineTest, an_op_whose_launch_fails) {
  const Array x = array({1, 2, 3, 4}, {2, 2});
  const int line = __LINE__ + 1;
  const Array y = softmax(x);
  const std::string message = failure_of("softmax", y);
  EXPECT_THAT(message, HasSubstr("softmax: "));
  EXPECT_THAT(message, HasSubstr("result [2, 2]"));
  EXPECT_THAT(message, HasSubstr(written_at(line)));
  EXPECT_THAT(message, Not(HasSubstr("gradient of")));
}

TEST_P(SourceLineTest, each_op_of_a_statement_has_its_own_line) {
  const Array x = array({1, 2, 3, 4}, {2, 2});
  // clang-format off
  const int line = __LINE__ + 1;
  const Array y = matmul(x,
                         softmax(x));
  // clang-format on
  // Of a call over several lines, that of the argument which the compiler makes last.
  EXPECT_THAT(y.node()->written_at.line, AnyOf(line, line + 1));
  EXPECT_EQ(y.node()->inputs[1].node->written_at.line, line + 1);
}

TEST_P(SourceLineTest, a_function_called_with_an_expression_keeps_its_own_lines) {
  int inside = 0;
  const auto twice = [&](const Array& a) {
    inside = __LINE__ + 1;
    return a * 2.0;
  };
  const Array x = array({1, 2});
  EXPECT_EQ(twice(exp(x)).node()->written_at.line, inside);
}

TEST_P(SourceLineTest, an_operator_and_a_scalar) {
  const Array x = array({1, 2});
  const int line = __LINE__ + 1;
  const std::vector<Array> made = {x + x, 2.0 * x, -x};
  for (const Array& each : made) {
    EXPECT_EQ(each.node()->written_at.line, line);
    EXPECT_STREQ(each.node()->written_at.file, __FILE__);
  }
}

TEST_P(SourceLineTest, lists_and_filled_arrays) {
  const Array x = array({1, 2});
  const std::vector<Array> pair = {x, x};
  const int line = __LINE__ + 1;
  const std::vector<Array> made = {concat({x, x}, 0), stack(pair), zeros({2}), uniform({2}), arange(0, 3)};
  for (const Array& each : made) EXPECT_EQ(each.node()->written_at.line, line);
}

TEST_P(SourceLineTest, an_op_in_a_layer_is_of_the_line_that_called_the_layer) {
  nn::Sequential net(nn::Linear({.in = 2, .out = 3}), nn::Softmax());
  const Array x = array({1, 2, 3, 4}, {2, 2});
  const int line = __LINE__ + 1;
  const Array y = net(x);
  const std::string message = failure_of("softmax", y);
  EXPECT_THAT(message, HasSubstr("layer 1 Softmax, " + written_at(line)));
}

TEST_P(SourceLineTest, an_op_of_the_reverse_pass_is_the_gradient_of_the_line_that_it_differentiates) {
  const Array x = array({1, 2, 3, 4}, {2, 2});
  const int line = __LINE__ + 1;
  const Array y = softmax(x);
  const Array loss = sum(square(y));
  const Array dx = gradients(loss, std::vector<Array>{x})[0];
  const std::string message = failure_of("softmax_backward", dx);
  EXPECT_THAT(message, HasSubstr("gradient of what is " + written_at(line)));
}

TEST_P(SourceLineTest, what_the_library_does_by_itself_has_no_line) {
  const Array w = cell(ones({4}), "w");
  optim::Sgd sgd(std::vector<Array>{w}, {.rate = 0.1});
  sgd.step(sum(square(w)));
  EXPECT_EQ(detail::current_line.file, nullptr);
}

TEST_P(SourceLineTest, an_allocation_that_does_not_fit) {
  engine().set_memory_limit(1 << 20);
  const Array x = zeros({4});
  const int line = __LINE__ + 1;
  const Array large = broadcast_to(x, {1 << 20, 4}) + 1.0;
  const std::string message = message_of<OutOfMemory>([&] { large.eval(); });
  EXPECT_THAT(message, HasSubstr("for the result [1048576, 4], " + written_at(line)));
}

TEST_P(SourceLineTest, check_nan_of_an_op_in_a_layer) {
  const auto checked = make_engine(GetParam(), {.check_nan = true});
  const EngineScope use(*checked);
  nn::Sequential net(nn::Lambda([](const Array& x) { return log(x); }), nn::Relu());
  const int line = __LINE__ - 1;
  const Array y = net(array({1.0f, -1.0f}));
  const std::string message = message_of<Error>([&] { y.eval(); });
  EXPECT_THAT(message, HasSubstr("check_nan: log produced the first NaN or infinity, its result is f32 [2]"));
  EXPECT_THAT(message, HasSubstr("layer 0 Lambda, " + written_at(line)));
}

}  // namespace
}  // namespace samebytes::testing

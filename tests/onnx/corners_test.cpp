// Corners of operators that files reach and the operators' own tests do not: values against formulas in double.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "onnx/one_node.h"
#include "samebytes/ops.h"
#include "support/gradcheck.h"

namespace samebytes::onnx {
namespace {

using testing::all_close;
using testing::GradientInput;

class OnnxCorners : public ::testing::Test {
 protected:
  std::vector<double> run(OneNode& file, const std::vector<GradientInput>& inputs) {
    return file.function(folder, inputs)(arrays_of(inputs)).to_vector<double>();
  }

  TemporaryFolder folder;
  Engine engine;
};

// No axis is reduced, and what a reduction does to each element stays: ReduceSumSquare is a square.
TEST_F(OnnxCorners, a_reduction_of_no_axis_keeps_what_it_does_to_each_element) {
  const std::vector<GradientInput> x{{"x", {2, 3}, {1, -2, 3, 0.5, 5, -6}}};
  const auto positive = [](double v) { return std::abs(v); };
  const std::pair<const char*, double (*)(double)> ops[] = {{"ReduceSum", [](double v) { return v; }},
                                                            {"ReduceMean", [](double v) { return v; }},
                                                            {"ReduceMax", [](double v) { return v; }},
                                                            {"ReduceMin", [](double v) { return v; }},
                                                            {"ReduceProd", [](double v) { return v; }},
                                                            {"ReduceL1", positive},
                                                            {"ReduceL2", positive},
                                                            {"ReduceSumSquare", [](double v) { return v * v; }},
                                                            {"ReduceLogSumExp", [](double v) { return v; }},
                                                            {"ReduceLogSum", [](double v) { return std::log(v); }}};
  for (const auto& [op, function] : ops)
    for (const std::int64_t keep : {0, 1}) {
      std::vector<GradientInput> in = x;
      if (std::string(op) == "ReduceLogSum")
        for (double& value : in[0].values) value = std::abs(value);
      OneNode file(op, {"x"}, 18);
      Maker::set(*file.node, "noop_with_empty_axes", std::int64_t{1});
      Maker::set(*file.node, "keepdims", keep);
      std::vector<double> expected;
      for (const double value : in[0].values) expected.push_back(function(value));
      const Array made = file.function(folder, in)(arrays_of(in));
      EXPECT_EQ(made.shape(), (Shape{2, 3})) << op;
      EXPECT_TRUE(all_close(made, expected, 1e-12)) << op;
    }
}

TEST_F(OnnxCorners, an_image_of_one_value_is_normalised_to_its_bias) {
  OneNode file("InstanceNormalization", {"x", "scale", "bias"}, 22);
  const auto y = run(file, {{"x", {2, 2, 1}, {3, -4, 5, 6}}, {"scale", {2}, {2, 3}}, {"bias", {2}, {0.5, -1}}});
  EXPECT_EQ(y, (std::vector<double>{0.5, -1, 0.5, -1}));
}

TEST_F(OnnxCorners, an_edge_that_is_cut_off_is_not_repeated) {
  OneNode file("Pad", {"x"}, 10);
  Maker::set(*file.node, "mode", std::string("edge"));
  Maker::set(*file.node, "pads", std::vector<std::int64_t>{1, -1, 0, 2});
  const auto y = run(file, {{"x", {2, 3}, {1, 2, 3, 4, 5, 6}}});
  EXPECT_EQ(y, (std::vector<double>{2, 3, 3, 3, 2, 3, 3, 3, 5, 6, 6, 6}));
}

TEST_F(OnnxCorners, large_natural_numbers_become_real_ones) {
  const auto converted = [&](int type, const auto& values) {
    Maker maker(19);
    maker.input("x", {std::to_string(values.size())}, type);
    Maker::set(maker.node("Cast", {"x"}, "y"), "to", std::int64_t{11});
    maker.output("y");
    Tensor tensor{static_cast<Type>(type), {std::ssize(values)}, {}};
    tensor.bytes.resize(values.size() * sizeof(values[0]));
    std::memcpy(tensor.bytes.data(), values.data(), tensor.bytes.size());
    return std::get<Array>(load(maker.saved(folder)).run({{"x", tensor}}).at("y")).template to_vector<double>();
  };
  EXPECT_EQ(converted(12, std::vector<std::uint32_t>{0, 7, 4294967295U}), (std::vector<double>{0, 7, 4294967295.0}));
  EXPECT_EQ(converted(13, std::vector<std::uint64_t>{1, std::uint64_t{1} << 63}),
            (std::vector<double>{1, 9223372036854775808.0}));
}

}  // namespace
}  // namespace samebytes::onnx

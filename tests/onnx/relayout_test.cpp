// Images run channels last inside: transposes of a file that is written channels first cancel.
#include <gtest/gtest.h>

#include "onnx/maker.h"
#include "samebytes/autograd.h"
#include "samebytes/engine.h"
#include "samebytes/explain.h"
#include "samebytes/models.h"
#include "samebytes/nn.h"
#include "samebytes/onnx.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

// Launches that only change a layout, as explain() counts them; x is [N, C, H, W].
int relayouts_of(const std::string& path, const Shape& shape) {
  Engine engine;
  const EngineScope scope(engine);
  const NoGrad no_grad;
  Model model = load(path);
  const Array x = uniform(shape);
  x.wait();
  for (int i = 0; i < 2; ++i) model.forward(x).wait();
  const std::string text = explain(engine), key = "relayouts: ";
  const auto at = text.find(key);
  EXPECT_NE(at, std::string::npos) << text;
  return at == std::string::npos ? -1 : std::stoi(text.substr(at + key.size()));
}

int relayouts_of(nn::Module& net, const Array& example) {
  const TemporaryFolder folder;
  const std::string path = folder / "net.onnx";
  save(path, net, example);
  const Shape& shape = example.shape();
  return relayouts_of(path, {shape[0], shape[3], shape[1], shape[2]});
}

// A detector as exporters write it: gated convolutions, parts that are split and put together again, pools of several
// sizes, a smaller map widened beside a larger one, boxes of two maps in one list.
class Detector : public Maker {
 public:
  Detector() : Maker(17) {
    input("x", {"1", "3", "32", "32"});
    floats("scales", {4}, {1, 1, 2, 2});
    const std::string stem = gated("x", 3, 8, 3, 2), middle = gated(stem, 8, 16, 3, 2),
                      deep = gated(middle, 16, 32, 3, 2);
    const std::string narrow = gated(deep, 32, 16, 1, 1);
    std::vector<std::string> pools{narrow};
    for (int i = 0; i < 3; ++i) {
      auto& pool = node("MaxPool", {pools.back()}, fresh());
      set(pool, "kernel_shape", std::vector<std::int64_t>{5, 5});
      set(pool, "pads", std::vector<std::int64_t>{2, 2, 2, 2});
      pools.push_back(pool.output(0));
    }
    const std::string pooled = gated(joined(pools), 64, 32, 1, 1);
    auto& wide = node("Resize", {pooled, "", "scales"}, fresh());
    set(wide, "mode", std::string("nearest"));
    set(wide, "nearest_mode", std::string("floor"));
    set(wide, "coordinate_transformation_mode", std::string("asymmetric"));
    const std::string top = gated(joined({wide.output(0), middle}), 48, 16, 1, 1);
    auto& halves = node("Split", {top}, fresh());
    set(halves, "axis", std::int64_t{1});
    const std::string first = halves.output(0), second = fresh(), sum = fresh();
    halves.add_output(second);
    node("Add", {second, gated(second, 8, 8, 3, 1)}, sum);
    const std::string all = gated(joined({first, second, sum}), 24, 16, 1, 1);
    node("Concat", {boxes(all, 16, 8), boxes(pooled, 32, 4)}, "y");
    set(*model.mutable_graph()->mutable_node(model.graph().node_size() - 1), "axis", std::int64_t{1});
    output("y");
  }

 private:
  std::string fresh() { return "v" + std::to_string(count_++); }
  std::string convolved(const std::string& x, std::int64_t in, std::int64_t out, std::int64_t kernel,
                        std::int64_t stride) {
    const std::string weight = fresh() + ".weight", y = fresh();
    floats(weight, {out, in, kernel, kernel}, std::vector<float>(std::size_t(out * in * kernel * kernel), 0.01F));
    auto& conv = node("Conv", {x, weight}, y);
    const std::int64_t pad = kernel / 2;
    set(conv, "strides", std::vector<std::int64_t>{stride, stride});
    set(conv, "pads", std::vector<std::int64_t>{pad, pad, pad, pad});
    return y;
  }
  std::string gated(const std::string& x, std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
    const std::string y = convolved(x, in, out, kernel, stride), gate = fresh(), result = fresh();
    node("Sigmoid", {y}, gate);
    node("Mul", {y, gate}, result);
    return result;
  }
  std::string joined(const std::vector<std::string>& parts) {
    auto& made = node("Concat", parts, fresh());
    set(made, "axis", std::int64_t{1});
    return made.output(0);
  }
  std::string boxes(const std::string& x, std::int64_t in, std::int64_t size) {
    const std::string apart = fresh(), turned = fresh(), shares = fresh(), list = fresh();
    ints(apart + ".shape", {1, 3, 9, size, size});
    ints(list + ".shape", {1, -1, 9});
    node("Reshape", {convolved(x, in, 27, 1, 1), apart + ".shape"}, apart);
    set(node("Transpose", {apart}, turned), "perm", std::vector<std::int64_t>{0, 1, 3, 4, 2});
    node("Sigmoid", {turned}, shares);
    node("Reshape", {shares, list + ".shape"}, list);
    return list;
  }
  int count_ = 0;
};

TEST(OnnxRelayouts, a_detector_has_at_most_three) {
  const TemporaryFolder folder;
  const int n = relayouts_of(Detector().saved(folder), {1, 3, 32, 32});
  EXPECT_GE(n, 0);
  EXPECT_LE(n, 3);
}

TEST(OnnxRelayouts, a_residual_network_has_at_most_three) {
  const Engine engine;
  models::ResNet net = models::resnet(8);
  const int n = relayouts_of(net, uniform({2, 16, 16, 3}));
  EXPECT_GE(n, 0);
  EXPECT_LE(n, 3);
}

TEST(OnnxRelayouts, inverted_residuals_have_at_most_three) {
  const Engine engine;
  nn::Sequential net(nn::Conv2d({.in = 3, .out = 8, .kernel = 3, .stride = 2, .pad = 1}),
                     nn::BatchNorm({.features = 8}), nn::Relu(), nn::Conv2d({.in = 8, .out = 24, .kernel = 1}),
                     nn::BatchNorm({.features = 24}), nn::Relu(),
                     nn::Conv2d({.in = 24, .out = 24, .kernel = 3, .pad = 1, .groups = 24}),
                     nn::BatchNorm({.features = 24}), nn::Relu(), nn::Conv2d({.in = 24, .out = 16, .kernel = 1}),
                     nn::AvgPool2d({.kernel = 8}), nn::Flatten(), nn::Linear({.in = 16, .out = 5}));
  const int n = relayouts_of(net, uniform({2, 16, 16, 3}));
  EXPECT_GE(n, 0);
  EXPECT_LE(n, 3);
}

}  // namespace
}  // namespace samebytes::onnx

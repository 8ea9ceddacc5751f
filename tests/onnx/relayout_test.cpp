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

// Launches that only change a layout, as explain() counts them.
int relayouts_of(nn::Module& net, const Array& example) {
  const TemporaryFolder folder;
  const std::string path = folder / "net.onnx";
  save(path, net, example);
  Engine engine;
  const EngineScope scope(engine);
  const NoGrad no_grad;
  Model model = load(path);
  Shape shape = example.shape();
  const Array x = uniform({shape[0], shape[3], shape[1], shape[2]});
  x.wait();
  for (int i = 0; i < 2; ++i) model.forward(x).wait();
  const std::string text = explain(engine), key = "relayouts: ";
  const auto at = text.find(key);
  EXPECT_NE(at, std::string::npos) << text;
  return at == std::string::npos ? -1 : std::stoi(text.substr(at + key.size()));
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

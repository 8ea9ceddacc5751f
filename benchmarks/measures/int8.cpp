// Seconds of inference in f32 and in int8, in turns in one process, for benchmarks/int8_peers.py. Prints one line of
// JSON: medians over the rounds.
//   build/measure_int8 product ROWS IN OUT ROUNDS
//   build/measure_int8 resnet18 BATCH SIZE ROUNDS        torchvision's network, random weights
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"

namespace sb = samebytes;
namespace nn = samebytes::nn;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

class BasicBlock final : public nn::Module {
 public:
  BasicBlock(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv1_({.in = in, .out = out, .kernel = 3, .stride = stride, .pad = 1, .bias = false}),
        norm1_({.features = out}),
        conv2_({.in = out, .out = out, .kernel = 3, .pad = 1, .bias = false}),
        norm2_({.features = out}) {
    if (in == out) return;
    shortcut_ = std::make_unique<nn::Sequential>(
        nn::Conv2d({.in = in, .out = out, .kernel = 1, .stride = stride, .bias = false}),
        nn::BatchNorm2d({.features = out}));
  }
  sb::Array forward(const sb::Array& x) override {
    const sb::Array kept = shortcut_ ? (*shortcut_)(x) : x;
    return sb::relu(norm2_(conv2_(sb::relu(norm1_(conv1_(x))))) + kept);
  }
  void visit(nn::Visitor& v) override {
    v.child("conv1", conv1_);
    v.child("bn1", norm1_);
    v.child("conv2", conv2_);
    v.child("bn2", norm2_);
    if (shortcut_) v.child("downsample", *shortcut_);
  }

 private:
  nn::Conv2d conv1_;
  nn::BatchNorm2d norm1_;
  nn::Conv2d conv2_;
  nn::BatchNorm2d norm2_;
  std::unique_ptr<nn::Sequential> shortcut_;
};

class ResNet18 final : public nn::Module {
 public:
  ResNet18() {
    for (const std::int64_t width : {64, 128, 256, 512}) {
      const std::int64_t before = width == 64 ? 64 : width / 2;
      blocks_.push_back(std::make_unique<BasicBlock>(before, width, width == 64 ? 1 : 2));
      blocks_.push_back(std::make_unique<BasicBlock>(width, width, 1));
    }
  }
  sb::Array forward(const sb::Array& x) override {
    sb::Array y = sb::max_pool2d(sb::relu(norm_(stem_(x))),
                                 {.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1});
    for (const auto& block : blocks_) y = (*block)(y);
    return head_(sb::mean(y, {1, 2}));
  }
  void visit(nn::Visitor& v) override {
    v.child("conv1", stem_);
    v.child("bn1", norm_);
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      v.child("layer" + std::to_string(i / 2 + 1) + "." + std::to_string(i % 2), *blocks_[i]);
    v.child("fc", head_);
  }

 private:
  nn::Conv2d stem_{{.in = 3, .out = 64, .kernel = 7, .stride = 2, .pad = 3, .bias = false}};
  nn::BatchNorm2d norm_{{.features = 64}};
  std::vector<std::unique_ptr<BasicBlock>> blocks_;
  nn::Linear head_{{.in = 512, .out = 1000}};
};

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

void measure(nn::Module& model, const sb::Array& x, long rounds) {
  const sb::NoGrad no_grad;
  model.eval();
  const sb::Array want = model(x).eval();
  const auto seconds = [&] {
    const double start = now();
    model(x).eval();
    sb::Engine::current().wait();
    return now() - start;
  };
  std::vector<double> f32, dynamic, fixed;
  double difference = 0;
  for (long i = -2; i < rounds; ++i) {  // the first two make kernels and plans
    const auto take = [&](std::vector<double>& times) {
      seconds();
      const double time = std::min(seconds(), seconds());
      if (i >= 0) times.push_back(time);
    };
    take(f32);
    nn::quantize(model);
    take(dynamic);
    nn::dequantize(model);
    nn::quantize(model, {x});
    take(fixed);
    if (i == -2) difference = (sb::max(sb::abs(model(x) - want)).value()) / sb::max(sb::abs(want)).value();
    nn::dequantize(model);
  }
  fmt::print("{{\"f32\": {:.6f}, \"int8\": {:.6f}, \"int8_dynamic\": {:.6f}, \"difference\": {:.5f}}}\n", median(f32),
             median(fixed), median(dynamic), difference);
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> given(words + 1, words + count);
  const auto number = [&](std::size_t i) { return std::stol(given.at(i)); };
  const sb::Engine engine;
  if (given.size() == 5 && given[0] == "product") {
    nn::Linear model({.in = number(2), .out = number(3)});
    measure(model, sb::normal({number(1), number(2)}, 0, 1).eval(), number(4));
  } else if (given.size() == 4 && given[0] == "resnet18") {
    ResNet18 model;
    measure(model, sb::normal({number(1), number(2), number(2), 3}, 0, 1).eval(), number(3));
  } else {
    fmt::print(stderr, "usage: measure_int8 product ROWS IN OUT ROUNDS | resnet18 BATCH SIZE ROUNDS\n");
    return 2;
  }
}

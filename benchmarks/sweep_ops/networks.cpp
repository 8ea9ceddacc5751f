// Products, convolutions, pooling, attention, recurrence.
#include "samebytes/ops.h"
#include "samebytes/ops/quantised.h"
#include "sweep_ops/sweep.h"

namespace samebytes::benchmarks {
namespace {

struct Size2d {
  std::int64_t n, h, c, k;
};
constexpr Size2d kConv2d[kSizes] = {{1, 8, 16, 16}, {4, 28, 32, 32}, {8, 56, 64, 64}};
constexpr Size2d kConv3d[kSizes] = {{1, 6, 8, 8}, {1, 12, 32, 32}, {2, 24, 32, 32}};
constexpr Size2d kUp2d[kSizes] = {{1, 8, 16, 16}, {4, 14, 32, 32}, {8, 28, 64, 64}};
constexpr std::int64_t kSide[kSizes] = {32, 256, 1024};

struct Tokens {
  std::int64_t n, t, h, d;
};
constexpr Tokens kTokens[kSizes] = {{1, 16, 2, 32}, {2, 128, 4, 64}, {4, 512, 8, 64}};

struct Steps {
  std::int64_t n, t, c, h;
};
constexpr Steps kSteps[kSizes] = {{1, 16, 16, 16}, {8, 64, 64, 64}, {16, 128, 128, 256}};

// The blocks of a square matrix in Q8_0.
Array quantised(std::int64_t side) {
  const std::vector<float> weights = values({side, side}).to_vector<float>();
  const std::vector<std::byte> bytes = quantise(weights, side, QuantisedType::q8_0);
  const auto* first = reinterpret_cast<const std::uint8_t*>(bytes.data());
  return array(std::vector<std::uint8_t>(first, first + bytes.size()),
               {side, static_cast<std::int64_t>(bytes.size()) / side});
}

}  // namespace

void add_networks(std::vector<Row>& rows) {
  rows.push_back({"matmul", [](int s) {
                    return takes_gradient({values({kSide[s], kSide[s]}), values({kSide[s], kSide[s]})},
                                          [](Inputs x) { return matmul(x[0], x[1]); });
                  }});
  rows.push_back(
      {"matmul/batch", [](int s) {
         const Shape shapes[kSizes] = {{8, 16, 16}, {32, 64, 64}, {256, 128, 128}};
         return takes_gradient({values(shapes[s]), values(shapes[s])}, [](Inputs x) { return matmul(x[0], x[1]); });
       }});
  rows.push_back({"matmul/batch_of_8", [](int s) {
                    const std::int64_t n[kSizes] = {64, 512, 4096};
                    return takes_gradient({values({n[s], 8, 8}), values({n[s], 8, 8})},
                                          [](Inputs x) { return matmul(x[0], x[1]); });
                  }});
  rows.push_back({"matmul/row", [](int s) {
                    const std::int64_t side[kSizes] = {32, 1024, 4096};
                    return takes_gradient({values({1, side[s]}), values({side[s], side[s]})},
                                          [](Inputs x) { return matmul(x[0], x[1]); });
                  }});
  rows.push_back({"matmul/vector", [](int s) {
                    return takes_gradient({values(plane(s)), values({plane(s)[1], 1})},
                                          [](Inputs x) { return matmul(x[0], x[1]); });
                  }});
  rows.push_back({"linear", [](int s) {
                    return takes_gradient(
                        {values({kSide[s], kSide[s]}), values({kSide[s], kSide[s]}), values({kSide[s]})},
                        [](Inputs x) { return linear(x[0], x[1], x[2]); });
                  }});
  rows.push_back({"quantised_linear", [](int s) {
                    const Array blocks = quantised(kSide[s]);
                    return takes_gradient({values({kSide[s], kSide[s]})}, [blocks](Inputs x) {
                      return quantised_linear(x[0], blocks, QuantisedType::q8_0);
                    });
                  }});
  rows.push_back({"dequantise", [](int s) {
                    return no_gradient({quantised(kSide[s])},
                                       [](Inputs x) { return dequantise(x[0], QuantisedType::q8_0); });
                  }});
  rows.push_back({"int8_linear", [](int s) {
                    const Array w = values({kSide[s], kSide[s]});
                    return no_gradient({values({kSide[s], kSide[s]}), w, values({kSide[s]})},
                                       [form = int8_weight(w)](Inputs x) { return int8_linear(x[0], form, x[2]); });
                  }});
  const auto convolution = [&](const char* name, const Conv2dOptions& options, std::int64_t kernel, bool is_depthwise) {
    rows.push_back({name, [=](int s) {
                      const auto [n, h, c, k] = kConv2d[s];
                      Conv2dOptions o = options;
                      if (is_depthwise) o.groups = static_cast<int>(c);
                      return takes_gradient(
                          {values({n, h, h, c}), values({kernel, kernel, c / o.groups, k}), values({k})},
                          [=](Inputs x) { return conv2d(x[0], x[1], x[2], o); });
                    }});
  };
  convolution("conv2d", {.pad_h = 1, .pad_w = 1}, 3, false);
  rows.push_back({"int8_conv2d", [](int s) {
                    const auto [n, h, c, k] = kConv2d[s];
                    const Array w = values({3, 3, c, k});
                    return no_gradient({values({n, h, h, c}), w, values({k})}, [form = int8_weight(w)](Inputs x) {
                      return int8_conv2d(x[0], form, x[2], {.pad_h = 1, .pad_w = 1});
                    });
                  }});
  convolution("conv2d/1x1", {}, 1, false);
  convolution("conv2d/5x5", {.pad_h = 2, .pad_w = 2}, 5, false);
  convolution("conv2d/stride", {.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1}, 3, false);
  convolution("conv2d/dilation", {.pad_h = 2, .pad_w = 2, .dilation_h = 2, .dilation_w = 2}, 3, false);
  convolution("conv2d/groups", {.pad_h = 1, .pad_w = 1, .groups = 4}, 3, false);
  convolution("conv2d/depthwise", {.pad_h = 1, .pad_w = 1}, 3, true);
  rows.push_back({"conv1d", [](int s) {
                    const Shape shapes[kSizes] = {{1, 64, 16}, {4, 256, 96}, {8, 1024, 128}};
                    const std::int64_t c = shapes[s][2];
                    return takes_gradient({values(shapes[s]), values({5, c, c}), values({c})},
                                          [](Inputs x) { return conv1d(x[0], x[1], x[2], {.pad = 2}); });
                  }});
  rows.push_back({"int8_conv1d", [](int s) {
                    const Shape shapes[kSizes] = {{1, 64, 16}, {4, 256, 96}, {8, 1024, 128}};
                    const std::int64_t c = shapes[s][2];
                    const Array w = values({5, c, c});
                    return no_gradient({values(shapes[s]), w, values({c})}, [form = int8_weight(w)](Inputs x) {
                      return int8_conv1d(x[0], form, x[2], {.pad = 2});
                    });
                  }});
  rows.push_back({"conv3d", [](int s) {
                    const auto [n, h, c, k] = kConv3d[s];
                    return takes_gradient(
                        {values({n, h, h, h, c}), values({3, 3, 3, c, k}), values({k})},
                        [](Inputs x) { return conv3d(x[0], x[1], x[2], {.pad_d = 1, .pad_h = 1, .pad_w = 1}); });
                  }});
  rows.push_back({"conv_transpose1d", [](int s) {
                    const Shape shapes[kSizes] = {{1, 64, 16}, {4, 256, 64}, {8, 1024, 128}};
                    const std::int64_t c = shapes[s][2];
                    return takes_gradient({values(shapes[s]), values({4, c, c}), values({c})}, [](Inputs x) {
                      return conv_transpose1d(x[0], x[1], x[2], {.stride = 2, .pad = 1});
                    });
                  }});
  rows.push_back({"conv_transpose2d", [](int s) {
                    const auto [n, h, c, k] = kUp2d[s];
                    return takes_gradient({values({n, h, h, c}), values({4, 4, k, c}), values({k})}, [](Inputs x) {
                      return conv_transpose2d(x[0], x[1], x[2], {.stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1});
                    });
                  }});

  const auto pool = [&](const char* name, const std::function<Array(const Array&)>& f,
                        const std::function<Shape(int)>& shape) {
    rows.push_back(
        {name, [=](int s) { return takes_gradient({values(shape(s))}, [=](Inputs x) { return f(x[0]); }); }});
  };
  pool(
      "max_pool1d", [](const Array& a) { return max_pool1d(a); }, sequences);
  pool(
      "avg_pool1d", [](const Array& a) { return avg_pool1d(a); }, sequences);
  pool(
      "global_avg_pool1d", [](const Array& a) { return global_avg_pool1d(a); }, sequences);
  pool(
      "max_pool2d", [](const Array& a) { return max_pool2d(a); }, images);
  const Pool2dOptions overlap{.kernel_h = 3, .kernel_w = 3, .stride_h = 2, .stride_w = 2, .pad_h = 1, .pad_w = 1};
  pool(
      "max_pool2d/overlap", [=](const Array& a) { return max_pool2d(a, overlap); }, images);
  pool(
      "avg_pool2d", [](const Array& a) { return avg_pool2d(a); }, images);
  pool(
      "avg_pool2d/overlap", [=](const Array& a) { return avg_pool2d(a, overlap); }, images);
  pool(
      "global_avg_pool2d", [](const Array& a) { return global_avg_pool2d(a); }, images);
  pool(
      "adaptive_avg_pool1d", [](const Array& a) { return adaptive_avg_pool1d(a, 7); }, sequences);
  pool(
      "adaptive_max_pool1d", [](const Array& a) { return adaptive_max_pool1d(a, 7); }, sequences);
  pool(
      "adaptive_avg_pool2d", [](const Array& a) { return adaptive_avg_pool2d(a, 3, 3); }, images);
  pool(
      "adaptive_max_pool2d", [](const Array& a) { return adaptive_max_pool2d(a, 3, 3); }, images);
  const auto half = [](int s) {  // doubled along both axes by what follows
    const Shape all = images(s);
    return Shape{all[0], all[1] / 2, all[2] / 2, all[3]};
  };
  pool(
      "resize/nearest", [](const Array& a) { return resize(a, {.scale_h = 2, .scale_w = 2}); }, half);
  pool(
      "resize/bilinear",
      [](const Array& a) { return resize(a, {.scale_h = 2, .scale_w = 2, .mode = ResizeMode::bilinear}); }, half);
  pool(
      "resize/smaller",
      [](const Array& a) { return resize(a, {.scale_h = 0.4, .scale_w = 0.4, .mode = ResizeMode::bilinear}); }, images);

  for (const bool causal : {false, true})
    rows.push_back({causal ? "scaled_dot_product_attention/causal" : "scaled_dot_product_attention", [=](int s) {
                      const auto [n, t, h, d] = kTokens[s];
                      return takes_gradient(
                          {values({n, t, h, d}), values({n, t, h, d}), values({n, t, h, d})},
                          [=](Inputs x) { return scaled_dot_product_attention(x[0], x[1], x[2], {.causal = causal}); });
                    }});
  rows.push_back({"packed_attention", [](int s) {
                    const auto [n, t, h, d] = kTokens[s];
                    return takes_gradient({values({n, t, 3 * h, d})},
                                          [h = h](Inputs x) { return packed_attention(x[0], h, {.causal = true}); });
                  }});
  for (const bool interleaved : {false, true})
    rows.push_back({interleaved ? "rotary/interleaved" : "rotary", [=](int s) {
                      const auto [n, t, h, d] = kTokens[s];
                      return takes_gradient({values({n, t, 2 * h, d})},
                                            [=](Inputs x) { return rotary(x[0], {.interleaved = interleaved}); });
                    }});
  for (const bool is_lstm : {true, false})
    rows.push_back({is_lstm ? "lstm" : "gru", [=](int s) {
                      const auto [n, t, c, h] = kSteps[s];
                      const std::int64_t g = is_lstm ? 4 : 3;
                      return takes_gradient({values({n, t, c}), values({g * h, c}, -0.1, 0.1),
                                             values({g * h, h}, -0.1, 0.1), values({g * h}), values({g * h})},
                                            [=](Inputs x) {
                                              const RecurrentWeights weights{x[1], x[2], x[3], x[4]};
                                              return is_lstm ? lstm(x[0], weights).y : gru(x[0], weights).y;
                                            });
                    }});
}

}  // namespace samebytes::benchmarks

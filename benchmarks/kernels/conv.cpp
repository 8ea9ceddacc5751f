// The three passes of the workloads' convolutions, batch 64.
#include <fmt/format.h>

#include "kernels/row.h"
#include "samebytes/ops.h"

namespace samebytes::benchmarks {
namespace {

struct Arrays {
  Array src, weight, dy;
};

std::int64_t taps(const Convolution& c) { return std::int64_t{c.kernel_h} * c.kernel_w; }

Array forward(const Convolution& c, const Array& src, const Array& weight) {
  if (c.one_axis) return conv1d(src, weight, {}, {.stride = c.stride, .pad = c.pad});
  Conv2dOptions options;
  options.stride_h = options.stride_w = c.stride;
  options.pad_h = options.pad_w = c.pad;
  return conv2d(src, weight, {}, options);
}

// One element of each pass, in double. Indices are those of the arrays of two axes.
struct Reference {
  Convolution c;
  std::vector<float> src, weight, dy;

  double at_src(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t i) const {
    if (h < 0 || w < 0 || h >= c.height || w >= c.width) return 0;
    return src[static_cast<std::size_t>(((n * c.height + h) * c.width + w) * c.in + i)];
  }
  double at_weight(std::int64_t h, std::int64_t w, std::int64_t i, std::int64_t o) const {
    return weight[static_cast<std::size_t>(((h * c.kernel_w + w) * c.in + i) * c.out + o)];
  }
  double at_dy(std::int64_t n, std::int64_t h, std::int64_t w, std::int64_t o) const {
    return dy[static_cast<std::size_t>(((n * c.out_h() + h) * c.out_w() + w) * c.out + o)];
  }

  double forward(std::int64_t index) const {
    const std::int64_t o = index % c.out, w = index / c.out % c.out_w(), h = index / c.out / c.out_w() % c.out_h(),
                       n = index / c.out / c.out_w() / c.out_h();
    double sum = 0;
    for (std::int64_t y = 0; y < c.kernel_h; ++y)
      for (std::int64_t x = 0; x < c.kernel_w; ++x)
        for (std::int64_t i = 0; i < c.in; ++i)
          sum += at_src(n, h * c.stride - c.pad_h() + y, w * c.stride - c.pad + x, i) * at_weight(y, x, i, o);
    return sum;
  }
  double input_gradient(std::int64_t index) const {
    const std::int64_t i = index % c.in, w = index / c.in % c.width, h = index / c.in / c.width % c.height,
                       n = index / c.in / c.width / c.height;
    double sum = 0;
    for (std::int64_t y = 0; y < c.kernel_h; ++y)
      for (std::int64_t x = 0; x < c.kernel_w; ++x) {
        const std::int64_t down = h + c.pad_h() - y, across = w + c.pad - x;
        if (down < 0 || across < 0 || down % c.stride != 0 || across % c.stride != 0) continue;
        if (down / c.stride >= c.out_h() || across / c.stride >= c.out_w()) continue;
        for (std::int64_t o = 0; o < c.out; ++o)
          sum += at_dy(n, down / c.stride, across / c.stride, o) * at_weight(y, x, i, o);
      }
    return sum;
  }
  double weight_gradient(std::int64_t index) const {
    const std::int64_t o = index % c.out, i = index / c.out % c.in, x = index / c.out / c.in % c.kernel_w,
                       y = index / c.out / c.in / c.kernel_w;
    double sum = 0;
    for (std::int64_t n = 0; n < c.images; ++n)
      for (std::int64_t h = 0; h < c.out_h(); ++h)
        for (std::int64_t w = 0; w < c.out_w(); ++w)
          sum += at_src(n, h * c.stride - c.pad_h() + y, w * c.stride - c.pad + x, i) * at_dy(n, h, w, o);
    return sum;
  }
};

Row convolution(const Convolution& c, Pass pass) {
  const std::int64_t images = c.images;
  const Array src = values(c.one_axis ? Shape{images, c.width, c.in} : Shape{images, c.height, c.width, c.in}),
              weight = values(c.one_axis ? Shape{c.kernel_w, c.in, c.out} : Shape{c.kernel_h, c.kernel_w, c.in, c.out});
  const Array dy = values(forward(c, src, weight).shape());
  const auto reference = std::make_shared<Reference>(Reference{c, host(src), host(weight), host(dy)});
  const std::int64_t places = images * c.out_h() * c.out_w();
  Row row{.work = 2.0 * static_cast<double>(places * taps(c) * c.in * c.out)};
  switch (pass) {
    case Pass::forward:
      row.make = [=] { return forward(c, src, weight); };
      row.peers = {onednn_convolution(c, pass, reference->src, reference->weight)};
      row.expected = [=](std::int64_t i) { return reference->forward(i); };
      row.length = taps(c) * c.in;
      break;
    case Pass::input_gradient:
      row.make = [=] { return pull_back(forward(c, src, weight), dy, src); };
      row.peers = {onednn_convolution(c, pass, reference->dy, reference->weight)};
      row.expected = [=](std::int64_t i) { return reference->input_gradient(i); };
      row.length = taps(c) * c.out;
      break;
    case Pass::weight_gradient:
      row.make = [=] { return pull_back(forward(c, src, weight), dy, weight); };
      row.peers = {onednn_convolution(c, pass, reference->src, reference->dy)};
      row.expected = [=](std::int64_t i) { return reference->weight_gradient(i); };
      row.length = places;
      break;
  }
  return row;
}

void add(std::vector<Entry>& entries, const std::string& model, const Convolution& c, bool is_first = false) {
  for (const Pass pass : {Pass::forward, Pass::input_gradient, Pass::weight_gradient}) {
    if (is_first && pass == Pass::input_gradient) continue;  // nobody asks for the gradient of the data
    entries.push_back({c.one_axis ? "conv1d" : "conv2d",
                       fmt::format("{}/{}to{}_at{}_k{}{}/{}", model, c.in, c.out, c.width, c.kernel_w,
                                   c.stride > 1 ? "_s" + std::to_string(c.stride) : "", name_of(pass)),
                       [=] { return convolution(c, pass); }});
  }
}

// Square images; zeros around them keep the size.
Convolution square(int size, int in, int out, int kernel = 3, int stride = 1) {
  return {64, size, size, in, out, kernel, kernel, stride, kernel / 2};
}
Convolution sequence(int length, int in, int out, int kernel) {
  return {64, 1, length, in, out, 1, kernel, 1, kernel / 2, true};
}

}  // namespace

void add_convolutions(std::vector<Entry>& entries) {
  add(entries, "resnet20", square(32, 3, 16), true);
  add(entries, "resnet20", square(32, 16, 16));
  add(entries, "resnet20", square(32, 16, 32, 3, 2));
  add(entries, "resnet20", square(32, 16, 32, 1, 2));
  add(entries, "resnet20", square(16, 32, 32));
  add(entries, "resnet20", square(16, 32, 64, 3, 2));
  add(entries, "resnet20", square(16, 32, 64, 1, 2));
  add(entries, "resnet20", square(8, 64, 64));
  add(entries, "cnn", square(28, 1, 32), true);
  add(entries, "cnn", square(14, 32, 64));
  add(entries, "transit", sequence(2001, 1, 32, 7), true);
  add(entries, "transit", sequence(1000, 32, 32, 5));
  add(entries, "transit", sequence(500, 32, 64, 5));
  add(entries, "transit", sequence(201, 1, 32, 5), true);
  add(entries, "transit", sequence(100, 32, 32, 3));
  add(entries, "transit", sequence(50, 32, 64, 3));
}

}  // namespace samebytes::benchmarks

#include "tune/problems.h"

#include "ops/conv.h"
#include "ops/gemm.h"
#include "samebytes/ops.h"

namespace samebytes::detail {
namespace {

std::string sizes_text(std::initializer_list<std::int64_t> sizes) {
  std::string text;
  for (const std::int64_t size : sizes) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

struct Product {
  std::int64_t m, n, k;
  std::int64_t batch = 1;
  bool a_transposed = false, b_transposed = false;
  bool is_timed = true, is_rapid = false;
};

Problem product(const char* group, const Product& p) {
  GemmProblem sizes;
  sizes.m = p.m;
  sizes.n = p.n;
  sizes.k = p.k;
  sizes.outer = p.batch;
  Problem problem{.group = group,
                  .family = "gemm",
                  .shape_class = std::string(gemm_shape_class(sizes)),
                  .kernel = std::string("matmul ") + (p.a_transposed ? "T" : "N") + (p.b_transposed ? "T" : "N"),
                  .shape = (p.batch > 1 ? std::to_string(p.batch) + " of " : "") + sizes_text({p.m, p.n, p.k}),
                  .sum_length = p.k,
                  .is_timed = p.is_timed,
                  .is_rapid = p.is_rapid};
  const auto operand = [&](std::int64_t rows, std::int64_t columns, bool transposed) {
    if (transposed) std::swap(rows, columns);
    return p.batch > 1 ? Shape{p.batch, rows, columns} : Shape{rows, columns};
  };
  problem.inputs = {operand(p.m, p.k, p.a_transposed), operand(p.k, p.n, p.b_transposed)};
  problem.make = [a = p.a_transposed, b = p.b_transposed](std::span<const Array> x) {
    return matmul(a ? transpose(x[0]) : x[0], b ? transpose(x[1]) : x[1]);
  };
  return problem;
}

struct Image {
  std::int64_t n, h, w, c, k;
  std::int64_t kernel = 3;
  int stride = 1;
  bool is_timed = true, is_rapid = false;
};

// The three passes of a convolution over images, or over sequences where h is 1.
void add_convolution(std::vector<Problem>& problems, const Image& p) {
  const bool is_line = p.h == 1;
  const int pad = static_cast<int>(p.kernel / 2);
  ConvAttributes attributes;
  attributes.axes = is_line ? 1 : 2;
  attributes.algorithm = ConvAlgorithm::direct;  // whose tiles and splits these are
  for (int axis = 3 - attributes.axes; axis < 3; ++axis) {
    attributes.stride[axis] = p.stride;
    attributes.pad[axis] = pad;
  }
  const std::int64_t ow = conv_size(p.w, p.kernel, p.stride, pad, 1),
                     oh = is_line ? 1 : conv_size(p.h, p.kernel, p.stride, pad, 1);
  const Shape src = is_line ? Shape{p.n, p.w, p.c} : Shape{p.n, p.h, p.w, p.c};
  const Shape weight = is_line ? Shape{p.kernel, p.c, p.k} : Shape{p.kernel, p.kernel, p.c, p.k};
  const Shape dst = is_line ? Shape{p.n, ow, p.k} : Shape{p.n, oh, ow, p.k};
  const std::int64_t taps = is_line ? p.kernel : p.kernel * p.kernel;
  const Problem common{.group = "conv",
                       .shape = (is_line ? sizes_text({p.n, p.w, p.c}) : sizes_text({p.n, p.h, p.w, p.c})) + " k" +
                                std::to_string(p.kernel) + (p.stride > 1 ? " s" + std::to_string(p.stride) : "") +
                                " to " + std::to_string(p.k),
                       .is_timed = p.is_timed,
                       .is_rapid = p.is_rapid};
  const auto add = [&](const char* family, const char* pass, const char* kernel, std::vector<Shape> inputs,
                       std::int64_t sum_length, std::function<Array(std::span<const Array>)> make) {
    Problem problem = common;
    problem.family = family;
    problem.shape_class = pass;
    problem.kernel = kernel;
    problem.inputs = std::move(inputs);
    problem.sum_length = sum_length;
    problem.make = std::move(make);
    problems.push_back(std::move(problem));
  };
  add("conv", "forward", "conv", {src, weight}, taps * p.c,
      [=](std::span<const Array> x) { return conv_forward(x[0], x[1], {}, dst, attributes); });
  add("conv", "input", "conv_bwd_input", {dst, weight}, taps * p.k,
      [=](std::span<const Array> x) { return conv_bwd_input(x[0], x[1], {}, src, attributes); });
  add("conv_filter", "filter", "conv_bwd_filter", {src, dst}, p.n * oh * ow,
      [=](std::span<const Array> x) { return conv_bwd_filter(x[0], x[1], weight, attributes); });
}

std::vector<Problem> make_problems() {
  std::vector<Problem> problems;
  const auto gemm = [&](const Product& p) { problems.push_back(product("gemm", p)); };
  gemm({.m = 512, .n = 512, .k = 512, .is_rapid = true});
  gemm({.m = 64, .n = 512, .k = 784, .is_rapid = true});                          // mlp
  gemm({.m = 512, .n = 1536, .k = 384});                                          // gpt nano
  gemm({.m = 784, .n = 512, .k = 64, .a_transposed = true});                      // mlp, weight gradient
  gemm({.m = 64, .n = 256, .k = 512});                                            // mlp
  gemm({.m = 64, .n = 512, .k = 256, .b_transposed = true});                      // mlp, input gradient
  gemm({.m = 64, .n = 10, .k = 256});                                             // a classifier
  gemm({.m = 256, .n = 10, .k = 64, .a_transposed = true});                       // its weight gradient
  gemm({.m = 384, .n = 384, .k = 2048, .a_transposed = true, .is_rapid = true});  // gpt nano, weight gradient
  gemm({.m = 64, .n = 128, .k = 3136});                                           // cnn
  gemm({.m = 128, .n = 128, .k = 64, .batch = 24, .b_transposed = true});         // attention
  gemm({.m = 37, .n = 53, .k = 29, .is_timed = false, .is_rapid = true});
  gemm({.m = 15, .n = 33, .k = 1031, .a_transposed = true, .is_timed = false, .is_rapid = true});
  gemm({.m = 129, .n = 67, .k = 261, .b_transposed = true, .is_timed = false, .is_rapid = true});
  gemm({.m = 1, .n = 5, .k = 3, .batch = 2, .is_timed = false, .is_rapid = true});

  const auto conv = [&](const Image& p) { add_convolution(problems, p); };
  conv({.n = 16, .h = 32, .w = 32, .c = 16, .k = 16, .is_rapid = true});  // resnet20
  conv({.n = 16, .h = 16, .w = 16, .c = 32, .k = 32});
  conv({.n = 16, .h = 8, .w = 8, .c = 64, .k = 64, .is_rapid = true});
  conv({.n = 16, .h = 32, .w = 32, .c = 16, .k = 32, .stride = 2});
  conv({.n = 16, .h = 14, .w = 14, .c = 32, .k = 64});                // cnn
  conv({.n = 16, .h = 1, .w = 1000, .c = 16, .k = 16, .kernel = 5});  // transit
  conv({.n = 2, .h = 7, .w = 5, .c = 3, .k = 37, .stride = 2, .is_timed = false, .is_rapid = true});
  conv({.n = 1, .h = 11, .w = 13, .c = 35, .k = 7, .is_timed = false, .is_rapid = true});

  const auto clblast = [&](const Product& p) { problems.push_back(product("clblast", p)); };
  clblast({.m = 512, .n = 512, .k = 512, .is_rapid = true});
  clblast({.m = 384, .n = 1024, .k = 256, .a_transposed = true});
  clblast({.m = 37, .n = 53, .k = 29, .is_timed = false, .is_rapid = true});
  return problems;
}

}  // namespace

bool Problem::depends_on(const Tunable& tunable) const {
  switch (tunable.kind) {
    case Tunable::Kind::tile: return group == tunable.group && family == tunable.family;
    case Tunable::Kind::choice: return group == tunable.family && shape_class == tunable.shape_class;
    case Tunable::Kind::clblast: return group == "clblast";
  }
  return false;
}

const std::vector<Problem>& tuning_problems() {
  static const std::vector<Problem> problems = make_problems();
  return problems;
}

}  // namespace samebytes::detail

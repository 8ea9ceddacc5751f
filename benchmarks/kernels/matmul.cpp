// Matrix products: squares, and those of the workloads' layers in their three layouts: forward x w', the gradient of
// the input dy w, the gradient of the weight dy' x. A product with one row reads its weight once: its bound is
// bandwidth.
#include <fmt/format.h>

#include <utility>

#include "kernels/row.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes::benchmarks {
namespace {

Row product(const Product& p) {
  const Array a = values(p.transposed_a ? Shape{p.k, p.m} : Shape{p.m, p.k}),
              b = values(p.transposed_b ? Shape{p.n, p.k} : Shape{p.k, p.n});
  const Array left = p.transposed_a ? transpose(a) : a, right = p.transposed_b ? transpose(b) : b;
  const std::vector<float> x = host(a), y = host(b);
  const double flops = 2.0 * p.m * p.n * p.k;
  const double least_bytes = 4.0 * (1.0 * p.m * p.k + 1.0 * p.k * p.n + 1.0 * p.m * p.n);
  return {.work = p.m == 1 ? least_bytes : flops,
          .bound = p.m == 1 ? Bound::bandwidth : Bound::multiply_adds,
          .make = [=] { return matmul(left, right); },
          .peers = {eigen_matmul(p, x, y), openblas_matmul(p, x, y), onednn_matmul(p, x, y)},
          .length = p.k,
          .expected =
              [=](std::int64_t i) {
                const std::int64_t row = i / p.n, column = i % p.n;
                double sum = 0;
                for (std::int64_t k = 0; k < p.k; ++k)
                  sum += 1.0 * x[static_cast<std::size_t>(p.transposed_a ? k * p.m + row : row * p.k + k)] *
                         y[static_cast<std::size_t>(p.transposed_b ? column * p.k + k : k * p.n + column)];
                return sum;
              }};
}

// Products of n x n matrices, as many as there are in `batch`; no peer takes them in one call.
Row batched(int batch, int n, bool transposed_a, bool transposed_b) {
  const Array a = values({batch, n, n}), b = values({batch, n, n});
  const Array left = transposed_a ? transpose(a) : a, right = transposed_b ? transpose(b) : b;
  const std::vector<float> x = host(a), y = host(b);
  return {.work = 2.0 * batch * n * n * n,
          .bound = Bound::multiply_adds,
          .make = [=] { return matmul(left, right); },
          .length = n,
          .expected =
              [=](std::int64_t i) {
                const std::int64_t z = i / (n * n) * n * n, row = i / n % n, column = i % n;
                double sum = 0;
                for (std::int64_t k = 0; k < n; ++k)
                  sum += 1.0 * x[static_cast<std::size_t>(z + (transposed_a ? k * n + row : row * n + k))] *
                         y[static_cast<std::size_t>(z + (transposed_b ? column * n + k : k * n + column))];
                return sum;
              }};
}

// What a launch takes that computes nothing: the least time of every other row. It has no work, only a time.
Row nothing() {
  const CustomOp op{.name = "bench_empty",
                    .entry = "bench_empty",
                    .source =
                        "__kernel void bench_empty(ARRAY(const real, src), ARRAY(real, dst), const int n) {\n"
                        "  START(src);\n  START(dst);\n  dst[0] = src[0];\n}\n"};
  return {.make = [op, src = values({1})] { return custom_op(op, std::span<const Array>(&src, 1), {1}); }};
}

void add(std::vector<Entry>& entries, const std::string& what, const Product& p) {
  entries.push_back(
      {p.m == 1 ? "matvec" : "matmul",
       fmt::format("{}/{}x{}x{}{}{}", what, p.m, p.n, p.k, p.transposed_a ? "_T." : "", p.transposed_b ? "_.T" : ""),
       [p] { return product(p); }});
}

// A layer of `rows` samples from `in` to `out`, its weight stored [out, in].
void add_layer(std::vector<Entry>& entries, const std::string& model, int rows, int in, int out) {
  add(entries, model, {rows, out, in, false, true});
  add(entries, model, {rows, in, out});
  add(entries, model, {out, in, rows, true, false});
}

}  // namespace

void add_matmul(std::vector<Entry>& entries) {
  entries.push_back({"launch", "empty", nothing});
  for (const int n : {128, 256, 512, 1024, 2048}) add(entries, "square", {n, n, n});
  add(entries, "square", {1024, 1024, 1024, false, true});
  add(entries, "square", {1024, 1024, 1024, true, false});
  add_layer(entries, "mlp", 64, 784, 512);
  add_layer(entries, "mlp", 64, 512, 256);
  add_layer(entries, "mlp", 64, 256, 10);
  add_layer(entries, "nano", 4096, 128, 384);
  add_layer(entries, "nano", 4096, 128, 512);
  add_layer(entries, "nano", 4096, 512, 128);
  add_layer(entries, "nano", 4096, 128, 128);
  add_layer(entries, "nano", 4096, 128, 65);
  add_layer(entries, "small", 512, 768, 2304);
  add_layer(entries, "small", 512, 768, 3072);
  add_layer(entries, "small", 512, 3072, 768);
  add_layer(entries, "small", 512, 768, 768);
  add_layer(entries, "small", 512, 768, 50257);
  add(entries, "generation", {1, 2304, 768, false, true});
  add(entries, "generation", {1, 3072, 768, false, true});
  add(entries, "generation", {1, 768, 3072, false, true});
  add(entries, "generation", {1, 50257, 768, false, true});
  add(entries, "row", {1, 1024, 1024});
  add(entries, "row", {1, 1024, 1024, false, true});
  add(entries, "column", {1024, 1, 1024});
  add(entries, "column", {1024, 1, 1024, true, false});
  add(entries, "outer", {1024, 1024, 1});
  for (const int n : {8, 16})
    for (const auto& [x, y] : {std::pair{false, false}, std::pair{false, true}, std::pair{true, false}})
      entries.push_back({"matmul", fmt::format("batched/512x{0}x{0}x{0}{1}{2}", n, x ? "_T." : "", y ? "_.T" : ""),
                         [n, x = x, y = y] { return batched(512, n, x, y); }});
}

}  // namespace samebytes::benchmarks

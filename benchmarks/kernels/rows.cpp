// Soft-max, cross-entropy and sums of rows and columns over 64 MiB.
#include <cmath>

#include "kernels/row.h"
#include "samebytes/ops.h"

namespace samebytes::benchmarks {
namespace {

Row softmax_of(std::int64_t rows, std::int64_t columns) {
  const Array x = values({rows, columns});
  const int width = static_cast<int>(columns);
  return {.work = 2 * bytes(x),
          .bound = Bound::bandwidth,
          .make = [=] { return softmax(x); },
          .peers = {eigen_softmax(host(x), width), onednn_softmax(host(x), width)}};
}

// The forward pass belongs to the graph: two passes for it and three for the gradient.
Row softmax_gradient(std::int64_t rows, std::int64_t columns) {
  const Array x = values({rows, columns}), dy = values({rows, columns});
  const std::vector<float> v = host(x), d = host(dy);
  return {.work = 5 * bytes(x),
          .bound = Bound::bandwidth,
          .make = [=] { return pull_back(softmax(x), dy, x); },
          .length = columns,
          .expected =
              [=](std::int64_t i) {
                double sum = 0, dots = 0;
                for (std::int64_t k = i / columns * columns; k < (i / columns + 1) * columns; ++k) {
                  const double e = std::exp(v[static_cast<std::size_t>(k)]);
                  sum += e;
                  dots += e * d[static_cast<std::size_t>(k)];
                }
                return std::exp(v[static_cast<std::size_t>(i)]) / sum * (d[static_cast<std::size_t>(i)] - dots / sum);
              }};
}

// Logits are read once and their gradient is written, in one launch with the loss; a row stays in the cache.
Row loss(std::int64_t rows, std::int64_t columns) {
  const Array x = values({rows, columns});
  const Array labels = argmax(values({rows, columns})).wait();
  const Array one = ones({}).wait();
  const std::vector<float> v = host(x);
  const auto label = labels.to_vector<std::int32_t>();
  return {.work = 2 * bytes(x),
          .bound = Bound::bandwidth,
          .make = [=] { return pull_back(cross_entropy(x, labels, {.reduction = Reduction::sum}), one, x); },
          .expected =
              [=](std::int64_t i) {
                double sum = 0;
                const std::int64_t row = i / columns;
                for (std::int64_t k = 0; k < columns; ++k)
                  sum += std::exp(v[static_cast<std::size_t>(row * columns + k)]);
                return std::exp(v[static_cast<std::size_t>(i)]) / sum -
                       (i % columns == label[static_cast<std::size_t>(row)] ? 1 : 0);
              }};
}

Row sums(std::int64_t rows, std::int64_t columns, int axis) {
  const Array x = values({rows, columns});
  const std::vector<float> v = host(x);
  std::vector<Peer> peers;
  if (axis == 1) peers.push_back(onednn_sum_rows(v, static_cast<int>(columns)));
  return {.work = bytes(x),
          .bound = Bound::bandwidth,
          .make = [=] { return sum(x, {axis}); },
          .peers = std::move(peers),
          .length = axis == 1 ? columns : rows,
          .expected =
              [=](std::int64_t i) {
                double total = 0;
                for (std::int64_t k = 0; k < (axis == 1 ? columns : rows); ++k)
                  total += v[static_cast<std::size_t>(axis == 1 ? i * columns + k : k * columns + i)];
                return total;
              }};
}

}  // namespace

void add_rows(std::vector<Entry>& entries) {
  const auto each = [&](std::int64_t rows, std::int64_t columns) {
    const std::string size = "/" + std::to_string(rows) + "x" + std::to_string(columns);
    entries.push_back({"softmax", "forward" + size, [=] { return softmax_of(rows, columns); }});
    entries.push_back({"softmax", "gradient" + size, [=] { return softmax_gradient(rows, columns); }});
    entries.push_back({"loss", "cross_entropy_gradient" + size, [=] { return loss(rows, columns); }});
    entries.push_back({"reduction", "sum_of_rows" + size, [=] { return sums(rows, columns, 1); }});
    entries.push_back({"reduction", "sum_of_columns" + size, [=] { return sums(rows, columns, 0); }});
  };
  each(1638400, 10);
  each(32768, 512);
  each(320, 50257);
}

}  // namespace samebytes::benchmarks

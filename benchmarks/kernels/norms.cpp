// Norms of rows and of images, forward and backward, over 64 MiB. Bytes: a row or a sample is read once, since it stays
// in the cache between statistics and result; a batch norm has to read all images twice. The forward pass belongs to
// the graph of a gradient, so that has five passes: two and three. Peers are given its statistics, so their speeds,
// which count the same bytes, and the ratios are to our disadvantage.
#include <fmt/format.h>

#include <cmath>

#include "kernels/row.h"
#include "samebytes/ops.h"

namespace samebytes::benchmarks {
namespace {

constexpr double kEps = 1e-5;
constexpr std::int64_t kImages = 64, kSize = 64, kChannels = 64;

Row layer(std::int64_t rows, std::int64_t columns, bool is_gradient) {
  const Array x = values({rows, columns}), dy = values({rows, columns});
  const int width = static_cast<int>(columns);
  if (is_gradient)
    return {.work = 5 * bytes(x),
            .bound = Bound::bandwidth,
            .make = [=] { return pull_back(layer_norm(x), dy, x); },
            .peers = {onednn_layer_norm_gradient(host(x), host(dy), width)},
            .length = columns};
  return {.work = 2 * bytes(x),
          .bound = Bound::bandwidth,
          .make = [=] { return layer_norm(x); },
          .peers = {eigen_layer_norm(host(x), width), onednn_layer_norm(host(x), width)},
          .length = columns};
}

Row rms(std::int64_t rows, std::int64_t columns, bool is_gradient) {
  const Array x = values({rows, columns}), dy = values({rows, columns});
  const std::vector<float> v = host(x), d = host(dy);
  const auto forward = [=] { return rms_norm(x, {}, static_cast<float>(kEps)); };
  // 1 / rms of the row of element i, and the mean of x dy in it.
  const auto row_of = [=](std::int64_t i) {
    double squares = 0, products = 0;
    for (std::int64_t k = i / columns * columns; k < (i / columns + 1) * columns; ++k) {
      const auto at = static_cast<std::size_t>(k);
      squares += 1.0 * v[at] * v[at];
      products += 1.0 * v[at] * d[at];
    }
    const auto n = static_cast<double>(columns);
    return std::pair(1 / std::sqrt(squares / n + kEps), products / n);
  };
  if (is_gradient)
    return {.work = 5 * bytes(x),
            .bound = Bound::bandwidth,
            .make = [=] { return pull_back(forward(), dy, x); },
            .length = columns,
            .expected =
                [=](std::int64_t i) {
                  const auto [inverse, mean] = row_of(i);
                  const auto at = static_cast<std::size_t>(i);
                  return inverse * (d[at] - v[at] * inverse * inverse * mean);
                }};
  return {.work = 2 * bytes(x),
          .bound = Bound::bandwidth,
          .make = forward,
          .length = columns,
          .expected = [=](std::int64_t i) { return v[static_cast<std::size_t>(i)] * row_of(i).first; }};
}

Row batch(bool is_gradient) {
  const Images shape{kImages, kSize, kSize, kChannels};
  const Array x = values({kImages, kSize, kSize, kChannels}), dy = values(x.shape());
  const Array mean = cell(zeros({kChannels}), "mean"), variance = cell(ones({kChannels}), "variance");
  const Array scale = ones({kChannels}).wait(), shift = zeros({kChannels}).wait();
  const auto forward = [=] { return batch_norm_train(x, scale, shift, mean, variance); };
  if (is_gradient)
    // Ours takes the statistics too, one more pass over x, since they belong to the graph; oneDNN's are given to it, so
    // the ratio is to our disadvantage.
    return {.work = 6 * bytes(x),
            .bound = Bound::bandwidth,
            .make = [=] { return pull_back(forward(), dy, x); },
            .peers = {onednn_batch_norm_gradient(shape, host(x), host(dy))},
            .length = kImages * kSize * kSize};
  return {.work = 3 * bytes(x),
          .bound = Bound::bandwidth,
          .make = forward,
          .peers = {onednn_batch_norm(shape, host(x))},
          .length = kImages * kSize * kSize};
}

Row group(bool is_gradient) {
  constexpr std::int64_t kGroups = 16, kEach = kChannels / kGroups;
  const Array x = values({kImages, kSize, kSize, kChannels}), dy = values(x.shape());
  if (is_gradient)
    return {.work = 5 * bytes(x), .bound = Bound::bandwidth, .make = [=] {
              return pull_back(group_norm(x, kGroups), dy, x);
            }};
  const std::vector<float> v = host(x);
  return {.work = 2 * bytes(x),
          .bound = Bound::bandwidth,
          .make = [=] { return group_norm(x, kGroups); },
          .length = kSize * kSize * kEach,
          .expected =
              [=](std::int64_t i) {
                constexpr std::int64_t kPixels = kSize * kSize;
                const std::int64_t image = i / (kPixels * kChannels), first = i % kChannels / kEach * kEach;
                double sum = 0, squares = 0;
                for (std::int64_t p = 0; p < kPixels; ++p)
                  for (std::int64_t c = first; c < first + kEach; ++c) {
                    const double value = v[static_cast<std::size_t>((image * kPixels + p) * kChannels + c)];
                    sum += value;
                    squares += value * value;
                  }
                const double mean = sum / (kPixels * kEach), variance = squares / (kPixels * kEach) - mean * mean;
                return (v[static_cast<std::size_t>(i)] - mean) / std::sqrt(variance + kEps);
              }};
}

}  // namespace

void add_norms(std::vector<Entry>& entries) {
  for (const bool is_gradient : {false, true}) {
    const std::string pass = is_gradient ? "/gradient" : "/forward";
    entries.push_back({"norm", "layer/131072x128" + pass, [=] { return layer(131072, 128, is_gradient); }});
    entries.push_back({"norm", "layer/24576x768" + pass, [=] { return layer(24576, 768, is_gradient); }});
    entries.push_back({"norm", "rms/24576x768" + pass, [=] { return rms(24576, 768, is_gradient); }});
    entries.push_back({"norm", "batch/64x64x64x64" + pass, [=] { return batch(is_gradient); }});
    entries.push_back({"norm", "group_of_16/64x64x64x64" + pass, [=] { return group(is_gradient); }});
  }
}

}  // namespace samebytes::benchmarks

// Eigen's forms, compiled with -O3 -march=native and OpenMP. Rows are divided among the threads by hand where Eigen
// itself runs on one.
#include "native/peer.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // g++ 12 reports its own AVX-512 header
#endif
#include <Eigen/Core>
#include <algorithm>
#include <chrono>
#include <memory>
#ifdef _OPENMP
#include <omp.h>
#endif

namespace samebytes::benchmarks {
namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using ColumnMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>;

template <class A, class B>
void multiply(const Product& p, const float* a, const float* b, float* c) {
  Eigen::Map<RowMajor>(c, p.m, p.n).noalias() = Eigen::Map<const A>(a, p.m, p.k) * Eigen::Map<const B>(b, p.k, p.n);
}

struct Operands {
  std::vector<float> a, b, c;
};

// y = f(x) for each row, the rows divided among the threads.
template <class RowFunction>
Peer by_rows(std::vector<float> x, int columns, RowFunction function) {
  const auto rows = static_cast<std::ptrdiff_t>(x.size()) / columns;
  const std::size_t size = x.size();
  const auto kept = std::make_shared<Operands>(Operands{std::move(x), {}, std::vector<float>(size)});
  return {"eigen",
          [=] {
#pragma omp parallel for schedule(static)
            for (std::ptrdiff_t r = 0; r < rows; ++r) {
              Eigen::Map<const Eigen::ArrayXf> src(kept->a.data() + r * columns, columns);
              Eigen::Map<Eigen::ArrayXf> dst(kept->c.data() + r * columns, columns);
              function(src, dst);
            }
          },
          [=] { return kept->c; }};
}

}  // namespace

Peer eigen_matmul(const Product& p, std::vector<float> a, std::vector<float> b) {
  const auto kept = std::make_shared<Operands>(
      Operands{std::move(a), std::move(b), std::vector<float>(static_cast<std::size_t>(p.m) * p.n)});
  return {"eigen",
          [=] {
            const float *x = kept->a.data(), *y = kept->b.data();
            float* z = kept->c.data();
            if (p.transposed_a && p.transposed_b)
              multiply<ColumnMajor, ColumnMajor>(p, x, y, z);
            else if (p.transposed_a)
              multiply<ColumnMajor, RowMajor>(p, x, y, z);
            else if (p.transposed_b)
              multiply<RowMajor, ColumnMajor>(p, x, y, z);
            else
              multiply<RowMajor, RowMajor>(p, x, y, z);
          },
          [=] { return kept->c; }};
}

Peer eigen_softmax(std::vector<float> x, int columns) {
  return by_rows(std::move(x), columns, [](const auto& src, auto& dst) {
    dst = (src - src.maxCoeff()).exp();
    dst *= 1.0F / dst.sum();
  });
}

Peer eigen_layer_norm(std::vector<float> x, int columns) {
  return by_rows(std::move(x), columns, [](const auto& src, auto& dst) {
    const float mean = src.mean();
    const float variance = (src - mean).square().mean();
    dst = (src - mean) * (1.0F / std::sqrt(variance + 1e-5F));
  });
}

void set_eigen_threads(int threads) {
#ifdef _OPENMP
  omp_set_num_threads(threads);
#endif
  Eigen::setNbThreads(threads);
}

namespace {

// target = first + second.
void add(float* target, const float* first, const float* second, std::ptrdiff_t elements) {
  constexpr std::ptrdiff_t kPart = 1 << 16;
#pragma omp parallel for schedule(static)
  for (std::ptrdiff_t begin = 0; begin < elements; begin += kPart)
    Eigen::Map<Eigen::ArrayXf>(target + begin, kPart) = Eigen::Map<const Eigen::ArrayXf>(first + begin, kPart) +
                                                        Eigen::Map<const Eigen::ArrayXf>(second + begin, kPart);
}

double bandwidth_of(float* target, const float* first, const float* second, std::ptrdiff_t elements) {
  constexpr int kRuns = 10;
  double best = 0;
  for (int i = 0; i < kRuns; ++i) {
    const auto start = std::chrono::steady_clock::now();
    add(target, first, second, elements);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 12.0 * static_cast<double>(elements) / seconds * 1e-9);
  }
  return best;
}

constexpr std::ptrdiff_t kStreamElements = 1 << 24;

}  // namespace

double native_stream_bandwidth() {
  std::vector<float> a(kStreamElements, 1.0F), b(kStreamElements, 2.0F), c(kStreamElements);
  return bandwidth_of(c.data(), a.data(), b.data(), kStreamElements);
}

Stream native_stream(bool in_place) {
  const auto array = [] { return std::make_shared<std::vector<float>>(kStreamElements, 1.0F); };
  const auto a = array(), b = array(), c = in_place ? a : array();
  return {12.0 * kStreamElements, [a, b, c] { add(c->data(), a->data(), b->data(), kStreamElements); }};
}

double native_in_place_bandwidth() {
  std::vector<float> a(kStreamElements, 1.0F), b(kStreamElements, 2.0F);
  return bandwidth_of(a.data(), a.data(), b.data(), kStreamElements);
}

}  // namespace samebytes::benchmarks

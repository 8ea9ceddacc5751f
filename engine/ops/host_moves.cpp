#include "ops/host_moves.h"

#include <algorithm>
#include <bit>

#include "ops/host.h"
#include "ops/sizes.h"
#include "shared/pad.h"

namespace samebytes::detail {
namespace {

// Calls make(T()) with the unsigned type of so many bytes, which adds the form.
template <class Make>
void with_word(std::size_t bytes, const Make& make) {
  if (bytes == sizeof(std::uint8_t))
    make(std::uint8_t());
  else if (bytes == sizeof(std::uint16_t))
    make(std::uint16_t());
  else if (bytes == sizeof(std::uint32_t))
    make(std::uint32_t());
  else
    make(std::uint64_t());
}

template <class T>
T* at(void* const* arrays, int k) {
  return static_cast<T*>(arrays[k]);
}

// `runs` stretches of neighbours, `values` elements in all. To begin a stretch takes as long as so many values.
constexpr double kValuesOfRun = 64;
HostWork work_of(std::int64_t runs, std::int64_t values) {
  return {.values = kValuesOfRun * static_cast<double>(runs) + static_cast<double>(values)};
}
// Elements of a long stretch that are one unit, so that threads can share it.
constexpr std::int64_t kPiece = 8192;

// The position of [0, n) that position i of a continued axis shows; -1: the constant.
std::int64_t shown(std::int64_t i, std::int64_t n, int mode) {
  if (i >= 0 && i < n) return i;
  if (mode == PAD_REFLECT) return i < 0 ? -i : 2 * (n - 1) - i;
  if (mode == PAD_REPLICATE) return i < 0 ? 0 : n - 1;
  if (mode == PAD_CIRCULAR) return i < 0 ? i + n : i - n;
  return -1;
}

template <class T>
void pad(const HostPad& s, const T* src, const T* fill, T* dst, std::int64_t first_row, std::int64_t end_row) {
  const T value = fill ? *fill : T{0};
  dst += first_row * s.d * s.inner;
  for (std::int64_t row = first_row; row < end_row; ++row) {
    const std::int64_t above = row / s.between, high = shown(above % s.high_d - s.high_before, s.high_n, s.mode);
    if (high < 0) {
      dst = std::fill_n(dst, s.d * s.inner, value);
      continue;
    }
    const T* const from_row =
        src + ((above / s.high_d * s.high_n + high) * s.between + row % s.between) * s.n * s.inner;
    const auto outside = [&](std::int64_t begin, std::int64_t end) {
      if (begin < end && s.mode == PAD_CIRCULAR) {  // one stretch of the row
        dst = std::copy_n(from_row + shown(begin, s.n, s.mode) * s.inner, (end - begin) * s.inner, dst);
        return;
      }
      for (std::int64_t i = begin; i < end; ++i, dst += s.inner) {
        const std::int64_t from = shown(i, s.n, s.mode);
        if (from < 0)
          std::fill_n(dst, s.inner, value);
        else
          std::copy_n(from_row + from * s.inner, s.inner, dst);
      }
    };
    const std::int64_t after = s.d - s.before;  // the end, as a position of src
    const std::int64_t begin = std::clamp<std::int64_t>(-s.before, 0, s.n),
                       end = std::clamp<std::int64_t>(after, 0, s.n);
    outside(-s.before, std::min<std::int64_t>(0, after));
    dst = std::copy_n(from_row + begin * s.inner, std::max<std::int64_t>(0, end - begin) * s.inner, dst);
    outside(std::max(s.n, -s.before), after);
  }
}

}  // namespace

void add_host_concat(KernelCall& call, std::size_t width_of_element, std::int64_t rows, std::int64_t width,
                     std::int64_t dst_stride, std::int64_t start) {
  if (rows * width > kMostHostValues) return;
  with_word(width_of_element, [&](auto word) {
    using T = decltype(word);
    const std::int64_t pieces = ceil_div(width, kPiece);
    call.on_host(work_of(rows, rows * width), rows * pieces,
                 [=](void* const* arrays, const double*, std::int64_t begin, std::int64_t end) {
                   for (std::int64_t unit = begin; unit < end; ++unit) {
                     const std::int64_t row = unit / pieces, from = unit % pieces * kPiece;
                     std::copy_n(at<const T>(arrays, 0) + row * width + from, std::min(kPiece, width - from),
                                 at<T>(arrays, 1) + row * dst_stride + start + from);
                   }
                 });
  });
}

void add_host_pad(KernelCall& call, std::size_t width_of_element, const HostPad& shape) {
  const std::int64_t values = shape.rows * shape.d * shape.inner;
  if (values > kMostHostValues) return;
  with_word(width_of_element, [&](auto word) {
    using T = decltype(word);
    const std::int64_t runs = shape.rows * (1 + std::max<std::int64_t>(0, shape.d - shape.n));
    call.on_host(work_of(runs, values), shape.rows,
                 [shape](void* const* arrays, const double*, std::int64_t begin, std::int64_t end) {
                   pad(shape, at<const T>(arrays, 0), at<const T>(arrays, 1), at<T>(arrays, 2), begin, end);
                 });
  });
}

void add_host_update(KernelCall& call, std::size_t width_of_element, const HostUpdate& shape) {
  if (shape.outer * shape.count > kMostHostValues) return;
  with_word(width_of_element, [&](auto word) {
    using T = decltype(word);
    call.on_host(work_of(shape.outer, shape.outer * shape.count), [shape](void* const* arrays, const double* scalars) {
      const auto start = static_cast<std::int64_t>(std::bit_cast<std::uint64_t>(scalars[0]));
      for (std::int64_t o = 0; o < shape.outer; ++o)
        std::copy_n(at<const T>(arrays, 0) + o * shape.count, shape.count,
                    at<T>(arrays, 1) + o * shape.line + start * shape.inner);
    });
  });
}

}  // namespace samebytes::detail

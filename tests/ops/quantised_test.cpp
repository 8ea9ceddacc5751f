// Products with quantised matrices against sums in double over values that a reader of its own takes from the blocks.
#include "samebytes/ops/quantised.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;
using enum QuantisedType;

constexpr QuantisedType kAll[] = {q8_0, q4_0, q4_k, q5_k, q6_k, nf4};

double half(const std::uint8_t* p) {
  const int bits = p[0] | p[1] << 8, exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double value =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);  // finite ones only
  return bits >> 15 ? -value : value;
}

constexpr std::array<double, 16> kNf4{-1.0,
                                      -0.6961928009986877,
                                      -0.5250730514526367,
                                      -0.39491748809814453,
                                      -0.28444138169288635,
                                      -0.18477343022823334,
                                      -0.09105003625154495,
                                      0.0,
                                      0.07958029955625534,
                                      0.16093020141124725,
                                      0.24611230194568634,
                                      0.33791524171829224,
                                      0.44070982933044434,
                                      0.5626170039176941,
                                      0.7229568362236023,
                                      1.0};

// Value i of a block, as ggml's documents define it.
double value_of(QuantisedType type, const std::uint8_t* b, int i) {
  const int pair = i / 64, in_pair = i % 64, group = i / 32;
  const auto nibble = [](int byte, bool high) { return high ? byte >> 4 : byte & 15; };
  switch (type) {
    case q8_0: return half(b) * static_cast<std::int8_t>(b[2 + i]);
    case q4_0: return half(b) * (nibble(b[2 + i % 16], i >= 16) - 8);
    case nf4: {
      float most;
      std::memcpy(&most, b, 4);
      return most * kNf4[static_cast<std::size_t>(nibble(b[4 + i % 32], i >= 32))];
    }
    case q6_k: {
      const int part = i / 128, quarter = i % 128 / 32, l = i % 32;
      const int low = nibble(b[64 * part + l + 32 * (quarter % 2)], quarter >= 2);
      const int high = b[128 + 32 * part + l] >> (2 * quarter) & 3;
      return half(b + 208) * static_cast<std::int8_t>(b[192 + i / 16]) * (low + 16 * high - 32);
    }
    case q4_k:
    case q5_k: break;
  }
  const std::uint8_t* s = b + 4;
  const int scale = group < 4 ? s[group] & 63 : (s[group + 4] & 15) | (s[group - 4] >> 6) << 4;
  const int least = group < 4 ? s[group + 4] & 63 : (s[group + 4] >> 4) | (s[group] >> 6) << 4;
  const int fifth = type == q5_k ? b[16 + i % 32] >> group & 1 : 0;
  const int q = nibble(b[(type == q5_k ? 48 : 16) + 32 * pair + in_pair % 32], in_pair >= 32) + 16 * fifth;
  return half(b) * scale * q - half(b + 2) * least;
}

// Random blocks whose scales are finite and small.
Bytes random_blocks(QuantisedType type, std::int64_t rows, std::int64_t columns) {
  const QuantisedFormat& format = format_of(type);
  std::mt19937 random(7);
  Bytes bytes(static_cast<std::size_t>(rows * columns / format.values * format.bytes));
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  const auto put_half = [&](std::uint8_t* p) { p[1] = static_cast<std::uint8_t>((p[1] & 0x83) | 0x20); };  // 2^-7
  for (auto* b = bytes.data(); b < bytes.data() + bytes.size(); b += format.bytes) {
    if (type == nf4) {
      const float most = 0.5f + static_cast<float>(random() % 100) / 100;
      std::memcpy(b, &most, 4);
    } else if (type == q6_k) {
      put_half(b + 208);
    } else {
      put_half(b);
      if (type == q4_k || type == q5_k) put_half(b + 2);
    }
  }
  return bytes;
}

std::vector<double> values_of(QuantisedType type, const Bytes& bytes) {
  const QuantisedFormat& format = format_of(type);
  std::vector<double> values;
  for (const auto* b = bytes.data(); b < bytes.data() + bytes.size(); b += format.bytes)
    for (int i = 0; i < format.values; ++i) values.push_back(value_of(type, b, i));
  return values;
}

Array blocks_of(const Bytes& bytes, std::int64_t rows) {
  return array(bytes, {rows, static_cast<std::int64_t>(bytes.size()) / rows});
}

class QuantisedTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(QuantisedTest);

TEST_P(QuantisedTest, values_are_those_of_the_blocks) {
  for (const QuantisedType type : kAll) {
    const Bytes bytes = random_blocks(type, 3, 512);
    const std::vector<double> want = values_of(type, bytes);
    const auto got = dequantise(blocks_of(bytes, 3), type).to_vector<float>();
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], want[i], 1e-5 + 1e-6 * std::fabs(want[i])) << format_of(type).name << " at " << i;
  }
}

struct Case {
  std::int64_t m, n, k;
};

TEST_P(QuantisedTest, products_and_gradients_are_sums_over_those_values) {
  for (const Case& c : {Case{1, 3, 256}, Case{5, 17, 256}, Case{8, 38, 512}, Case{9, 101, 768}, Case{67, 50, 1280}})
    for (const QuantisedType type : kAll) {
      const auto [m, n, k] = c;
      const Bytes bytes = random_blocks(type, n, k);
      const std::vector<double> w = values_of(type, bytes);
      const Array x = normal({m, k}, 0, 1, f32, {.seed = 3}), bias = normal({n}, 0, 1, f32, {.seed = 4}),
                  dy = normal({m, n}, 0, 1, f32, {.seed = 5});
      const Array y = quantised_linear(x, blocks_of(bytes, n), type, bias);
      const std::vector<Array> gradients = samebytes::gradients(sum(y * dy), std::vector<Array>{x, bias});
      const auto hx = x.to_vector<float>(), hb = bias.to_vector<float>(), hd = dy.to_vector<float>(),
                 hy = y.to_vector<float>(), dx = gradients[0].to_vector<float>(), db = gradients[1].to_vector<float>();
      const auto at = [](std::int64_t row, std::int64_t column, std::int64_t width) {
        return static_cast<std::size_t>(row * width + column);
      };
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          double sum = hb[at(0, j, n)], size = 1;
          for (std::int64_t p = 0; p < k; ++p) {
            const double term = hx[at(i, p, k)] * w[at(j, p, k)];
            sum += term;
            size += std::fabs(term);
          }
          ASSERT_NEAR(hy[at(i, j, n)], sum, 2e-6 * size) << format_of(type).name << ' ' << m << ' ' << n << ' ' << k;
        }
        for (std::int64_t p = 0; p < k; ++p) {
          double sum = 0, size = 1;
          for (std::int64_t j = 0; j < n; ++j) {
            const double term = hd[at(i, j, n)] * w[at(j, p, k)];
            sum += term;
            size += std::fabs(term);
          }
          ASSERT_NEAR(dx[at(i, p, k)], sum, 2e-6 * size) << format_of(type).name << ' ' << m << ' ' << n << ' ' << k;
        }
      }
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t i = 0; i < m; ++i) sum += hd[at(i, j, n)];
        EXPECT_NEAR(db[at(0, j, n)], sum, 1e-4);
      }
    }
}

TEST_P(QuantisedTest, is_the_product_with_the_dequantised_matrix_in_what_surrounds_it) {
  const Bytes bytes = random_blocks(q4_0, 33, 64);
  const Array blocks = blocks_of(bytes, 33), wide = dequantise(blocks, q4_0);
  const Array x = normal({2, 7, 64}, 0, 1, f32, {.seed = 3}), residual = normal({2, 7, 33}, 0, 1, f32, {.seed = 6});
  const auto near = [](const Array& a, const Array& b) { EXPECT_LT(max(abs(a - b)).value(), 1e-4); };
  near(relu(quantised_linear(x, blocks, q4_0) + residual), relu(linear(x, wide) + residual));
  const Array turned = transpose(reshape(x, {14, 64}));
  near(quantised_linear(transpose(turned), blocks, q4_0), linear(reshape(x, {14, 64}), wide));
  EXPECT_EQ(quantised_linear(zeros({0, 64}), blocks, q4_0).shape(), (Shape{0, 33}));
  EXPECT_EQ(quantised_linear(astype(x, bf16), blocks, q4_0).dtype(), bf16);
}

TEST_P(QuantisedTest, a_row_among_a_few_has_the_bytes_of_the_row_alone) {
  for (const QuantisedType type : kAll) {
    const Array blocks = blocks_of(random_blocks(type, 37, 768), 37), x = normal({7, 768}, 0, 1, f32, {.seed = 3});
    const Array all = quantised_linear(x, blocks, type);
    for (std::int64_t i = 0; i < 7; ++i)
      EXPECT_TRUE(same_bytes(contiguous(slice(all, 0, i, i + 1)),
                             quantised_linear(contiguous(slice(x, 0, i, i + 1)), blocks, type)))
          << format_of(type).name << " " << i;
  }
}

TEST_P(QuantisedTest, gradient_is_the_numerical_one) {
  SAMEBYTES_NEEDS_F64();
  const Array blocks = blocks_of(random_blocks(q8_0, 5, 32), 5);
  EXPECT_TRUE(check_gradients([&](auto x) { return quantised_linear(x[0], blocks, q8_0, x[1]); },
                              {random_input("x", {3, 32}), random_input("bias", {5})}));
}

TEST_P(QuantisedTest, memory_modes_give_the_same_bytes) {
  const auto bytes = random_blocks(q4_k, 40, 512);
  std::vector<float> x(13 * 512);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) / 50 - 1;
  const auto want = quantised_linear(array(x, {13, 512}), blocks_of(bytes, 40), q4_k).to_vector<float>();
  for (const MemoryMode mode : {MemoryMode::coarse, MemoryMode::copy}) {
    const auto other = make_engine({.personality = GetParam().personality, .memory = mode});
    const EngineScope scope(*other);
    EXPECT_EQ(quantised_linear(array(x, {13, 512}), blocks_of(bytes, 40), q4_k).to_vector<float>(), want);
  }
}

TEST_P(QuantisedTest, quantised_rows_are_near_what_they_were) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal_values;
  std::vector<float> x(2 * 512);
  for (float& v : x) v = normal_values(random);
  const struct {
    QuantisedType type;
    double most;  // root of the mean square of the error
  } rows[] = {{q8_0, 0.01}, {q4_0, 0.12}, {q4_k, 0.11}, {nf4, 0.11}};
  for (const auto& row : rows) {
    const std::vector<std::byte> blocks = quantise(x, 512, row.type);
    const Bytes bytes(reinterpret_cast<const std::uint8_t*>(blocks.data()),
                      reinterpret_cast<const std::uint8_t*>(blocks.data()) + blocks.size());
    const std::vector<double> back = values_of(row.type, bytes);
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += std::pow(back[i] - x[i], 2);
    EXPECT_LT(std::sqrt(sum / static_cast<double>(x.size())), row.most) << format_of(row.type).name;
    EXPECT_EQ(values_of(row.type, Bytes(bytes.size())).front(), row.type == nf4 ? -0.0 : 0.0);
    const std::vector<std::byte> nothing = quantise(std::vector<float>(512), 512, row.type);
    const Bytes zero(reinterpret_cast<const std::uint8_t*>(nothing.data()),
                     reinterpret_cast<const std::uint8_t*>(nothing.data()) + nothing.size());
    for (const double v : values_of(row.type, zero)) ASSERT_EQ(v, 0.0) << format_of(row.type).name;
  }
}

TEST_P(QuantisedTest, refuses_what_does_not_fit) {
  const Array blocks = zeros({4, 34}, u8), x = zeros({2, 32});
  EXPECT_ERROR(quantised_linear(zeros({2, 31}), blocks, q8_0), ArgumentError,
               "quantised_linear: x must have 32 values in its last axis, x is [2, 31]");
  EXPECT_ERROR(quantised_linear(x, zeros({4, 33}, u8), q8_0), ArgumentError,
               "quantised_linear: rows must be whole blocks of Q8_0 of 34 bytes, got 33 bytes");
  EXPECT_ERROR(quantised_linear(x, zeros({4, 32}), q8_0), ArgumentError,
               "quantised_linear: blocks must be u8 [rows, bytes], blocks is f32 [4, 32]");
  EXPECT_ERROR(quantised_linear(zeros({2, 32}, i32), blocks, q8_0), ArgumentError,
               "quantised_linear: x must be floating with one axis or more, x is i32 [2, 32]");
  EXPECT_ERROR(quantised_linear(x, blocks, q8_0, zeros({5})), ArgumentError,
               "quantised_linear: bias must be floating [out], bias is f32 [5]");
  EXPECT_ERROR(dequantise(x, q8_0), ArgumentError,
               "dequantise: blocks must be u8 [rows, bytes], blocks is f32 [2, 32]");
  EXPECT_ERROR(quantise(std::vector<float>(32), 32, q6_k), ArgumentError,
               "quantise: expected Q8_0, Q4_0, Q4_K or NF4, got Q6_K");
  EXPECT_ERROR(quantise(std::vector<float>(96), 48, q8_0), ArgumentError,
               "quantise: rows of Q8_0 have a multiple of 32 values, got 48 of 96");
}

}  // namespace
}  // namespace samebytes::testing

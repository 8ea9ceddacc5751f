// matmul and linear against double, in both personalities: odd shapes, views, batches, gradients, providers, wrong
// arguments.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "graph/context.h"
#include "reference/matmul.h"
#include "runtime/runtime.h"
#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

class MatmulTest : public OnDevice {
 protected:
  // CLBlast takes buffers: where one over shared memory has bytes of its own, arrays are buffers themselves.
  DeviceCase clblast_case() {
    DeviceCase device_case = GetParam();
    if (engine().device().type != "cpu" && !engine().context()->runtime->alias_works())
      device_case.memory = MemoryMode::copy;
    return device_case;
  }
};
SAMEBYTES_ON_EVERY_DEVICE(MatmulTest);

struct Operand {
  std::vector<double> values;
  Array array;
};
Operand operand(const Shape& shape, std::uint64_t seed, Dtype dtype) {
  Operand o{random_values(shape.size(), seed), {}};
  o.array = real_array(o.values, shape, dtype);
  return o;
}

template <class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const ArgumentError& e) {
    return e.what();
  }
  return "";
}

TEST_P(MatmulTest, equals_the_definition_on_odd_shapes) {
  const std::vector<std::vector<std::int64_t>> sizes = {{1, 1, 1},      {3, 5, 7},    {14, 32, 256}, {15, 33, 257},
                                                        {13, 31, 17},   {64, 10, 97}, {1, 64, 1000}, {100, 1, 37},
                                                        {29, 17, 2011}, {5, 101, 515}};
  for (const Dtype dtype : real_dtypes()) {
    for (const auto& s : sizes) {
      const auto a = operand({s[0], s[2]}, 1, dtype), b = operand({s[2], s[1]}, 2, dtype);
      EXPECT_TRUE(all_close(matmul(a.array, b.array),
                            reference_matmul(a.values, a.array.shape(), b.values, b.array.shape()),
                            sum_tolerance(dtype, s[2])))
          << s[0] << " x " << s[1] << " x " << s[2];
    }
  }
}

// As many tiles as keep a large GPU busy, with edges in both directions: GPUs have kernels of larger tiles for them.
TEST_P(MatmulTest, many_tiles_equal_the_definition_whichever_way_the_operands_lie) {
  // Matrix units have a kernel for each layout, of 16 bits alone; other types are compiled for minutes on a CPU.
  const bool has_units = engine().context()->runtime->device().has_ptx_mma();
  const std::int64_t m = 1605, n = 1291, k = has_units ? 43 : 11;
  for (const Dtype dtype : {f32, bf16, f16}) {
    if (dtype != f32 && !has_units) continue;
    const double rounded = dtype == bf16 ? 0x1p-8 : dtype == f16 ? 0x1p-11 : 0;
    for (const bool a_turned : {false, true}) {
      for (const bool b_turned : {false, true}) {
        const Array a = astype(operand(a_turned ? Shape{k, m} : Shape{m, k}, 1, f32).array, dtype).eval();
        const Array b = astype(operand(b_turned ? Shape{n, k} : Shape{k, n}, 2, f32).array, dtype).eval();
        const Array x = a_turned ? transpose(a) : a, y = b_turned ? transpose(b) : b;
        const auto values = [](const Array& array) {
          const std::vector<float> of = contiguous(astype(array, f32)).to_vector<float>();
          return std::vector<double>(of.begin(), of.end());
        };
        EXPECT_TRUE(all_close(matmul(x, y), reference_matmul(values(x), {m, k}, values(y), {k, n}),
                              sum_tolerance(dtype, k) + rounded))
            << name_of(dtype) << ", " << a_turned << b_turned;
      }
    }
  }
}

TEST_P(MatmulTest, reads_transposed_and_sliced_operands_in_place) {
  for (const auto& s : std::vector<std::vector<std::int64_t>>{{17, 35, 40}, {64, 33, 128}, {3, 2, 300}}) {
    const std::int64_t m = s[0], n = s[1], k = s[2];
    const auto a = operand({k, m}, 1, f32), b = operand({n, k}, 2, f32);
    const auto at = reference_transpose(a.values, k, m), bt = reference_transpose(b.values, n, k);
    const auto before = engine().transfers().relayout_bytes;
    EXPECT_TRUE(all_close(matmul(transpose(a.array), transpose(b.array)), reference_matmul(at, {m, k}, bt, {k, n}),
                          sum_tolerance(f32, k)));
    EXPECT_EQ(engine().transfers().relayout_bytes, before);
  }
  // Every second row, every third column.
  const auto a = operand({20, 30}, 3, f32), b = operand({10, 6}, 4, f32);
  std::vector<double> picked;
  for (int i = 0; i < 20; i += 2)
    for (int j = 0; j < 30; j += 3) picked.push_back(a.values[static_cast<std::size_t>(i * 30 + j)]);
  EXPECT_TRUE(all_close(matmul(slice(slice(a.array, 0, 0, 20, 2), 1, 0, 30, 3), b.array),
                        reference_matmul(picked, {10, 10}, b.values, {10, 6}), sum_tolerance(f32, 10)));
}

TEST_P(MatmulTest, one_row_or_column_equals_the_definition_whichever_way_the_matrix_lies) {
  std::vector<Dtype> dtypes = real_dtypes();
  dtypes.push_back(bf16);
  for (const Dtype dtype : dtypes) {
    for (const auto& [n, k] : {std::pair{1024, 1024}, std::pair{701, 97}, std::pair{3, 30011}, std::pair{1031, 513}}) {
      SCOPED_TRACE(std::to_string(n) + " of " + std::to_string(k) + " " + std::string(name_of(dtype)));
      auto row = operand({1, k}, 1, f32), matrix = operand({k, n}, 2, f32), bias = operand({n}, 3, f32);
      for (Operand* o : {&row, &matrix}) {
        if (dtype == bf16) o->values = astype(astype(o->array, bf16), f32).to_vector<double>();
        o->array = real_array(o->values, o->array.shape(), dtype == bf16 ? f32 : dtype);
        if (dtype == bf16) o->array = astype(o->array, bf16);
      }
      const auto want = reference_matmul(row.values, {1, k}, matrix.values, {k, n});
      const double tolerance = dtype == bf16 ? 0.01 : sum_tolerance(dtype, k);
      const auto other = real_array(reference_transpose(matrix.values, k, n), {n, k}, dtype == f64 ? f64 : f32);
      const Array turned = dtype == bf16 ? astype(other, bf16) : other;
      EXPECT_TRUE(all_close(astype(matmul(row.array, matrix.array), f64 == dtype ? f64 : f32), want, tolerance));
      EXPECT_TRUE(all_close(astype(matmul(row.array, transpose(turned)), f64 == dtype ? f64 : f32), want, tolerance));
      EXPECT_TRUE(all_close(astype(matmul(turned, transpose(row.array)), f64 == dtype ? f64 : f32), want, tolerance));
      EXPECT_TRUE(all_close(astype(matmul(transpose(matrix.array), transpose(row.array)), f64 == dtype ? f64 : f32),
                            want, tolerance));
      if (dtype != f32) continue;
      std::vector<double> cut = want;
      for (std::size_t i = 0; i < cut.size(); ++i) cut[i] = std::max(0.0, cut[i] + bias.values[i]);
      EXPECT_TRUE(all_close(relu(linear(row.array, transpose(matrix.array), bias.array)), cut, tolerance));
      EXPECT_TRUE(same_bytes(matmul(row.array, matrix.array), matmul(row.array, matrix.array)));
    }
  }
}

TEST_P(MatmulTest, many_tiny_products_equal_the_definition_whichever_way_they_lie) {
  for (const Dtype dtype : real_dtypes()) {
    for (const auto& s : std::vector<std::vector<std::int64_t>>{
             {512, 8, 8, 8}, {301, 5, 8, 9}, {130, 7, 3, 33}, {65, 17, 13, 11}, {97, 32, 16, 64}, {4099, 3, 1, 7}}) {
      SCOPED_TRACE(std::to_string(s[0]) + " of " + std::to_string(s[1]) + "x" + std::to_string(s[2]) + "x" +
                   std::to_string(s[3]));
      const std::int64_t z = s[0], m = s[1], n = s[2], k = s[3];
      const auto a = operand({z, m, k}, 1, dtype), b = operand({z, k, n}, 2, dtype), c = operand({z, m, n}, 3, dtype);
      const auto want = reference_matmul(a.values, a.array.shape(), b.values, b.array.shape());
      const double tolerance = sum_tolerance(dtype, k);
      const Array y = matmul(a.array, b.array);
      EXPECT_TRUE(all_close(y, want, tolerance));
      const Array at = contiguous(transpose(a.array)), bt = contiguous(transpose(b.array));
      EXPECT_TRUE(all_close(matmul(transpose(at), transpose(bt)), want, tolerance));
      std::vector<double> cut = want;
      for (std::size_t i = 0; i < cut.size(); ++i) cut[i] = std::max(0.0, cut[i] + c.values[i]);
      EXPECT_TRUE(all_close(relu(matmul(a.array, b.array) + c.array), cut, tolerance));
      const auto d = gradients(sum(matmul(a.array, b.array) * c.array), std::vector<Array>{a.array, b.array});
      const auto at_values = transpose(a.array).to_vector<double>(), bt_values = transpose(b.array).to_vector<double>();
      EXPECT_TRUE(
          all_close(d[0], reference_matmul(c.values, {z, m, n}, bt_values, {z, n, k}), sum_tolerance(dtype, n)));
      EXPECT_TRUE(
          all_close(d[1], reference_matmul(at_values, {z, k, m}, c.values, {z, m, n}), sum_tolerance(dtype, m)));
    }
  }
}

TEST_P(MatmulTest, broadcasts_batch_axes) {
  const std::vector<std::pair<Shape, Shape>> cases = {{{3, 4, 5}, {3, 5, 6}},    {{3, 4, 5}, {5, 6}},
                                                      {{4, 5}, {3, 5, 6}},       {{2, 1, 4, 5}, {1, 3, 5, 6}},
                                                      {{2, 3, 4, 5}, {3, 5, 6}}, {{2, 1, 3, 1, 2, 3}, {2, 1, 2, 3, 2}},
                                                      {{1, 1, 3}, {7, 3, 2}},    {{2, 3, 2, 2}, {2, 3, 2, 17}}};
  for (const auto& [a_shape, b_shape] : cases) {
    const auto a = operand(a_shape, 1, f32), b = operand(b_shape, 2, f32);
    const Array c = matmul(a.array, b.array);
    EXPECT_TRUE(all_close(c, reference_matmul(a.values, a_shape, b.values, b_shape), sum_tolerance(f32, 8)))
        << a_shape.to_string() << " x " << b_shape.to_string() << " -> " << c.shape().to_string();
  }
}

TEST_P(MatmulTest, takes_heads_of_attention_without_a_copy) {
  const std::int64_t batch = 2, length = 5, heads = 3, width = 4;
  const auto q = operand({batch, length, heads * width}, 1, f32), k = operand({batch, length, heads * width}, 2, f32);
  const auto split = [&](const Array& x) { return transpose(reshape(x, {batch, length, heads, width}), {0, 2, 1, 3}); };
  const Array scores = matmul(split(q.array), transpose(split(k.array)));
  std::vector<double> want;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < length; ++i)
        for (std::int64_t j = 0; j < length; ++j) {
          double sum = 0;
          for (std::int64_t d = 0; d < width; ++d)
            sum += q.values[static_cast<std::size_t>(((b * length + i) * heads + h) * width + d)] *
                   k.values[static_cast<std::size_t>(((b * length + j) * heads + h) * width + d)];
          want.push_back(sum);
        }
  const auto before = engine().transfers().relayout_bytes;
  EXPECT_TRUE(all_close(scores, want, sum_tolerance(f32, width)));
  EXPECT_EQ(engine().transfers().relayout_bytes, before);
}

TEST_P(MatmulTest, an_empty_sum_is_zero_and_an_empty_result_is_empty) {
  const auto a = operand({3, 0}, 1, f32), b = operand({0, 2}, 2, f32), c = operand({0, 3}, 3, f32);
  EXPECT_TRUE(all_close(matmul(a.array, b.array), std::vector<double>(6, 0.0), 0));
  EXPECT_EQ(matmul(c.array, a.array).shape(), (Shape{0, 0}));
}

TEST_P(MatmulTest, widens_sixteen_bit_operands_and_rounds_once) {
  const auto a = operand({9, 20}, 1, f32), b = operand({20, 11}, 2, f32);
  const Array c = matmul(astype(a.array, f16), b.array), d = matmul(astype(a.array, bf16), astype(b.array, bf16));
  EXPECT_EQ(c.dtype(), f32);
  EXPECT_EQ(d.dtype(), bf16);
  const auto want = reference_matmul(a.values, a.array.shape(), b.values, b.array.shape());
  EXPECT_TRUE(all_close(c, want, 20 * 0x1p-11));  // twenty products, each with an operand rounded to 11 bits
  EXPECT_TRUE(all_close(astype(d, f32), want, 40 * 0x1p-8));
}

TEST_P(MatmulTest, gradients_are_the_numerical_ones) {
  SAMEBYTES_NEEDS_F64();
  EXPECT_TRUE(check_gradients([](auto x) { return matmul(x[0], x[1]); },
                              {random_input("a", {3, 5}), random_input("b", {5, 4}, 2)}));
  EXPECT_TRUE(check_gradients([](auto x) { return matmul(transpose(x[0]), x[1]); },
                              {random_input("a", {5, 3}), random_input("b", {5, 4}, 2)}));
  EXPECT_TRUE(check_gradients([](auto x) { return matmul(x[0], x[1]); },
                              {random_input("a", {2, 3, 4}), random_input("b", {4, 2}, 2)}));
  EXPECT_TRUE(check_gradients([](auto x) { return matmul(x[0], x[1]); },
                              {random_input("a", {2, 1, 3, 4}), random_input("b", {3, 4, 2}, 2)}));
}

TEST_P(MatmulTest, linear_equals_the_definition_and_its_gradients_are_the_numerical_ones) {
  for (const auto& s : std::vector<std::vector<std::int64_t>>{{64, 10, 256}, {7, 33, 19}, {1, 1, 1}, {3, 5, 1500}}) {
    const auto x = operand({s[0], s[2]}, 1, f32), w = operand({s[1], s[2]}, 2, f32), bias = operand({s[1]}, 3, f32);
    auto want = reference_matmul(x.values, {s[0], s[2]}, reference_transpose(w.values, s[1], s[2]), {s[2], s[1]});
    EXPECT_TRUE(all_close(linear(x.array, w.array), want, sum_tolerance(f32, s[2])));
    for (std::size_t i = 0; i < want.size(); ++i) want[i] += bias.values[i % bias.values.size()];
    EXPECT_TRUE(all_close(linear(x.array, w.array, bias.array), want, sum_tolerance(f32, s[2])));
  }
  SAMEBYTES_NEEDS_F64();
  const auto f = [](auto x) { return linear(x[0], x[1], x[2]); };
  EXPECT_TRUE(
      check_gradients(f, {random_input("x", {4, 5}), random_input("weight", {3, 5}, 2), random_input("bias", {3}, 3)}));
  EXPECT_TRUE(check_gradients(
      f, {random_input("x", {2, 3, 5}), random_input("weight", {4, 5}, 2), random_input("bias", {4}, 3)}));
}

TEST_P(MatmulTest, every_provider_gives_the_same_product) {
  for (const GemmProvider provider : {GemmProvider::packed, GemmProvider::clblast, GemmProvider::eigen}) {
    EngineOptions options;
    options.gemm = provider;
    const auto own = make_engine(provider == GemmProvider::clblast ? clblast_case() : GetParam(), options);
    const EngineScope scope(*own);
    const auto a = operand({3, 33, 40}, 1, f32), b = operand({3, 40, 21}, 2, f32), w = operand({21, 40}, 3, f32),
               bias = operand({21}, 4, f32);
    EXPECT_TRUE(all_close(matmul(a.array, b.array), reference_matmul(a.values, {3, 33, 40}, b.values, {3, 40, 21}),
                          sum_tolerance(f32, 40)));
    auto want = reference_matmul(a.values, {99, 40}, reference_transpose(w.values, 21, 40), {40, 21});
    for (std::size_t i = 0; i < want.size(); ++i) want[i] += bias.values[i % 21];
    EXPECT_TRUE(all_close(linear(a.array, w.array, bias.array), want, sum_tolerance(f32, 40)));
    // A stride that no provider but the packed kernel takes.
    std::vector<double> picked;
    for (std::size_t i = 0; i < 99; ++i)
      for (std::size_t j = 0; j < 40; j += 2) picked.push_back(a.values[i * 40 + j]);
    const auto narrow = operand({20, 5}, 5, f32);
    EXPECT_TRUE(all_close(matmul(slice(reshape(a.array, {99, 40}), 1, 0, 40, 2), narrow.array),
                          reference_matmul(picked, {99, 20}, narrow.values, {20, 5}), sum_tolerance(f32, 20)));
  }
}

TEST_P(MatmulTest, temporaries_of_clblast_are_in_the_ledger_and_kept_for_the_next_call) {
  EngineOptions options;
  options.gemm = GemmProvider::clblast;
  const auto own = make_engine(clblast_case(), options);
  const EngineScope scope(*own);
  const auto a = operand({33, 40}, 1, f32), b = operand({40, 21}, 2, f32);
  EXPECT_EQ(own->memory().library_bytes, 0u);
  matmul(a.array, b.array).wait();
  const MemoryReport once = own->memory();
  // The direct kernel of CLBlast needs none; ours on CPU devices always takes the other one.
  if (own->device().type == "cpu") {
    EXPECT_GE(once.library_bytes, (33 * 40 + 40 * 21 + 33 * 21) * sizeof(float));
  }
  EXPECT_GE(once.peak_bytes, once.live_bytes + once.library_bytes);
  matmul(a.array, b.array).wait();
  EXPECT_EQ(own->memory().library_bytes, once.library_bytes);
  const char* allocator = std::getenv("SAMEBYTES_ALLOCATOR");
  if (!allocator || allocator != std::string("exact")) {  // the exact one keeps nothing
    EXPECT_EQ(own->memory().allocations, once.allocations);
  }
}

TEST_P(MatmulTest, the_same_bytes_come_twice) {
  const auto a = operand({65, 1030}, 1, f32), b = operand({1030, 47}, 2, f32);
  EXPECT_TRUE(same_bytes(matmul(a.array, b.array), matmul(a.array, b.array)));
}

TEST_P(MatmulTest, wrong_arguments_are_named) {
  const Array a = zeros({64, 512}), b = zeros({256, 10}), row = zeros({512});
  EXPECT_EQ(message_of([&] { matmul(a, b); }), "matmul: inner dimensions differ: a is [64, 512], b is [256, 10]");
  EXPECT_EQ(message_of([&] {
              matmul(zeros({2, 3, 4}), zeros({3, 4, 5}));
            }),
            "matmul: batch axes do not broadcast: a is [2, 3, 4], b is [3, 4, 5]");
  EXPECT_EQ(message_of([&] { matmul(a, row); }), "matmul: b must be floating with two axes or more, b is f32 [512]");
  EXPECT_EQ(message_of([&] {
              matmul(zeros({2, 2}, i32), a);
            }),
            "matmul: a must be floating with two axes or more, a is i32 [2, 2]");
  EXPECT_EQ(message_of([&] { linear(a, b); }),
            "linear: x must have 10 values in its last axis, x is [64, 512], weight is [256, 10]");
  EXPECT_EQ(message_of([&] {
              linear(a, zeros({3, 512}), zeros({4}));
            }),
            "linear: bias must be floating [out], bias is f32 [4]");
  EXPECT_THROW(matmul(Array(), a), ArgumentError);
}

}  // namespace
}  // namespace samebytes::testing

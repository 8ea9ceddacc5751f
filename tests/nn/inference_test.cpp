// Frozen modules give what their module gives, by fewer launches, and follow its weights.
#include "samebytes/nn/inference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

class FrozenTest : public OnDevice {
 protected:
  static Array input(const Shape& shape, int seed = 1) {
    return uniform(shape, -1, 1, f32, {.seed = static_cast<std::uint64_t>(seed)}).wait();
  }
  // A norm behind a convolution that has statistics of its own.
  static nn::Sequential images() {
    nn::Sequential net(
        nn::Conv2d({.in = 3, .out = 32, .kernel = 3, .pad = 1, .bias = false}), nn::BatchNorm2d({.features = 32}),
        nn::Relu(), nn::Conv2d({.in = 32, .out = 32, .kernel = 3, .pad = 1, .bias = false}),
        nn::BatchNorm2d({.features = 32}), nn::Relu(), nn::GlobalAvgPool2d(), nn::Linear({.in = 32, .out = 10}));
    net(input({4, 8, 8, 3})).eval();
    return net;
  }
  static nn::Sequential rows() {
    return nn::Sequential(nn::Linear({.in = 70, .out = 100}), nn::Relu(), nn::Linear({.in = 100, .out = 50}));
  }
  // The same bytes call by call, from the third on by what was recorded; of few rows, by sums of another order.
  static void expect_same(nn::Module& net, nn::FrozenModule& frozen, const Shape& shape, bool has_few_rows = false) {
    const NoGrad no_grad;
    for (int call = 0; call < 4; ++call) {
      const Array x = input(shape, call + 1), y = frozen(x), want = net(x);
      EXPECT_TRUE(has_few_rows ? all_close(y, want.to_vector<double>(), sum_tolerance(f32, 128)) : same_bytes(y, want))
          << net.describe() << " " << shape.to_string() << " call " << call;
    }
  }
  std::uint64_t launches_of(nn::Module& net, const Array& x) {
    const NoGrad no_grad;
    const std::uint64_t before = engine().plans().launches;
    net(x).wait();
    return engine().plans().launches - before;
  }
};
SAMEBYTES_ON_EVERY_DEVICE(FrozenTest);

TEST_P(FrozenTest, gives_the_same_bytes) {
  nn::Sequential net = images(), mlp = rows();
  nn::FrozenModule frozen = nn::freeze_for_inference(net), frozen_mlp = nn::freeze_for_inference(mlp);
  EXPECT_FALSE(net.is_training());
  for (const std::int64_t batch : {1, 3, 8}) expect_same(net, frozen, {batch, 8, 8, 3});
  for (const std::int64_t batch : {1, 2, 33, 64, 300}) expect_same(mlp, frozen_mlp, {batch, 70});
  for (const std::int64_t batch : {8, 9, 31}) expect_same(mlp, frozen_mlp, {batch, 70}, true);
  EXPECT_EQ(frozen.report().graphs, 3);
}

TEST_P(FrozenTest, sequences_attention_and_recurrent_layers) {
  nn::Sequential series(nn::Conv1d({.in = 16, .out = 16, .kernel = 5, .pad = 2}), nn::BatchNorm({.features = 16}),
                        nn::Relu(), nn::MaxPool1d({.kernel = 2}),
                        nn::Conv1d({.in = 16, .out = 32, .kernel = 3, .pad = 1}), nn::GlobalAvgPool1d());
  series(input({4, 200, 16})).eval();
  nn::FrozenModule frozen = nn::freeze_for_inference(series);
  for (const std::int64_t batch : {1, 4}) expect_same(series, frozen, {batch, 200, 16});
  nn::TransformerBlock block({.width = 32, .heads = 4, .hidden = 64});
  nn::FrozenModule frozen_block = nn::freeze_for_inference(block);
  expect_same(block, frozen_block, {2, 40, 32});
  nn::Lstm lstm({.in = 8, .hidden = 16});
  nn::FrozenModule frozen_lstm = nn::freeze_for_inference(lstm);
  expect_same(lstm, frozen_lstm, {2, 7, 8}, true);
}

// Packed weights: sums of several blocks and splits, columns that fill no panel, what follows in the same launch.
TEST_P(FrozenTest, products_of_all_sizes) {
  struct Sizes {
    std::int64_t rows, in, out;
  };
  std::vector<Dtype> dtypes{f32};
  if (has_f64()) dtypes.push_back(f64);
  for (const Dtype dtype : dtypes) {
    for (const Sizes& s :
         {Sizes{8, 40, 33}, {9, 513, 97}, {40, 700, 150}, {33, 1100, 49}, {64, 3000, 64}, {256, 129, 75}}) {
      SCOPED_TRACE(std::string(name_of(dtype)) + " " + std::to_string(s.rows) + " " + std::to_string(s.in));
      const Array weight = cell(astype(input({s.in, s.out}, 7), dtype), "weight"),
                  more = astype(input({s.rows, s.out}, 8), dtype).wait();
      nn::Sequential by_lines(nn::Linear({.in = s.in, .out = s.out, .dtype = dtype}), nn::Relu()),
          by_columns(nn::Lambda([=](const Array&x) { return relu(matmul(x, weight) + more); }, "product"));
      for (nn::Sequential* net : {&by_lines, &by_columns}) {
        nn::FrozenModule frozen = nn::freeze_for_inference(*net);
        const NoGrad no_grad;
        for (int call = 0; call < 4; ++call) {
          const Array x = astype(input({s.rows, s.in}, call), dtype).wait();
          EXPECT_TRUE(all_close(frozen(x), (*net)(x).to_vector<double>(), sum_tolerance(dtype, s.in)));
        }
      }
    }
  }
}

TEST_P(FrozenTest, convolutions_that_are_products) {
  for (const std::int64_t size : {1, 3, 7}) {
    nn::Sequential net(nn::Conv2d({.in = 96, .out = 120, .kernel = 1, .bias = false}),
                       nn::BatchNorm2d({.features = 120}), nn::Relu6(),
                       nn::Conv2d({.in = 120, .out = 50, .kernel = 1}));
    net(input({4, size, size, 96})).eval();
    nn::FrozenModule frozen = nn::freeze_for_inference(net);
    for (const std::int64_t batch : {1, 4}) expect_same(net, frozen, {batch, size, size, 96}, true);
  }
}

TEST_P(FrozenTest, what_follows_from_weights_alone_is_not_launched_again) {
  nn::Sequential net = images();
  nn::FrozenModule frozen = nn::freeze_for_inference(net);
  const NoGrad no_grad;
  const Array x = input({4, 8, 8, 3});
  const std::uint64_t plain = launches_of(net, x);
  for (int call = 0; call < 3; ++call) frozen(x).wait();
  EXPECT_LE(launches_of(frozen, x) + 4, plain) << "two filters and two shifts";
  EXPECT_GE(frozen.report().kept, 4);
  frozen.reset();
  nn::warm(frozen, {{.shape = x.shape()}});
  EXPECT_EQ(frozen.report().graphs, 1);
  EXPECT_LE(launches_of(frozen, x) + 4, plain);
}

TEST_P(FrozenTest, follows_weights_and_statistics) {
  nn::Sequential net = images();
  nn::FrozenModule frozen = nn::freeze_for_inference(net);
  const NoGrad no_grad;
  const Array x = input({4, 8, 8, 3});
  const Array before = net(x).wait();
  for (int call = 0; call < 3; ++call) EXPECT_TRUE(same_bytes(frozen(x), before));
  for (const nn::NamedArray& entry : net.state()) {  // filters, norms, statistics, the last layer
    const Array old = contiguous(entry.array + 0.0).wait();
    assign(entry.array, old * 1.5 + 0.25);
    const Array want = net(x).wait();
    EXPECT_FALSE(same_bytes(want, before)) << entry.name;
    EXPECT_TRUE(same_bytes(frozen(x), want)) << entry.name;
    entry.array.mutable_host<float>()[0] = 2;
    EXPECT_TRUE(same_bytes(frozen(x), net(x))) << entry.name << " by the host";
    assign(entry.array, old);
    EXPECT_TRUE(same_bytes(frozen(x), before)) << entry.name << " as it was";
  }
}

TEST_P(FrozenTest, follows_training) {
  nn::Sequential net = images();
  nn::FrozenModule frozen = nn::freeze_for_inference(net);
  optim::AdamW optimizer(net.parameters(), {.rate = 0.01});
  const Array x = input({4, 8, 8, 3});
  for (int round = 0; round < 3; ++round) {
    net.train();
    const Array trained = frozen(x);
    EXPECT_NO_THROW(optimizer.step(mean(trained * trained))) << "in training mode it is the module";
    net.eval();
    for (int call = 0; call < 3; ++call) {
      const Array y = frozen(x);
      const NoGrad no_grad;
      EXPECT_TRUE(same_bytes(y, net(x))) << round;
    }
  }
}

TEST_P(FrozenTest, inputs_of_any_kind) {
  nn::Sequential mlp = rows();
  nn::FrozenModule frozen = nn::freeze_for_inference(mlp);
  const NoGrad no_grad;
  const Array whole = input({90, 70});
  for (int call = 0; call < 4; ++call) {
    const Array view = slice(whole, 0, call, call + 40), lazy = view * 2.0;
    EXPECT_TRUE(same_bytes(frozen(view), mlp(view)));
    EXPECT_TRUE(same_bytes(frozen(lazy), mlp(lazy)));
  }
  expect_same(mlp, frozen, {2, 33, 70});
  nn::Embedding embedding({.in = 12, .out = 16});
  nn::FrozenModule of_ids = nn::freeze_for_inference(embedding);
  for (int call = 0; call < 4; ++call) {
    const Array ids = array<std::int32_t>({call, 3, 5, 11}, {2, 2});
    EXPECT_TRUE(same_bytes(of_ids(ids), embedding(ids)));
  }
  EXPECT_THAT(message_of<ArgumentError>([&] { frozen(input({4, 69})); }), HasSubstr("x must have 70 values"));
  expect_same(mlp, frozen, {2, 70});
}

class Counting : public nn::Module {
 public:
  explicit Counting(std::function<Array(const Array&)> body) : body_(std::move(body)) {}
  Array forward(const Array& x) override {
    ++calls;
    return body_(layer_(x));
  }
  void visit(nn::Visitor& visitor) override { visitor.child("layer", layer_); }
  int calls = 0;

 private:
  nn::Linear layer_{{.in = 4, .out = 4}};
  std::function<Array(const Array&)> body_;
};

TEST_P(FrozenTest, runs_the_code_twice_or_each_time_where_it_must) {
  const NoGrad no_grad;
  const auto calls_of = [&](const std::function<Array(const Array&)>& body) {
    Counting net(body);
    nn::FrozenModule frozen = nn::freeze_for_inference(net);
    for (int call = 0; call < 6; ++call) frozen(input({2, 4}, call)).wait();
    const int before = net.calls;
    frozen.reset();
    for (int call = 0; call < 3; ++call) frozen(input({2, 4}, call)).wait();
    EXPECT_EQ(net.calls - before, before == 2 ? 2 : 3);
    return before;
  };
  const Array counter = cell(zeros({1}), "counter");
  EXPECT_EQ(calls_of([](const Array& y) { return relu(y); }), 2);
  EXPECT_EQ(calls_of([](const Array& y) { return y * y.to_vector<float>()[0]; }), 6) << "looks at a value";
  EXPECT_EQ(calls_of([](const Array& y) { return y + normal(y.shape(), 0, 1); }), 6) << "random numbers";
  EXPECT_EQ(calls_of([&](const Array& y) { return y + update(counter, counter + 1.0); }), 6) << "a cell is updated";
  EXPECT_EQ(counter.value(), 9);
}

TEST_P(FrozenTest, layers_that_train_int8_and_adapters) {
  nn::Sequential net(nn::Linear({.in = 64, .out = 64}), nn::Dropout({.p = 0.5}), nn::Linear({.in = 64, .out = 40}));
  nn::FrozenModule frozen = nn::freeze_for_inference(net);
  expect_same(net, frozen, {64, 64});
  const NoGrad no_grad;
  const Array x = input({64, 64});
  net[1].train();
  EXPECT_FALSE(same_bytes(frozen(x), frozen(x))) << "dropout is on";
  net.eval();
  const Array plain = net(x).wait();
  nn::quantize(net);
  EXPECT_FALSE(same_bytes(net(x), plain));
  expect_same(net, frozen, {64, 64});
  nn::dequantize(net);
  expect_same(net, frozen, {64, 64});
  nn::apply_lora(net, {.rank = 2});
  net.eval();
  expect_same(net, frozen, {64, 64});
}

TEST_P(FrozenTest, memory_is_counted_shared_limited_and_given_back) {
  const std::unique_ptr<Engine> own = make_engine(GetParam());
  const EngineScope scope(*own);
  nn::Sequential net = images();
  const NoGrad no_grad;
  const auto parameters = [&] { return own->memory().live_by_category[MemoryCategory::parameters]; };
  net.eval();
  net(input({2, 8, 8, 3})).wait();
  const std::size_t before = parameters();
  {
    nn::FrozenModule frozen = nn::freeze_for_inference(net);
    for (int call = 0; call < 3; ++call) frozen(input({2, 8, 8, 3}, call)).wait();
    const nn::FreezeReport one = frozen.report();
    EXPECT_GE(one.kept_bytes, 9 * 32 * 32 * 4);
    EXPECT_GE(parameters(), before + one.kept_bytes);
    for (int call = 0; call < 3; ++call) frozen(input({3, 8, 8, 3}, call)).wait();
    EXPECT_EQ(frozen.report().graphs, 2);
    EXPECT_EQ(frozen.report().kept_bytes, one.kept_bytes) << "both batch sizes share them";
    EXPECT_EQ(frozen.report().to_text(), "2 graphs, " + std::to_string(one.kept) + " values (" +
                                             bytes_text(one.kept_bytes) + ") beside the weights");
  }
  EXPECT_EQ(parameters(), before);
  nn::FrozenModule bare = nn::freeze_for_inference(net, {.most_kept_bytes = 100});
  expect_same(net, bare, {2, 8, 8, 3});
  EXPECT_EQ(bare.report().graphs, 1);
  EXPECT_EQ(bare.report().kept, 0);
}

TEST_P(FrozenTest, threads_share_it) {
  nn::Sequential net = images();
  nn::FrozenModule frozen = nn::freeze_for_inference(net);
  std::vector<std::vector<float>> want;
  for (int seed = 0; seed < 4; ++seed) {
    const NoGrad no_grad;
    want.push_back(net(input({2, 8, 8, 3}, seed)).to_vector<float>());
  }
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (int seed = 0; seed < 4; ++seed)
    threads.emplace_back([&, seed] {
      const EngineScope scope(engine());
      for (int call = 0; call < 12; ++call)
        wrong[static_cast<std::size_t>(seed)] +=
            frozen(input({2, 8, 8, 3}, seed)).to_vector<float>() == want[static_cast<std::size_t>(seed)] ? 0 : 1;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

}  // namespace
}  // namespace samebytes::testing

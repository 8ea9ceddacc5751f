// Your own data set: say what a sample consists of and write one into memory that the device reads; the loader does the
// rest. Here points of two spirals, told apart by a small network.
#include <samebytes/samebytes.h>

#undef NDEBUG
#include <cassert>
#include <cmath>
#include <cstdio>
#include <memory>
namespace sb = samebytes;

class Spirals final : public sb::data::Dataset {
 public:
  std::int64_t size() const override { return 2000; }
  const std::vector<sb::data::FieldSpec>& fields() const override { return fields_; }

  // Called from several threads: what is random is a function of the index.
  bool read(std::int64_t index, std::span<const sb::data::Field> dst) const override {
    sb::Random random({.seed = 7, .index = index});
    const int arm = static_cast<int>(index % 2);
    const float turn = 3 * std::sqrt(random.uniform());
    const float angle = turn * 3.14159f * 0.8f + 3.14159f * static_cast<float>(arm);
    const auto point = dst[0].as<float>();
    point[0] = turn * std::cos(angle);
    point[1] = turn * std::sin(angle);
    dst[1].as<std::int32_t>()[0] = arm;
    return true;
  }

 private:
  std::vector<sb::data::FieldSpec> fields_{{.name = "point", .shape = {2}},
                                           {.name = "label", .shape = {}, .dtype = sb::i32}};
};

int main() {
  sb::Engine engine;
  sb::nn::Sequential net(sb::nn::Linear({.in = 2, .out = 64}), sb::nn::Relu(), sb::nn::Linear({.in = 64, .out = 64}),
                         sb::nn::Relu(), sb::nn::Linear({.in = 64, .out = 2}));
  sb::optim::AdamW adam(net.parameters(), {.rate = 5e-3});
  sb::data::Loader batches(engine, std::make_shared<Spirals>(), {.batch = 100, .shuffle = true});

  double accuracy = 0;
  for (int epoch = 1; epoch <= 20; ++epoch) {
    sb::Accuracy right;
    for (const auto& [point, label] : batches) {
      const sb::Array logits = net(point);
      adam.step(sb::cross_entropy(logits, label));
      right.add(logits, label);
    }
    accuracy = right.value();
    if (epoch % 5 == 0) std::printf("epoch %2d  accuracy %.1f %%\n", epoch, 100 * accuracy);
  }
  assert(accuracy > 0.95);
}

// A table with two kinds of columns: numbers, and categories that an embedding turns into numbers. Here the price of a
// flat by its size and age, and by its district.
#include <samebytes/samebytes.h>

#undef NDEBUG
#include <cassert>
#include <cstdio>
namespace sb = samebytes;

constexpr int kDistricts = 12;

class Price : public sb::nn::Module {
 public:
  sb::Array forward_all(std::span<const sb::Array> inputs) override {
    const sb::Array& numbers = inputs[0];    // [N, 2]
    const sb::Array& districts = inputs[1];  // [N]
    return sb::squeeze(head_(sb::relu(numbers_(numbers) + districts_(districts))), -1);
  }
  void visit(sb::nn::Visitor& v) override {
    v.child("numbers", numbers_);
    v.child("districts", districts_);
    v.child("head", head_);
  }
  std::string kind() const override { return "Price"; }

 private:
  sb::nn::Linear numbers_{{.in = 2, .out = 32}};
  sb::nn::Embedding districts_{{.in = kDistricts, .out = 32}};
  sb::nn::Linear head_{{.in = 32, .out = 1}};
};

// The sample is a function of its index, so any worker may make it. The price rises with size, falls with age, and each
// district has its own level.
sb::data::DatasetPtr flats(std::int64_t count, std::uint64_t seed) {
  return sb::data::generate(
      count, {{.name = "numbers", .shape = {2}}, {.name = "district", .dtype = sb::i32}, {.name = "price"}},
      [seed](std::int64_t index, std::span<const sb::data::Field> dst) {
        sb::Random random({.seed = seed, .index = index});
        const float size = random.uniform(), age = random.uniform();
        const int district = static_cast<int>(random.uniform() * kDistricts);
        dst[0].as<float>()[0] = size;
        dst[0].as<float>()[1] = age;
        dst[1].as<std::int32_t>()[0] = district;
        dst[2].as<float>()[0] = 2 * size - age + 0.5f * static_cast<float>(district % 4) + 0.05f * random.normal();
      });
}

int main() {
  sb::Engine engine({.seed = 1});
  Price net;
  sb::data::Loader training(engine, flats(4000, 1), {.batch = 50, .shuffle = true});
  sb::data::Loader validation(engine, flats(500, 2), {.batch = 100});
  std::printf("%s\n", sb::nn::summary(net, {{.shape = {100, 2}}, {.shape = {100}, .dtype = sb::i32}}).c_str());

  sb::train::Session session(
      engine, net,
      {.loss = [](const sb::Array& price, const auto& batch) { return sb::mse_loss(price, batch["price"]); },
       .forward = [](sb::nn::Module& model, const auto& batch) { return model(batch["numbers"], batch["district"]); }},
      training,
      {.validation = &validation, .callbacks = {.on_epoch = [](const sb::train::EpochReport& epoch) {
                                    std::printf("epoch %d  error %.4f\n", epoch.epoch, epoch.validation->loss);
                                  }}});
  const double error = session.fit(20).validation->loss;
  assert(error < 0.01);  // the noise alone is 0.0025
}

// A small U-Net learns to remove noise from images: half the size on the way down, a skip connection on the way up.
#include <samebytes/samebytes.h>

#undef NDEBUG
#include <cassert>
#include <cmath>
#include <cstdio>
namespace sb = samebytes;

sb::nn::Sequential block(std::int64_t in, std::int64_t out) {
  return {sb::nn::Conv2d({.in = in, .out = out, .kernel = 3, .pad = 1}),
          sb::nn::GroupNorm({.groups = 4, .features = out}), sb::nn::Silu(),
          sb::nn::Conv2d({.in = out, .out = out, .kernel = 3, .pad = 1}), sb::nn::Silu()};
}

class UNet : public sb::nn::Module {
 public:
  sb::Array forward(const sb::Array& x) override {  // [N, H, W, 1], H and W even
    const sb::Array fine = down_(x);
    const sb::Array coarse = up_(bottom_(pool_(fine)));
    return x - out_(join_(sb::concat({fine, coarse}, -1)));  // what is predicted is the noise
  }
  void visit(sb::nn::Visitor& v) override {
    v.child("down", down_);
    v.child("bottom", bottom_);
    v.child("join", join_);
    v.child("out", out_);
    v.child("pool", pool_);
    v.child("up", up_);
  }
  std::string kind() const override { return "UNet"; }

 private:
  sb::nn::Sequential down_ = block(1, 16), bottom_ = block(16, 32), join_ = block(48, 16);
  sb::nn::Conv2d out_{{.in = 16, .out = 1, .kernel = 1}};
  sb::nn::MaxPool2d pool_;
  sb::nn::Upsample up_{{.scale = 2}};
};

// A disc at a random place, clean, and with noise.
void draw(std::int64_t index, std::span<const sb::data::Field> dst) {
  sb::Random random({.seed = 3, .index = index});
  const float x = 4 + 16 * random.uniform(), y = 4 + 16 * random.uniform(), radius = 2 + 6 * random.uniform();
  const auto noisy = dst[0].as<float>(), clean = dst[1].as<float>();
  for (int i = 0; i < 24 * 24; ++i) {
    clean[i] = std::hypot(static_cast<float>(i / 24) - y, static_cast<float>(i % 24) - x) < radius ? 1.f : 0.f;
    noisy[i] = clean[i] + 0.5f * random.normal();
  }
}

int main() {
  sb::Engine engine({.seed = 1});
  UNet net;
  const auto images = sb::data::generate(
      2000, {{.name = "noisy", .shape = {24, 24, 1}}, {.name = "clean", .shape = {24, 24, 1}}}, draw);
  sb::data::Loader batches(engine, images, {.batch = 50, .shuffle = true});
  sb::optim::AdamW adam(net.parameters(), {.rate = 3e-3});

  sb::Mean error;
  for (int epoch = 1; epoch <= 3; ++epoch) {
    error.reset();
    for (const auto& [noisy, clean] : batches) {
      const sb::Array loss = sb::mse_loss(net(noisy), clean);
      adam.step(loss);
      error.add(loss);
    }
    std::printf("epoch %d  mean squared error %.4f, of the noise 0.25\n", epoch, error.value());
  }
  assert(error.value() < 0.02);
}

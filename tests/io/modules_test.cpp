// Parameters in files: PyTorch's names and order there, the same values back here, and nothing lost when something
// fails.
#include "samebytes/io/modules.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <random>

#include "samebytes/nn.h"
#include "samebytes/ops.h"
#include "support/devices.h"
#include "support/files.h"

namespace samebytes::io {
namespace {

using testing::OnDevice;
using testing::TemporaryFolder;

class ModuleFileTest : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(ModuleFileTest);

nn::Sequential small_net() {
  return nn::Sequential(nn::Conv2d({.in = 2, .out = 3, .kernel = 3, .pad = 1}), nn::BatchNorm2d({.features = 3}),
                        nn::Relu(), nn::Flatten(), nn::Linear({.in = 4 * 5 * 3, .out = 7}));
}

std::vector<std::vector<float>> values_of(const nn::Module& module) {
  std::vector<std::vector<float>> values;
  for (const nn::NamedArray& entry : module.state()) values.push_back(entry.array.to_vector<float>());
  return values;
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const IoError& error) {
    return error.what();
  }
  return "no IoError";
}

TEST_P(ModuleFileTest, a_network_comes_back_bit_for_bit) {
  const TemporaryFolder folder;
  const std::string path = folder / "net.safetensors";
  nn::Sequential net = small_net(), other = small_net();
  save(path, net);
  EXPECT_NE(values_of(net)[0], values_of(other)[0]);
  const LoadReport report = load(path, other);
  EXPECT_TRUE(report.missing.empty());
  EXPECT_TRUE(report.unexpected.empty());
  EXPECT_EQ(values_of(net), values_of(other));
  net.eval();
  other.eval();
  const Array x = uniform({2, 4, 5, 2});
  EXPECT_EQ(net(x).to_vector<float>(), other(x).to_vector<float>());
}

TEST_P(ModuleFileTest, the_file_has_the_names_shapes_and_order_of_pytorch) {
  const TemporaryFolder folder;
  const std::string path = folder / "net.safetensors";
  nn::Sequential net = small_net();
  for (const nn::NamedArray& entry : net.state())
    if (entry.name == "0.weight" || entry.name == "4.weight")
      assign(entry.array, reshape(arange(0, static_cast<double>(entry.array.size())), entry.array.shape()));
  save(path, net);
  const TensorFile file(path);
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}}));
  const std::vector<std::pair<const char*, Shape>> expected = {
      {"0.weight", {3, 2, 3, 3}}, {"0.bias", {3}},        {"1.weight", {3}},     {"1.bias", {3}},
      {"1.running_mean", {3}},    {"1.running_var", {3}}, {"4.weight", {7, 60}}, {"4.bias", {7}}};
  for (const auto& [name, shape] : expected) {
    const auto index = file.find(name);
    ASSERT_TRUE(index) << name;
    EXPECT_EQ(file.tensors()[*index].shape, shape) << name;
  }
  const HostArray conv = file.read(*file.find("0.weight")), linear = file.read(*file.find("4.weight"));
  // Ours [kh, kw, in, out] counts up; the file's [out, in, kh, kw] must hold the number of the same weight.
  for (int o = 0; o < 3; ++o)
    for (int i = 0; i < 2; ++i)
      for (int y = 0; y < 3; ++y)
        for (int x = 0; x < 3; ++x)
          EXPECT_EQ(conv.as<float>()[static_cast<std::size_t>(((o * 2 + i) * 3 + y) * 3 + x)],
                    static_cast<float>(((y * 3 + x) * 2 + i) * 3 + o));
  // Ours: column = position * 3 + channel; the file's: channel * 20 + position.
  for (int o = 0; o < 7; ++o)
    for (int c = 0; c < 3; ++c)
      for (int p = 0; p < 20; ++p)
        EXPECT_EQ(linear.as<float>()[static_cast<std::size_t>(o * 60 + c * 20 + p)],
                  static_cast<float>(o * 60 + p * 3 + c));
}

// What torch.nn.functional computes from the file's order, written out, equals our network after loading.
TEST_P(ModuleFileTest, a_file_of_pytorch_gives_the_same_network) {
  const TemporaryFolder folder;
  const std::string path = folder / "torch.safetensors";
  std::mt19937 rng(1);
  std::uniform_real_distribution<float> draw(-1, 1);
  const auto random = [&](std::size_t n) {
    std::vector<float> values(n);
    for (float& value : values) value = draw(rng);
    return values;
  };
  const std::vector<float> weight = random(4 * 2 * 1 * 1), bias = random(4), out_weight = random(5 * 4 * 6),
                           out_bias = random(5);
  const std::int64_t steps = 12;
  const auto bytes = [](const std::vector<float>& values) { return std::as_bytes(std::span(values)); };
  std::int32_t tracked = steps;
  const std::vector<TensorView> tensors{{"0.weight", f32, {4, 2, 1, 1}, bytes(weight)},
                                        {"0.bias", f32, {4}, bytes(bias)},
                                        {"9.num_batches_tracked", i32, {}, std::as_bytes(std::span(&tracked, 1))},
                                        {"2.weight", f32, {5, 24}, bytes(out_weight)},
                                        {"2.bias", f32, {5}, bytes(out_bias)}};
  save_tensors(path, tensors);
  nn::Sequential net(nn::Conv2d({.in = 2, .out = 4, .kernel = 1}), nn::Flatten(), nn::Linear({.in = 24, .out = 5}));
  load(path, net);

  const std::vector<float> image = random(2 * 6);  // [C, P] as PyTorch has it
  std::vector<float> ours(image.size()), hidden(24);
  for (std::size_t c = 0; c < 2; ++c)
    for (std::size_t p = 0; p < 6; ++p) ours[p * 2 + c] = image[c * 6 + p];
  for (std::size_t o = 0; o < 4; ++o)
    for (std::size_t p = 0; p < 6; ++p)
      hidden[o * 6 + p] = bias[o] + weight[o * 2] * image[p] + weight[o * 2 + 1] * image[6 + p];
  const std::vector<float> result = net(array(ours, {1, 2, 3, 2})).to_vector<float>();
  ASSERT_EQ(result.size(), 5u);
  for (std::size_t o = 0; o < 5; ++o) {
    double sum = out_bias[o];
    for (std::size_t i = 0; i < 24; ++i) sum += static_cast<double>(out_weight[o * 24 + i]) * hidden[i];
    EXPECT_NEAR(result[o], sum, 24 * 4 * 1.2e-7 * 24);  // 24 products below 4, each rounded
  }
}

TEST_P(ModuleFileTest, floating_dtypes_are_converted) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  nn::Linear linear({.in = 4, .out = 1, .bias = false});
  const std::uint16_t halves[] = {0x3c00, 0xc100, 0x0001, 0x7bff};  // 1, -2.5, 2^-24, 65504
  save_tensors(path, std::vector<TensorView>{{"weight", f16, {1, 4}, std::as_bytes(std::span(halves))}});
  load(path, linear);
  EXPECT_EQ(linear.weight().to_vector<float>(), (std::vector<float>{1, -2.5f, 0x1p-24f, 65504}));
  const std::uint16_t brains[] = {0x3f80, 0xc020, 0x0000, 0x4780};  // 1, -2.5, 0, 65536
  save_tensors(path, std::vector<TensorView>{{"weight", bf16, {1, 4}, std::as_bytes(std::span(brains))}});
  load(path, linear);
  EXPECT_EQ(linear.weight().to_vector<float>(), (std::vector<float>{1, -2.5f, 0, 65536}));
}

TEST_P(ModuleFileTest, a_wrong_file_changes_nothing_and_is_named) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  nn::Sequential net = small_net();
  save(path, net);
  const auto before = values_of(net);

  nn::Sequential longer(nn::Conv2d({.in = 2, .out = 3, .kernel = 3, .pad = 1}), nn::Linear({.in = 3, .out = 2}));
  EXPECT_EQ(message_of([&] { load(path, longer); }),
            "load: " + path + ": expected no tensors but the module's, found '1.running_mean'");
  nn::Sequential wider(nn::Conv2d({.in = 2, .out = 4, .kernel = 3, .pad = 1}));
  EXPECT_EQ(message_of([&] { load(path, wider, {.skip = {"^[14]\\."}}); }),
            "load: " + path + ": expected '0.weight' as f32 [4, 2, 3, 3], found f32 [3, 2, 3, 3]");
  nn::Sequential named(nn::Relu(), nn::Relu(), nn::Conv2d({.in = 2, .out = 3, .kernel = 3}));
  EXPECT_NE(message_of([&] { load(path, named); }).find("expected a tensor"), std::string::npos);
  nn::Sequential partial(nn::Conv2d({.in = 2, .out = 3, .kernel = 3, .pad = 1}), nn::Relu(),
                         nn::Linear({.in = 3, .out = 2}));
  const LoadReport report = load(path, partial, {.strict = false});
  EXPECT_EQ(report.missing, (std::vector<std::string>{"2.weight", "2.bias"}));
  EXPECT_EQ(report.unexpected.size(), 6u);
  EXPECT_EQ(partial.state()[0].array.to_vector<float>(), before[0]);

  const std::string whole = testing::get(path);
  testing::put(path, whole.substr(0, whole.size() - 10));
  EXPECT_NE(message_of([&] { load(path, net); }).find("at byte " + std::to_string(whole.size() - 10)),
            std::string::npos);
  EXPECT_NE(message_of([&] { load(folder / "absent", net); }).find("No such file"), std::string::npos);
  EXPECT_EQ(values_of(net), before);
}

TEST_P(ModuleFileTest, names_are_cut_renamed_and_skipped_and_what_does_not_fit_is_reported) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  const std::vector<float> ones(12, 1.0f), twos(12, 2.0f);
  const auto bytes = [](const std::vector<float>& v, std::size_t n) { return std::as_bytes(std::span(v).first(n)); };
  save_tensors(path, std::vector<TensorView>{{"model.layers.0.w", f32, {3, 4}, bytes(ones, 12)},
                                             {"model.layers.0.b", f32, {3}, bytes(ones, 3)},
                                             {"model.layers.2.w", f32, {6, 2}, bytes(twos, 12)},
                                             {"model.extra", f32, {2}, bytes(twos, 2)},
                                             {"model.optimizer.step", f32, {1}, bytes(twos, 1)},
                                             {"head.w", f32, {1}, bytes(twos, 1)}});
  nn::Sequential net(nn::Linear({.in = 4, .out = 3}), nn::Relu(), nn::Linear({.in = 3, .out = 2}));
  const LoadOptions options{.strict = false,
                            .prefix = "model.",
                            .rename = {{"^layers\\.(\\d+)\\.w$", "$1.weight"}, {"^layers\\.(\\d+)\\.b$", "$1.bias"}},
                            .skip = {"optimizer"}};
  const auto before = net.state()[2].array.to_vector<float>();
  const LoadReport report = load(path, net, options);
  EXPECT_EQ(net.state()[0].array.to_vector<float>(), ones);
  EXPECT_EQ(net.state()[2].array.to_vector<float>(), before);
  EXPECT_FALSE(report.is_complete());
  EXPECT_EQ(report.to_string(),
            "2 loaded, 1 missing, 1 unexpected, 1 mismatched, 2 skipped\n"
            "  2.bias    missing: not in the file, keeps its values\n"
            "  extra     unexpected: not in the module, ignored\n"
            "  2.weight  mismatched: the module has f32 [2, 3], the file f32 [6, 2]\n");
  EXPECT_THROW(load(path, net, {.rename = {{"(", ""}}}), ArgumentError);
  EXPECT_THROW(load(path, net, {.rename = {{".*", "a"}}}), ArgumentError);
}

// The standard library's regular expressions call themselves once for a character.
TEST_P(ModuleFileTest, patterns_meet_a_name_of_a_million_characters) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors", name(1'000'000, 'a');
  nn::Sequential net(nn::Linear({.in = 2, .out = 1}));
  const std::vector<float> ones(2, 1.0f);
  save_tensors(path, std::vector<TensorView>{{"0.weight", f32, {1, 2}, std::as_bytes(std::span(ones))},
                                             {name, f32, {2}, std::as_bytes(std::span(ones))}});
  EXPECT_EQ(load(path, net, {.strict = false}).unexpected, std::vector<std::string>{name});
  for (const LoadOptions& options :
       {LoadOptions{.strict = false, .skip = {"(a|b)*c"}}, LoadOptions{.strict = false, .rename = {{".*c", "c"}}}}) {
    const std::string message = message_of([&] { load(path, net, options); });
    EXPECT_NE(message.find("found 1000000 bytes that begin 'aaaa"), std::string::npos) << message.substr(0, 300);
    EXPECT_LT(message.size(), 500u);
  }
}

TEST_P(ModuleFileTest, published_transformers_load_with_their_prefix_and_a_tied_head) {
  class Tiny final : public nn::Module {
   public:
    Array forward(const Array& x) override { return x; }
    void visit(nn::Visitor& v) override {
      v.parameter("wte.weight", table_);
      v.parameter("ln_f.weight", norm_);
    }

   private:
    nn::Parameter table_{cell(zeros({3, 2}), "wte")}, norm_{cell(zeros({2}), "ln_f")};
  } net;
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  const std::vector<float> table{1, 2, 3, 4, 5, 6}, norm{7, 8};
  const auto tensor = [](const char* name, const Shape& shape, const std::vector<float>& values) {
    return TensorView{name, f32, shape, std::as_bytes(std::span(values))};
  };
  // With both names of the tied weight, and with the head's alone.
  for (const bool has_both : {true, false}) {
    std::vector<TensorView> tensors{tensor("transformer.ln_f.weight", {2}, norm),
                                    tensor("lm_head.weight", {3, 2}, table)};
    if (has_both) tensors.push_back(tensor("transformer.wte.weight", {3, 2}, table));
    save_tensors(path, tensors);
    assign(net.state()[0].array, zeros({3, 2}));
    EXPECT_TRUE(load(path, net).is_complete());
    EXPECT_EQ(net.state()[0].array.to_vector<float>(), table);
    EXPECT_EQ(net.state()[1].array.to_vector<float>(), norm);
  }
}

TEST_P(ModuleFileTest, an_unwritable_path_leaves_the_old_file_and_the_network) {
  const TemporaryFolder folder;
  const std::string path = folder / "x.safetensors";
  nn::Sequential net = small_net();
  save(path, net);
  const std::string whole = testing::get(path);
  EXPECT_THROW(save("/proc/samebytes.safetensors", net), IoError);
  EXPECT_THROW(save(folder / "no/such/folder/x.safetensors", net), IoError);
  EXPECT_THROW(save("/dev/full", net), IoError);
  EXPECT_EQ(testing::get(path), whole);
  EXPECT_EQ(folder.count(), 1u);
}

}  // namespace
}  // namespace samebytes::io

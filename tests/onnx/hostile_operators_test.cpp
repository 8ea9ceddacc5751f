// Nodes made to harm the operator that runs them: sizes, attributes and values that overflow, name memory outside, or
// ask for more than there is. Each ends at once, in an error of ours that names the node, or in a right result. Sizes
// such as [2^50, 0] cost a file a few bytes, since such a tensor has no values.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <variant>

#include "onnx/maker.h"
#include "samebytes/engine.h"
#include "samebytes/onnx.h"
#include "samebytes/text/tokenizer.h"
#include "support/gguf.h"

namespace samebytes::onnx {
namespace {

using Sizes = std::vector<std::int64_t>;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(),
                       kLeast = std::numeric_limits<std::int64_t>::min(), kMillion = std::int64_t{1} << 20,
                       kWide = std::int64_t{1} << 32, kHuge = std::int64_t{1} << 50;
constexpr int kF32 = 1, kU8 = 2, kI32 = 6, kI64 = 7;
constexpr const char* kNone = "no error";  // what message_of() says then

struct Given {
  int type = 0;  // 0: left out
  Sizes sizes, values;
  char byte = 0;  // of all bytes, where there are no values
  Sizes wide;     // what one number is expanded to, without memory
};
Given left_out() { return {}; }
Given f32(const Sizes& sizes, char byte = 0) { return {kF32, sizes, {}, byte, {}}; }
Given wide(const Sizes& sizes) { return {kF32, {1}, {}, 0, sizes}; }
Given u8(const Sizes& sizes) { return {kU8, sizes, {}, 0, {}}; }
Given i32(const Sizes& sizes) { return {kI32, sizes, {}, 0, {}}; }
Given i64(const Sizes& sizes, const Sizes& values = {}) { return {kI64, sizes, values, 0, {}}; }
Given list(const Sizes& values) { return i64({std::ssize(values)}, values); }
Given number(std::int64_t value) { return i64({}, {value}); }

struct Attribute {
  const char* name;
  std::variant<std::int64_t, Sizes, std::string> value;
};

struct Hostile {
  const char* what;
  const char* op;
  std::vector<Given> in;
  std::vector<Attribute> attributes;
  std::string says;  // a part of the error
};

void add(Maker& maker, const std::string& name, const Given& given) {
  auto& tensor = *maker.model.mutable_graph()->add_initializer();
  tensor.set_name(given.wide.empty() ? name : name + " one");
  tensor.set_data_type(given.type);
  for (const std::int64_t size : given.sizes) tensor.add_dims(size);
  for (const std::int64_t value : given.values) tensor.add_int64_data(value);
  if (given.values.empty()) {
    std::int64_t n = given.type == kI64 ? 8 : given.type == kU8 ? 1 : 4;
    if (std::count(given.sizes.begin(), given.sizes.end(), 0) > 0) n = 0;
    for (const std::int64_t size : given.sizes) n = n == 0 ? 0 : n * size;
    tensor.set_raw_data(std::string(static_cast<std::size_t>(n), given.byte));
  }
  if (given.wide.empty()) return;
  maker.ints(name + " sizes", given.wide);
  maker.node("Expand", {name + " one", name + " sizes"}, name);
}

std::vector<Hostile> quantised() {
  const Given x = u8({1, 1, 3}), w = u8({1, 1, 1}), one = u8({}), scale = f32({});
  return {
      {"a type that is uint8 in 8 bits",
       "QuantizeLinear",
       {f32({2}), f32({})},
       {{"output_dtype", 258}},
       "output_dtype is 258"},
      {"a type of 4 bits", "QuantizeLinear", {f32({2}), f32({})}, {{"output_dtype", 21}}, "output_dtype is 21"},
      {"a type that is no integer", "QuantizeLinear", {f32({2}), f32({})}, {{"output_dtype", 1}}, "8 or 16 bits"},
      {"blocks of 2^63",
       "QuantizeLinear",
       {f32({2, 3}), f32({2, 2})},
       {{"axis", 1}, {"block_size", kMost}},
       "the scale has another shape"},
      {"zeros by a scale of 0", "QuantizeLinear", {f32({2}), f32({})}, {}, kNone},
      {"values that are NaN", "DynamicQuantizeLinear", {f32({2}, '\xff')}, {}, kNone},
      {"differences of 64 bits", "DequantizeLinear", {i64({1}, {kLeast}), f32({}), number(1)}, {}, "at most 32 bits"},
      {"a product with a scalar", "MatMulInteger", {one, u8({1, 1}), one}, {}, "a scalar"},
      {"a zero point without a value", "MatMulInteger", {u8({1, 1}), u8({1, 1}), u8({0})}, {}, "has no value"},
      {"a product of 2^40 sums of nothing", "MatMulInteger", {u8({kMillion, 0}), u8({0, kMillion})}, {}, "too large"},
      {"a product in a batch of 2^50 that has no rows",
       "MatMulInteger",
       {u8({kHuge, 0, 1}), u8({1, 1})},
       {},
       "too large"},
      {"products of 64 bits", "MatMulInteger", {i64({1, 1}, {kLeast}), i64({1, 1}, {-1})}, {}, "at most 16 bits"},
      {"a product by a scale of 0",
       "QLinearMatMul",
       {u8({1, 1}), scale, one, u8({1, 1}), scale, one, scale, one},
       {},
       kNone},
      {"groups of 2^63", "ConvInteger", {x, w}, {{"group", kMost}}, "do not fit"},
      {"pads of 2^63", "ConvInteger", {x, w}, {{"pads", Sizes{kMost, kMost}}}, "a pad of"},
      {"pads that leave more than memory", "ConvInteger", {x, w}, {{"pads", Sizes{1 << 30, 1 << 30}}}, "too large"},
      {"strides of 2^63", "ConvInteger", {x, w}, {{"strides", Sizes{kMost}}}, "a window"},
      {"dilations of 2^63", "ConvInteger", {x, w}, {{"dilations", Sizes{kMost}}}, "a window"},
      {"a kernel that is not the filter's", "ConvInteger", {x, w}, {{"kernel_shape", Sizes{2}}}, "do not fit"},
      {"zero points that are too few",
       "ConvInteger",
       {x, u8({3, 1, 1}), left_out(), u8({2})},
       {},
       "one for each filter"},
      {"a bias of 64 bits",
       "QLinearConv",
       {x, scale, one, w, scale, one, scale, one, i64({1}, {kMost})},
       {},
       "at most 32 bits"},
  };
}

std::vector<Hostile> placed() {
  return {
      {"updates of 2^64", "ScatterND", {wide({2, kHuge}), i64({16384, 1}), f32({1})}, {}, "too large"},
      {"more places than 32 bits count",
       "ScatterElements",
       {wide({kWide, 1}), i64({1, 1}, {kWide - 1}), f32({1, 1})},
       {},
       "32 bits can count"},
      {"hot ones of nothing", "OneHot", {i64({kHuge, 0}), number(kMillion), f32({2})}, {}, "too large"},
      {"a type that is none", "EyeLike", {f32({2, 2})}, {{"dtype", 200}}, "dtype is 200"},
      {"a unit matrix of 2^40", "EyeLike", {wide({kMillion, kMillion})}, {}, "too large"},
      {"a unit matrix without columns", "EyeLike", {f32({kHuge, 0})}, {}, "too large"},
      {"the least size", "CenterCropPad", {f32({2}), list({kLeast})}, {}, "a size is"},
      {"sizes that multiply beyond 2^63", "CenterCropPad", {f32({1, 1}), list({kHuge, kHuge})}, {}, "too large"},
      {"rows without values", "Unique", {f32({kHuge, 0})}, {{"axis", 0}}, "rows are empty"},
      {"a start beyond the pool",
       "TfIdfVectorizer",
       {list({0, 0})},
       {{"pool_int64s", Sizes{1}}, {"ngram_counts", Sizes{kMost}}, {"ngram_indexes", Sizes{0}}},
       "outside of the pool"},
      {"starts that descend",
       "TfIdfVectorizer",
       {list({0, 0})},
       {{"pool_int64s", Sizes{1}}, {"ngram_counts", Sizes{1, 0}}, {"ngram_indexes", Sizes{0}}},
       "outside of the pool"},
      {"the last column",
       "TfIdfVectorizer",
       {list({0, 0})},
       {{"pool_int64s", Sizes{1}}, {"ngram_counts", Sizes{0}}, {"ngram_indexes", Sizes{kMost}}},
       "ngram_indexes go up to"},
      {"a column below all",
       "TfIdfVectorizer",
       {list({0, 0})},
       {{"ngram_counts", Sizes{0}}, {"ngram_indexes", Sizes{-1}}},
       "ngram_indexes go up to"},
      {"runs of words without end",
       "TfIdfVectorizer",
       {list({0, 0})},
       {{"pool_int64s", Sizes{0}},
        {"ngram_counts", Sizes{0}},
        {"ngram_indexes", Sizes{0}},
        {"max_gram_length", kMost},
        {"max_skip_count", kMost}},
       kNone},
  };
}

std::vector<Hostile> sequences() {
  const Given one = f32({1, 1, 1});
  const std::vector<Attribute> heads{{"q_num_heads", 1}, {"kv_num_heads", 1}};
  return {
      {"lengths of another batch", "RNN", {f32({2, 3, 1}), one, one, left_out(), i32({2})}, {}, "lengths of sequences"},
      {"steps of no sample", "RNN", {f32({kHuge, 0, 4}), f32({1, 1, 4}), one}, {}, "not empty"},
      {"steps without end", "RNN", {wide({kHuge, 1, 1}), one, one}, {}, "1 to 1000000 steps"},
      {"a scalar for each step", "LinearAttention", {one, one, one, left_out(), one, f32({})}, heads, "input 5"},
      {"attention in no sample",
       "LinearAttention",
       {f32({0, kHuge, 1}), one, one, left_out(), one, one},
       heads,
       "is empty"},
      {"attention without end",
       "LinearAttention",
       {wide({1, kHuge, 1}), one, one, left_out(), one, one},
       heads,
       "at most 1000000"},
      {"a window of 2^50", "HannWindow", {number(kHuge)}, {}, "too large"},
      {"a window of a type that is none",
       "HammingWindow",
       {number(4)},
       {{"output_datatype", 200}},
       "output_datatype is 200"},
      {"bands beyond memory",
       "MelWeightMatrix",
       {number(kMillion), number(kMillion), number(16000), f32({}), f32({})},
       {},
       "too large"},
      {"frames beyond memory",
       "STFT",
       {wide({1, kMillion, 1}), number(1), left_out(), number(kMillion / 2)},
       {},
       "too large"},
      {"a transform of 2^50", "DFT", {f32({1, 2, 1}), number(kHuge)}, {}, "too large"},
  };
}

std::vector<Hostile> images() {
  const Given line = f32({1, 1, 4}), none = left_out(), pixel = f32({1, 1, 1, 1});
  return {
      {"an axis of 10^9", "Resize", {line, none, none, list({1, 1, 999999999})}, {{"mode", "linear"}}, "too large"},
      {"a region that is NaN",
       "Resize",
       {line, f32({6}, '\xff'), none, list({1, 1, 2})},
       {{"mode", "linear"}, {"coordinate_transformation_mode", "tf_crop_and_resize"}},
       "no finite number"},
      {"a filter as wide as an axis of 2^30",
       "Resize",
       {wide({1, 1, 1 << 30}), none, none, list({1, 1, 1})},
       {{"mode", "linear"}, {"antialias", 1}},
       "too large"},
      {"an axis of 2^50", "Resize", {wide({1, 1, kHuge}), none, none, list({1, 1, 1})}, {}, "32 bits can count"},
      {"a ratio of no axis",
       "Resize",
       {f32({}), none, none, i64({0})},
       {{"keep_aspect_ratio_policy", "not_larger"}},
       kNone},
      {"a sum for each of 2^20 channels", "LRN", {wide({1, kMillion, 1})}, {{"size", kMillion}}, "size is outside"},
      {"a mean of integers",
       "BatchNormalization",
       {f32({1, 1, 2}), f32({1}), f32({1}), i64({1}), f32({1})},
       {},
       "input 3 is int64"},
      {"places that multiply beyond 2^63",
       "MaxUnpool",
       {f32({0, 1, kHuge}), i64({0, 1, kHuge})},
       {{"kernel_shape", Sizes{1 << 30}}, {"strides", Sizes{1 << 30}}},
       "too large"},
      {"more places than 32 bits count",
       "MaxUnpool",
       {pixel, i64({1, 1, 1, 1})},
       {{"kernel_shape", Sizes{65536, 65536}}},
       "i32 can count"},
      {"a grid of 2^60", "AffineGrid", {f32({1, 2, 3}), list({1, 1, 1 << 30, 1 << 30})}, {}, "too large"},
      {"a height that is 1 in 32 bits",
       "RoiAlign",
       {pixel, f32({1, 4}), i64({1})},
       {{"output_height", kWide + 1}},
       "output_height is"},
      {"samples beyond all", "RoiAlign", {pixel, f32({1, 4}), i64({1})}, {{"sampling_ratio", kMost}}, "sampling_ratio"},
      {"2^30 bins",
       "RoiAlign",
       {pixel, f32({1, 4}), i64({1})},
       {{"output_height", 1 << 15}, {"output_width", 1 << 15}},
       "too large"},
      {"an image of 2^50", "Col2Im", {f32({1, 1, 1}), list({kHuge}), list({1})}, {}, "image_shape has"},
      {"strides that are 0 in 32 bits",
       "Col2Im",
       {f32({1, 1, 1}), list({1}), list({1})},
       {{"strides", Sizes{kWide}}},
       "strides has"},
      {"windows that multiply beyond 2^63",
       "Col2Im",
       {f32({1, 1, 1}), list({1 << 26, 1 << 26, 1 << 26}), list({1, 1, 1})},
       {},
       "too large"},
  };
}

std::vector<Hostile> shapes() {
  return {
      {"a sum of nothing for each of 2^50", "ReduceSum", {i64({0, kHuge}), list({0})}, {}, "too large"},
      {"running sums of nothing", "CumSum", {i64({0, kHuge}), number(1)}, {}, "too large"},
      {"the largest of nothing", "TopK", {i64({0, kHuge}), list({5})}, {}, "too large"},
      {"the largest of a little less", "TopK", {i64({0, kMillion}), list({5})}, {}, kNone},
      {"parts of nothing", "Concat", {i64({kHuge, 0}), i64({kHuge, 0})}, {{"axis", 0}}, "too large"},
      {"rows of nothing", "Concat", {i64({kMillion, 0}), i64({kMillion, 0})}, {{"axis", 1}}, kNone},
      {"2^50 times a number", "Expand", {number(1), list({kHuge})}, {}, "too large"},
      {"2^100 times a number", "Tile", {i64({1, 1}), list({kHuge, kHuge})}, {}, "too large"},
      {"a block whose square is 0", "DepthToSpace", {f32({1, 4, 1, 1})}, {{"blocksize", kWide}}, "a block size"},
      {"a block beyond all", "SpaceToDepth", {f32({1, 4, 0, 0})}, {{"blocksize", kMost}}, "a block size"},
      {"classes of floats", "Multinomial", {f32({1, 2})}, {{"dtype", 1}}, "int32 or int64"},
      {"a type that is float in 8 bits", "RandomNormal", {}, {{"dtype", 257}, {"shape", Sizes{2}}}, "dtype is 257"},
  };
}

class OnnxHostileOperators : public ::testing::Test {
 protected:
  // What loading and running says, which takes no time.
  static std::string outcome(const Hostile& one) {
    Maker maker(24);
    std::vector<std::string> names;
    for (std::size_t i = 0; i < one.in.size(); ++i) {
      names.push_back(one.in[i].type == 0 ? "" : "x" + std::to_string(i));
      if (one.in[i].type != 0) add(maker, names.back(), one.in[i]);
    }
    auto& node = maker.node(one.op, names, "y");
    for (const Attribute& attribute : one.attributes)
      std::visit([&](const auto& value) { Maker::set(node, attribute.name, value); }, attribute.value);
    maker.output("y");
    return outcome_of(maker, one.what);
  }
  static void expect(const std::vector<Hostile>& all) {
    for (const Hostile& one : all) {
      const std::string text = outcome(one), node = "'the " + std::string(one.op) + "'";
      EXPECT_NE(text.find(one.says), std::string::npos) << one.what << ": '" << one.says << "' is not in: " << text;
      EXPECT_TRUE(one.says == kNone || text.find(node) != std::string::npos)
          << one.what << ": " << node << " is not in: " << text;
    }
  }
  const Engine engine_;
};

TEST_F(OnnxHostileOperators, of_quantised_values_end_in_an_error) { expect(quantised()); }
TEST_F(OnnxHostileOperators, of_places_end_in_an_error) { expect(placed()); }
TEST_F(OnnxHostileOperators, of_sequences_end_in_an_error) { expect(sequences()); }
TEST_F(OnnxHostileOperators, of_images_end_in_an_error) { expect(images()); }
TEST_F(OnnxHostileOperators, of_shapes_end_in_an_error) { expect(shapes()); }

// A file of another kind, whose lists are numbers of any type.
TEST(HostileTokens, of_a_gguf_file_have_types_that_are_small_numbers) {
  using testing::gguf::pair;
  const TemporaryFolder folder;
  const std::string path = folder / "x.gguf";
  for (const float type : {std::numeric_limits<float>::quiet_NaN(), 1e30F, -1.0F}) {
    testing::put(path, testing::gguf::file_of({pair("tokenizer.ggml.model", "gpt2"),
                                               pair("tokenizer.ggml.tokens", std::vector<std::string>{"a"}),
                                               pair("tokenizer.ggml.token_type", std::vector<float>{type})}));
    const std::string says = message_of([&] { text::Tokenizer::load(path); });
    EXPECT_NE(says.find("types of 0 to 255"), std::string::npos) << says;
  }
}

}  // namespace
}  // namespace samebytes::onnx

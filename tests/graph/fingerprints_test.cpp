// Plans are found by the structure of a graph. An attribute that an op leaves out of its hash would make the second of
// two graphs replay the plan of the first, with the first one's attribute: wrong numbers, and nobody is told.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "graph/node.h"
#include "graph/op.h"
#include "ops/cells.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/gradcheck.h"

namespace samebytes::testing {
namespace {

using detail::Node;

class Fingerprints : public OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(Fingerprints);

// Of the ops between the leaves and the array, in the order of creation; of the reverse pass alone where that is asked.
std::vector<std::uint64_t> fingerprints(const Array& a, bool of_gradient) {
  std::vector<const Node*> nodes, stack{a.node().get()};
  while (!stack.empty()) {
    const Node* const node = stack.back();
    stack.pop_back();
    if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) continue;
    nodes.push_back(node);
    for (const detail::Edge& edge : node->inputs) stack.push_back(edge.node.get());
  }
  std::sort(nodes.begin(), nodes.end(), [](const Node* x, const Node* y) { return x->id < y->id; });
  std::vector<std::uint64_t> result;
  for (const Node* node : nodes)
    if (node->op && (!of_gradient || node->is_gradient)) result.push_back(node->op->fingerprint());
  return result;
}

using Make = std::function<Array()>;
struct Family {
  std::string name;
  std::vector<Make> variants;  // each differs from the others in one attribute, or a few
};

Array numbers(const Shape& shape) { return real_array(random_values(shape.size(), 1, 0.1, 1), shape, f32); }
Array places(const Shape& shape) { return zeros(shape, i32); }

void expect_all_differ(const Family& family, bool of_gradient, const std::function<Array(const Array&)>& of) {
  std::vector<std::vector<std::uint64_t>> all;
  for (const Make& make : family.variants) all.push_back(fingerprints(of(make()), of_gradient));
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_FALSE(all[i].empty()) << family.name;
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(all[i], all[j]) << family.name << ": variants " << j << " and " << i;
  }
}

TEST_P(Fingerprints, every_attribute_of_an_op_counts_forward) {
  const Array square = numbers({4, 4}), cube = numbers({2, 4, 4}), image = numbers({2, 6, 6, 4});
  const Array filter = numbers({3, 3, 4, 4}), four = numbers({4}), q = numbers({1, 4, 2, 4});
  const Array even = numbers({3, 3, 2, 4});
  const Array row = places({4}), labels = places({4});
  const auto conv = [&](const Conv2dOptions& options) {
    return [&, options] { return conv2d(image, options.groups == 2 ? even : filter, {}, options); };
  };
  const auto pooled = [&](bool is_max, const Pool2dOptions& options) {
    return [&, is_max, options] { return is_max ? max_pool2d(image, options) : avg_pool2d(image, options); };
  };
  const auto entropy = [&](const CrossEntropyOptions& options) {
    return [&, options] { return cross_entropy(square, labels, options); };
  };
  const auto resized = [&](const ResizeOptions& options) { return [&, options] { return resize(image, options); }; };
  const auto attended = [&](const AttentionOptions& options) {
    return [&, options] { return scaled_dot_product_attention(q, q, q, options); };
  };
  const auto rotated = [&](const RotaryOptions& options) { return [&, options] { return rotary(q, options); }; };
  const auto custom = [&](const std::string& name, const std::string& source, int elements) {
    return [&, name, source, elements] {
      const Array inputs[] = {four};
      return custom_op({.name = name, .entry = "e", .source = source, .elements_per_item = elements}, inputs, {4});
    };
  };
  const auto normed = [&](const BatchNormOptions& options) {
    return [&, options] {
      const Array mean = cell(zeros({4}), "mean"), var = cell(ones({4}), "var");
      return batch_norm_train(image, four, four, mean, var, options);
    };
  };
  const RecurrentWeights lstm_weights{numbers({16, 4}), numbers({16, 4})},
      gru_weights{numbers({12, 4}), numbers({12, 4})};
  const auto joint = [&](const LinearCrossEntropyOptions& options) {
    return [&, options] { return linear_cross_entropy(square, square, labels, options); };
  };
  const std::vector<Family> families{
      {"conv2d",
       {conv({}), conv({.stride_h = 2}), conv({.stride_w = 2}), conv({.pad_h = 1}), conv({.pad_w = 1}),
        conv({.dilation_h = 2}), conv({.dilation_w = 2}), conv({.groups = 2})}},
      {"pool2d",
       {pooled(true, {}), pooled(true, {.kernel_h = 3}), pooled(true, {.kernel_w = 3}), pooled(true, {.stride_h = 1}),
        pooled(true, {.pad_w = 1}), pooled(false, {.pad_h = 1}),
        pooled(false, {.pad_h = 1, .count_include_pad = false})}},
      {"reduce",
       {[&] { return sum(square, {0}); }, [&] { return sum(square, {1}); }, [&] { return mean(square, {0}); },
        [&] { return max(square, {0}); }, [&] { return min(square, {0}); }, [&] { return argmax(square, 0); },
        [&] { return argmax(square, 1); }}},
      {"softmax", {[&] { return softmax(square); }, [&] { return log_softmax(square); }}},
      {"scan",
       {[&] { return cumsum(square, 0); }, [&] { return cumsum(square, 1); }, [&] { return cumprod(square, 0); },
        [&] { return cumprod(square, 1); }}},
      {"argsort", {[&] { return argsort(square); }, [&] { return argsort(square, -1, true); }}},
      {"take", {[&] { return take(square, row, 0); }, [&] { return take(square, row, 1); }}},
      {"gather",
       {[&] {
          return gather(square, 0, places({4, 4}));
        },
        [&] {
          return gather(square, 1, places({4, 4}));
        }}},
      {"scatter_add",
       {[&] {
          return scatter_add(square, 0, places({4, 4}), square);
        },
        [&] {
          return scatter_add(square, 1, places({4, 4}), square);
        }}},
      {"embedding",
       {[&] { return embedding(row, square); }, [&] { return embedding(row, square, 1); },
        [&] { return embedding(row, square, 2); }}},
      {"concat",
       {[&] {
          return concat({cube, cube}, 1);
        },
        [&] {
          return concat({cube, cube}, 2);
        }}},
      {"pad",
       {[&] {
          return pad(square, {{1, 1}, {0, 0}}, PadMode::reflect);
        },
        [&] {
          return pad(square, {{1, 1}, {0, 0}}, PadMode::replicate);
        },
        [&] {
          return pad(square, {{1, 1}, {0, 0}}, PadMode::circular);
        },
        [&] {
          return pad(square, {{2, 0}, {0, 0}}, PadMode::circular);
        },
        [&] {
          return pad(square, {{1, 1}, {0, 0}});
        },
        [&] {
          return pad(square, {{2, 0}, {0, 0}});
        }}},
      {"resize",
       {resized({.out_h = 9, .out_w = 9}), resized({.out_h = 9, .out_w = 9, .mode = ResizeMode::bilinear}),
        resized({.out_h = 9, .out_w = 9, .mode = ResizeMode::bilinear, .align_corners = true}),
        resized({.scale_h = 1.5, .scale_w = 1.6, .mode = ResizeMode::bilinear}),
        resized({.scale_h = 1.6, .scale_w = 1.5, .mode = ResizeMode::bilinear})}},
      {"layer_norm",
       {[&] { return layer_norm(square); }, [&] { return layer_norm(square, {}, {}, 1e-3f); },
        [&] { return layer_norm(square, four); }, [&] { return layer_norm(square, {}, four); }}},
      {"rms_norm",
       {[&] { return rms_norm(square); }, [&] { return rms_norm(square, {}, 1e-3f); },
        [&] { return rms_norm(square, four); }}},
      {"group_norm",
       {[&] { return group_norm(image, 1); }, [&] { return group_norm(image, 2); },
        [&] { return group_norm(image, 2, {}, {}, 1e-3f); }, [&] { return group_norm(image, 2, four); }}},
      {"batch_norm", {normed({}), normed({.eps = 1e-3f}), normed({.momentum = 0.2f})}},
      {"attention",
       {attended({}), attended({.causal = true}), attended({.scale = 0.3}), attended({.lengths = places({1})})}},
      {"packed_attention",
       {[&] {
          return packed_attention(numbers({1, 4, 6, 4}), 2);
        },
        [&] {
          return packed_attention(numbers({1, 4, 6, 4}), 4);
        }}},
      {"rotary", {rotated({}), rotated({.interleaved = true}), rotated({.base = 500}), rotated({.heads = 1})}},
      {"cross_entropy",
       {entropy({}), entropy({.label_smoothing = 0.1f}), entropy({.ignore_index = 1}), entropy({.ignore_index = 2}),
        entropy({.class_weight = four}), entropy({.reduction = Reduction::sum}),
        entropy({.reduction = Reduction::none})}},
      {"linear_cross_entropy",
       {joint({}), joint({.bias = four}), joint({.label_smoothing = 0.1f}), joint({.ignore_index = 1}),
        joint({.reduction = Reduction::sum}), joint({.chunks = 2})}},
      {"recurrent",
       {[&] { return lstm(cube, lstm_weights).y; }, [&] { return lstm(cube, lstm_weights, {.reverse = true}).y; },
        [&] { return lstm(cube, lstm_weights, {.lengths = places({2})}).y; }, [&] { return gru(cube, gru_weights).y; },
        [&] { return gru(cube, gru_weights, {.reverse = true}).y; }}},
      {"update_slice",
       {[&] {
          return update_slice(cell(zeros({4, 4}), "c"), numbers({4, 4}), 0, 0);
        },
        [&] {
          return update_slice(cell(zeros({4, 4}), "c"), numbers({4, 4}), 1, 0);
        }}},
      {"pack",
       {[&] {
          return pack(std::vector<Array>{four, four}, std::vector<std::int64_t>{0, 8}, 16);
        },
        [&] {
          return pack(std::vector<Array>{four, four}, std::vector<std::int64_t>{0, 4}, 16);
        },
        [&] {
          return detail::pack_to_release(std::vector<Array>{four, four}, std::vector<std::int64_t>{0, 8}, 16);
        }}},
      {"uniform",
       {[&] { return uniform({4}, 0, 1, f16); }, [&] { return uniform({4}, 0, 1, bf16); },
        [&] { return uniform({4}); }}},
      {"pointwise",
       {[&] { return four + four; }, [&] { return four * four; }, [&] { return four + 1.0; },
        [&] { return four * 1.0; }}},
      {"custom_op", {custom("a", "x", 1), custom("b", "x", 1), custom("a", "y", 1), custom("a", "x", 2)}},
  };
  for (const Family& family : families) expect_all_differ(family, false, [](const Array& a) { return a; });
}

TEST_P(Fingerprints, every_attribute_of_an_op_counts_backward) {
  const Array square = numbers({4, 4}), image = numbers({2, 6, 6, 4}), q = numbers({1, 4, 2, 4});
  const Array filter = numbers({3, 3, 4, 4}), even = numbers({3, 3, 2, 4}), labels = places({4});
  const auto d = [](const Array& y, const Array& x) {
    const std::vector<Array> wrt{x};
    return gradients(sum(y * y), wrt)[0];
  };
  const auto conv = [&](const Conv2dOptions& options) {
    return [&, options] { return d(conv2d(image, options.groups == 2 ? even : filter, {}, options), image); };
  };
  const auto filtered = [&](const Conv2dOptions& options) {
    return [&, options] {
      const Array& weight = options.groups == 2 ? even : filter;
      return d(conv2d(image, weight, {}, options), weight);
    };
  };
  const auto entropy = [&](const CrossEntropyOptions& options) {
    return [&, options] { return d(cross_entropy(square, labels, options), square); };
  };
  const auto attended = [&](const AttentionOptions& options) {
    return [&, options] { return d(scaled_dot_product_attention(q, q, q, options), q); };
  };
  const Conv2dOptions same{.pad_h = 1, .pad_w = 1};
  const std::vector<Family> families{
      {"conv2d input", {conv({}), conv({.stride_h = 2}), conv(same), conv({.dilation_w = 2}), conv({.groups = 2})}},
      {"conv2d filter",
       {filtered({}), filtered({.stride_h = 2}), filtered(same), filtered({.dilation_w = 2}), filtered({.groups = 2})}},
      {"max_pool2d",
       {[&] { return d(max_pool2d(image), image); }, [&] { return d(max_pool2d(image, {.kernel_h = 3}), image); },
        [&] { return d(max_pool2d(image, {.stride_h = 1}), image); }}},
      {"avg_pool2d",
       {[&] { return d(avg_pool2d(image, {.pad_h = 1}), image); },
        [&] { return d(avg_pool2d(image, {.pad_h = 1, .count_include_pad = false}), image); }}},
      {"cumsum", {[&] { return d(cumsum(square, 0), square); }, [&] { return d(cumsum(square, 1), square); }}},
      {"cumprod", {[&] { return d(cumprod(square, 0), square); }, [&] { return d(cumprod(square, 1), square); }}},
      {"softmax", {[&] { return d(softmax(square), square); }, [&] { return d(log_softmax(square), square); }}},
      {"pad",
       {[&] {
          return d(pad(square, {{1, 1}, {0, 0}}, PadMode::reflect), square);
        },
        [&] {
          return d(pad(square, {{1, 1}, {0, 0}}, PadMode::circular), square);
        },
        [&] {
          return d(pad(square, {{2, 0}, {0, 0}}, PadMode::circular), square);
        }}},
      {"attention", {attended({}), attended({.causal = true}), attended({.scale = 0.3})}},
      {"cross_entropy",
       {entropy({}), entropy({.label_smoothing = 0.1f}), entropy({.ignore_index = 1}), entropy({.ignore_index = 2}),
        entropy({.reduction = Reduction::sum})}},
      {"group_norm", {[&] { return d(group_norm(image, 1), image); }, [&] { return d(group_norm(image, 2), image); }}},
  };
  for (const Family& family : families) expect_all_differ(family, true, [](const Array& a) { return a; });
}

// The number of an op's scalars changes its launch, too: the second call must not replay the first one's plan.
TEST_P(Fingerprints, a_custom_op_with_fewer_parameters_does_not_replay_the_plan_of_more) {
  const CustomOp op{.name = "add_all",
                    .entry = "add_all",
                    .source =
                        "__kernel void add_all(ARRAY(const real, x), ARRAY(real, y), const int n, const real a, "
                        "const real b) {\n  START(x);\n  START(y);\n  const int i = get_global_id(0);\n  if (i < "
                        "n) y[i] = x[i] + a + b;\n}\n"};
  const Array inputs[] = {array({1, 2, 3, 4})};
  const double two[] = {10, 100}, one[] = {10};
  EXPECT_EQ(custom_op(op, inputs, {4}, f32, two).to_vector<float>()[0], 111.0f);
  const auto plans = engine().plans().plans_made;
  bool is_refused = false;
  try {
    custom_op(op, inputs, {4}, f32, one).wait();
  } catch (const Error&) {  // the kernel wants one more
    is_refused = true;
  }
  EXPECT_TRUE(is_refused || engine().plans().plans_made > plans);
}

}  // namespace
}  // namespace samebytes::testing

// Graphs, sizes and attributes made to harm what reads and runs a file: each ends at once, in an error of ours that
// says where, or in a right result. Sizes such as [2^50, 0] cost a file a few bytes, since such a tensor has no values.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "onnx/maker.h"
#include "samebytes/engine.h"
#include "samebytes/onnx.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(),
                       kLeast = std::numeric_limits<std::int64_t>::min();
constexpr int kU8 = 2, kI64 = 7, kBool = 9;

struct Hostile {
  const char* what;
  std::function<void(Maker&)> make;  // a value y, of constants
  std::string says;                  // a part of the error; empty: none, or any
  int opset = 24;
};

using Sizes = std::vector<std::int64_t>;

// A tensor whose bytes are all the same.
void tensor(Maker& maker, const std::string& name, const Sizes& sizes, int type, char byte = 0) {
  auto& made = *maker.model.mutable_graph()->add_initializer();
  made.set_name(name);
  made.set_data_type(type);
  for (const std::int64_t size : sizes) made.add_dims(size);
  std::int64_t n = type == kI64 ? 8 : type == 1 ? 4 : 1;
  if (std::count(sizes.begin(), sizes.end(), 0) > 0) n = 0;
  for (const std::int64_t size : sizes) n = n == 0 ? 0 : n * size;
  made.set_raw_data(std::string(static_cast<std::size_t>(n), byte));
}

::onnx::NodeProto& inner(::onnx::GraphProto& graph, const std::string& op, const std::vector<std::string>& in,
                         const std::string& out) {
  auto& node = *graph.add_node();
  node.set_op_type(op);
  for (const auto& name : in) node.add_input(name);
  node.add_output(out);
  return node;
}

::onnx::GraphProto& graph_of(::onnx::NodeProto& node, const std::string& name) {
  return *Maker::attribute(node, name, ::onnx::AttributeProto::GRAPH).mutable_g();
}

void refer(::onnx::NodeProto& node, const std::string& name, const std::string& to) {
  Maker::attribute(node, name, ::onnx::AttributeProto::GRAPH).set_ref_attr_name(to);
}

::onnx::FunctionProto& function(Maker& maker, const std::string& domain, const std::string& name) {
  auto& made = *maker.model.add_functions();
  made.set_domain(domain);
  made.set_name(name);
  made.add_input("c");
  made.add_output("d");
  made.add_opset_import()->set_version(24);
  return made;
}

// A function whose If refers to a graph of its caller, which calls the function with the same graph again.
void endless_function(Maker& m) {
  tensor(m, "c", {}, kBool, 1);
  auto& body = function(m, "local", "F");
  auto& choice = *body.add_node();
  choice.set_op_type("If");
  choice.add_input("c");
  choice.add_output("d");
  refer(choice, "then_branch", "branch");
  refer(choice, "else_branch", "branch");
  body.add_attribute("branch");
  auto& call = m.node("F", {"c"}, "y");
  call.set_domain("local");
  auto& graph = graph_of(call, "branch");
  auto& again = inner(graph, "F", {"c"}, "e");
  again.set_domain("local");
  refer(again, "branch", "branch");
  graph.add_output()->set_name("e");
}

// The k-th step gives k values.
void growing_scan(Maker& m) {
  m.ints("three", {3});
  m.model.mutable_graph()->mutable_initializer()->rbegin()->clear_dims();
  tensor(m, "yes", {}, kBool, 1);
  m.ints("one", {1});
  auto& body = graph_of(m.node("Loop", {"three", "yes"}, "y"), "body");
  for (const char* name : {"i", "goes"}) body.add_input()->set_name(name);
  inner(body, "Identity", {"goes"}, "on");
  inner(body, "Reshape", {"i", "one"}, "n");
  inner(body, "Expand", {"i", "n"}, "row");
  for (const char* name : {"on", "row"}) body.add_output()->set_name(name);
}

const std::vector<Hostile>& graphs() {
  static const std::vector<Hostile> all{
      {"a function without end", endless_function, "nested deeper"},
      {"a function in the importer's own domain",
       [](Maker& m) {
         function(m, "samebytes", "Attention").add_node()->set_op_type("Relu");
         m.floats("y", {1}, {1});
       },
       "domain 'samebytes'"},
      {"a scanned output that grows", growing_scan, "differ in size"},
      {"a loop whose count is empty",
       [](Maker& m) {
         m.ints("none", {});
         auto& body = graph_of(m.node("Loop", {"none", ""}, "y"), "body");
         for (const char* name : {"i", "goes"}) body.add_input()->set_name(name);
         inner(body, "Identity", {"goes"}, "on");
         for (const char* name : {"on", "i"}) body.add_output()->set_name(name);
       },
       "too few values"},
      {"a scan over a scalar",
       [](Maker& m) {
         tensor(m, "a", {2, 3}, 1);
         tensor(m, "b", {}, 1);
         auto& node = m.node("Scan", {"", "a", "b"}, "y");
         Maker::set(node, "num_scan_inputs", 2);
         auto& body = graph_of(node, "body");
         for (const char* name : {"p", "q"}) body.add_input()->set_name(name);
         inner(body, "Add", {"p", "q"}, "s");
         body.add_output()->set_name("s");
       },
       "scalar", 8},
      {"values without names that read each other",
       [](Maker& m) {
         m.input("x", {"1", "1", "3", "3"});
         auto& constant =
             *Maker::attribute(m.node("Constant", {}, "w"), "value", ::onnx::AttributeProto::TENSOR).mutable_t();
         constant.set_data_type(1);
         for (int i = 0; i < 4; ++i) constant.add_dims(1);
         constant.add_float_data(1);
         m.floats("k", {1}, {2});
         m.node("Conv", {"x", "w"}, "");
         m.node("Mul", {"", "k"}, "");
         m.node("Identity", {"k"}, "y");
       },
       ""},
      {"a graph without outputs",
       [](Maker& m) {
         m.model.mutable_graph()->clear_output();
         m.floats("y", {1}, {1});
       },
       "no output"},
      {"an initializer without a name",
       [](Maker& m) {
         m.floats("", {1}, {1});
         m.floats("y", {1}, {1});
       },
       "has no name"},
  };
  return all;
}

const std::vector<Hostile>& sizes() {
  static const std::vector<Hostile> all{
      {"more axes than a tensor has",
       [](Maker& m) {
         tensor(m, "a", Sizes(1000, 1), kI64);
         m.node("Neg", {"a"}, "y");
       },
       "1000 axes"},
      {"batches that the index has not",
       [](Maker& m) {
         tensor(m, "a", {4, 3}, kI64);
         tensor(m, "i", {1, 1}, kI64);
         Maker::set(m.node("GatherND", {"a", "i"}, "y"), "batch_dims", 1);
       },
       "batches of the index"},
      {"a gathered list of 2^32",
       [](Maker& m) {
         tensor(m, "a", {1, 65536}, kU8);
         tensor(m, "i", {65536}, kI64);
         m.node("Gather", {"a", "i"}, "y");
       },
       "too large"},
      {"a gathered nothing",
       [](Maker& m) {
         tensor(m, "a", {std::int64_t{1} << 50, 3, 0}, kI64);
         tensor(m, "i", {1}, kI64);
         Maker::set(m.node("Gather", {"a", "i"}, "y"), "axis", 1);
       },
       ""},
      {"gathered rows of 2^32",
       [](Maker& m) {
         tensor(m, "a", {1, 65536}, kU8);
         tensor(m, "i", {65536, 1}, kI64);
         m.node("GatherND", {"a", "i"}, "y");
       },
       "too large"},
      {"pads that multiply beyond 2^63",
       [](Maker& m) {
         tensor(m, "a", {1, 1, 1}, kI64);
         const std::int64_t pad = std::int64_t{1} << 40;
         m.ints("p", {pad, pad, pad, 0, 0, 0});
         m.node("Pad", {"a", "p"}, "y");
       },
       "too large"},
      {"a triangle of 2^40",
       [](Maker& m) {
         m.floats("a", {1}, {1});
         m.ints("n", {1 << 20, 1 << 20});
         m.node("Expand", {"a", "n"}, "b");
         m.node("Trilu", {"b"}, "y");
       },
       "too large"},
      {"2^40 integers",
       [](Maker& m) {
         m.ints("n", {std::int64_t{1} << 40});
         auto& value = *Maker::attribute(m.node("ConstantOfShape", {"n"}, "y"), "value", ::onnx::AttributeProto::TENSOR)
                            .mutable_t();
         value.set_data_type(kI64);
         value.add_dims(1);
         value.add_int64_data(1);
       },
       "too large"},
      {"a bound as long as what it bounds",
       [](Maker& m) {
         tensor(m, "a", {400000}, kI64);
         m.node("Clip", {"a", "a"}, "y");
       },
       ""},
      {"a sum of many",
       [](Maker& m) {
         m.ints("a", {1});
         m.node("Sum", std::vector<std::string>(50000, "a"), "y");
       },
       ""},
      {"boxes of nothing",
       [](Maker& m) {
         const std::int64_t n = std::int64_t{1} << 27;
         tensor(m, "boxes", {n, 0, 4}, 1);
         tensor(m, "scores", {n, n, 0}, 1);
         m.node("NonMaxSuppression", {"boxes", "scores"}, "y");
       },
       ""},
      {"losses of no sample",
       [](Maker& m) {
         tensor(m, "x", {0, std::int64_t{1} << 50, 1}, 1);
         tensor(m, "c", {16384}, kI64);
         m.node("NegativeLogLikelihoodLoss", {"x", "c"}, "y");
       },
       "expected [N, C"},
      {"a cache of nothing",
       [](Maker& m) {
         tensor(m, "past", {1, std::int64_t{1} << 50, 0}, 1);
         tensor(m, "fresh", {1, 1, 0}, 1);
         m.node("TensorScatter", {"past", "fresh"}, "y");
       },
       ""},
      {"a place beyond every cache",
       [](Maker& m) {
         tensor(m, "past", {1, 4, 2}, 1);
         tensor(m, "fresh", {1, 2, 2}, 1);
         m.ints("at", {kMost});
         Maker::set(m.node("TensorScatter", {"past", "fresh", "at"}, "y"), "mode", std::string("circular"));
       },
       "outside of the cache"},
  };
  return all;
}

// A convolution of an image [1, 4, 8, 8] with a filter [4, 4, 3, 3].
Hostile window(const char* what, const char* op, const char* attribute, Sizes values, const char* says) {
  return {what,
          [=](Maker& m) {
            tensor(m, "x", {1, 4, 8, 8}, 1);
            tensor(m, "w", {4, 4, 3, 3}, 1);
            auto& node = m.node(op, {"x", "w"}, "y");
            if (values.size() == 1)
              Maker::set(node, attribute, values[0]);
            else
              Maker::set(node, attribute, values);
          },
          says};
}

std::vector<Hostile> windows() {
  const std::int64_t wide = std::int64_t{1} << 32;
  return {
      window("pads that are 0 in 32 bits", "Conv", "pads", {wide, wide, wide, wide}, "a pad of"),
      window("groups that are 1 in 32 bits", "Conv", "group", {wide + 1}, "group is"),
      window("pads that add up beyond 2^63", "ConvTranspose", "pads", {kMost, kMost, kMost, kMost}, "a pad of"),
      window("the least result", "ConvTranspose", "output_shape", {kLeast, kLeast}, "output_shape"),
      window("the largest padding of a result", "ConvTranspose", "output_padding", {kMost, kMost}, "output_padding"),
      window("steps of 2^31", "Conv", "strides", {wide / 2, wide / 2}, "a window"),
      {"a filter without axes",
       [](Maker& m) {
         tensor(m, "x", {1, 4, 8, 8}, 1);
         tensor(m, "w", {4}, 1);
         tensor(m, "o", {1, 18, 6, 6}, 1);
         m.node("DeformConv", {"x", "w", "o"}, "y");
       },
       "four axes"},
      {"more offset groups than numbers",
       [](Maker& m) {
         tensor(m, "x", {1, 4, 8, 8}, 1);
         tensor(m, "w", {4, 4, 3, 3}, 1);
         tensor(m, "o", {1, 18, 6, 6}, 1);
         Maker::set(m.node("DeformConv", {"x", "w", "o"}, "y"), "offset_group", kMost);
       },
       "do not fit"},
      {"a type that is another one in 8 bits",
       [](Maker& m) {
         tensor(m, "a", {2}, kI64);
         Maker::set(m.node("Cast", {"a"}, "y"), "to", -246);
       },
       "no type"},
  };
}

class OnnxHostileGraphs : public ::testing::Test {
 protected:
  static void expect(const std::vector<Hostile>& all) {
    for (const Hostile& one : all) {
      Maker maker(one.opset);
      maker.output("y");
      one.make(maker);
      const std::string text = outcome_of(maker, one.what);
      EXPECT_NE(text.find(one.says), std::string::npos) << one.what << ": '" << one.says << "' is not in: " << text;
    }
  }
  const Engine engine_;
};

TEST_F(OnnxHostileGraphs, end_in_an_error) { expect(graphs()); }
TEST_F(OnnxHostileGraphs, with_sizes_beyond_every_memory_end_in_an_error) { expect(sizes()); }
TEST_F(OnnxHostileGraphs, with_windows_beyond_32_bits_end_in_an_error) { expect(windows()); }

TEST_F(OnnxHostileGraphs, a_bool_is_true_whatever_bits_the_file_has_set) {
  const TemporaryFolder folder;
  Maker maker(24);
  tensor(maker, "two", {1}, kBool, 2);
  tensor(maker, "one", {1}, kBool, 1);
  maker.node("And", {"two", "one"}, "y");
  maker.output("y");
  const Tensor made = std::get<Tensor>(load(maker.saved(folder)).run({}).at("y"));
  EXPECT_EQ(made.bytes.at(0), std::byte{1});
}

}  // namespace
}  // namespace samebytes::onnx

// Files that are damaged, or made to harm: an error that says what is wrong, no crash, no memory beyond what the file
// is worth. And a large one, which opens at once.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <random>

#include "onnx/maker.h"
#include "samebytes/engine.h"
#include "samebytes/models.h"
#include "samebytes/nn.h"
#include "samebytes/onnx.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

struct Hostile {
  const char* what;
  std::function<void(Maker&)> change;  // of linear_model()
  std::vector<std::string> says;
};

::onnx::TensorProto& external(Maker& maker, const std::string& location, const std::string& offset,
                              const std::string& length = "") {
  auto& tensor = maker.floats("far", {2}, {});
  tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] :
       {std::pair{"location", location}, std::pair{"offset", offset}, std::pair{"length", length}}) {
    if (value.empty()) continue;
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  return tensor;
}

// A function that calls the next one twice: 2^depth nodes.
void doubling(Maker& maker, int depth) {
  for (int level = 0; level < depth; ++level) {
    auto& function = *maker.model.add_functions();
    function.set_name("F" + std::to_string(level));
    function.set_domain("local");
    function.add_input("a");
    function.add_output("c");
    for (const auto& [from, to] : {std::pair{"a", "b"}, std::pair{"b", "c"}}) {
      auto& node = *function.add_node();
      node.set_op_type(level + 1 < depth ? "F" + std::to_string(level + 1) : "Relu");
      if (level + 1 < depth) node.set_domain("local");
      node.add_input(from);
      node.add_output(to);
    }
  }
  maker.node("F0", {"y"}, "z").set_domain("local");
}

// Kilobytes of memory that the process has touched: now, or at most since reset_peak().
std::size_t kilobytes(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;)
    if (std::size_t value = 0; word == key && in >> value) return value;
  return 0;
}
void reset_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

const std::vector<Hostile>& table() {
  static const std::vector<Hostile> all{
      {"sizes that overflow",
       [](Maker& m) {
         m.floats("huge", {std::int64_t{1} << 40, std::int64_t{1} << 40}, {1});
       },
       {"too large"}},
      {"sizes far beyond the values",
       [](Maker& m) {
         m.floats("huge", {1 << 20, 1 << 20}, {1});
       },
       {"'huge'", "1 values"}},
      {"a negative size", [](Maker& m) { m.floats("less", {-4}, {1}); }, {"negative"}},
      {"raw bytes of another length",
       [](Maker& m) { m.floats("raw", {3}, {}).set_raw_data("12345"); },
       {"'raw'", "5 bytes"}},
      {"a type that is none", [](Maker& m) { m.floats("odd", {1}, {1}).set_data_type(77); }, {"'odd'", "77"}},
      {"a negative type", [](Maker& m) { m.floats("odd", {1}, {1}).set_data_type(-246); }, {"'odd'", "-246"}},
      {"values of another type", [](Maker& m) { m.floats("odd", {1}, {1}).set_data_type(7); }, {"0 values"}},
      {"an offset beyond the end", [](Maker& m) { external(m, "w.bin", "12"); }, {"'far'", "8 bytes at 12"}},
      {"an offset that wraps", [](Maker& m) { external(m, "w.bin", "18446744073709551612"); }, {"'far'", "wants 8"}},
      {"a length that lies", [](Maker& m) { external(m, "w.bin", "0", "16"); }, {"'far'", "says 16"}},
      {"an offset that is a word", [](Maker& m) { external(m, "w.bin", "near"); }, {"'far'", "not a number"}},
      {"a path above the folder", [](Maker& m) { external(m, "../w.bin", "0"); }, {"outside"}},
      {"a path that comes back out", [](Maker& m) { external(m, "a/../../w.bin", "0"); }, {"outside"}},
      {"an absolute path", [](Maker& m) { external(m, "/etc/passwd", "0"); }, {"outside"}},
      {"a link that leaves the folder", [](Maker& m) { external(m, "link.bin", "0"); }, {"outside"}},
      {"a pipe", [](Maker& m) { external(m, "pipe.bin", "0"); }, {"cannot"}},
      {"a file that is not there", [](Maker& m) { external(m, "none.bin", "0"); }, {"cannot open"}},
      {"a folder", [](Maker& m) { external(m, ".", "0"); }, {"cannot"}},
      {"a place with a newline", [](Maker& m) { external(m, "w\n.bin", "0"); }, {"control character"}},
      {"tensors that lie over each other",
       [](Maker& m) {
         for (int i = 0; i < 100; ++i) {
           auto& tensor = external(m, "w.bin", "0");
           tensor.set_name("far" + std::to_string(i));
           tensor.set_data_type(6);
         }
       },
       {"lie over each other"}},
      {"a name with a newline",
       [](Maker& m) { m.node("Relu", {"y"}, "a\nERROR: all is lost"); },
       {"control character", "a?ERROR"}},
      {"an initializer with one", [](Maker& m) { m.floats("w\r", {1}, {1}); }, {"control character"}},
      {"an operator with one", [](Maker& m) { m.node("Re\nlu", {"y"}, "z"); }, {"Re?lu"}},
      {"a cycle",
       [](Maker& m) {
         m.node("Relu", {"later"}, "now");
         m.node("Relu", {"now"}, "later");
       },
       {"cycle"}},
      {"a value made twice", [](Maker& m) { m.node("Relu", {"y"}, "y"); }, {"exists already"}},
      {"an initializer that is there twice", [](Maker& m) { m.floats("layer.bias", {1}, {1}); }, {"twice"}},
      {"an output that nobody makes", [](Maker& m) { m.output("nothing"); }, {"'nothing'"}},
      {"functions that double", [](Maker& m) { doubling(m, 30); }, {"more than"}},
      {"functions in functions", [](Maker& m) { doubling(m, 60); }, {"deeper"}},
      {"a version of the future", [](Maker& m) { m.model.mutable_opset_import(0)->set_version(1000); }, {"opset 1000"}},
      {"a negative version", [](Maker& m) { m.model.mutable_opset_import(0)->set_version(-3); }, {"opset -3"}},
  };
  return all;
}

TEST(OnnxHostile, each_file_has_a_clear_error_and_takes_no_memory) {
  const Engine engine;
  for (const Hostile& one : table()) {
    const TemporaryFolder folder;
    std::ofstream(folder / "w.bin", std::ios::binary) << std::string(16, '\0');
    ASSERT_EQ(::symlink("/etc/passwd", (folder / "link.bin").c_str()), 0);
    ASSERT_EQ(::mkfifo((folder / "pipe.bin").c_str(), 0600), 0);
    Maker maker = linear_model();
    one.change(maker);
    const std::string path = maker.saved(folder);
    reset_peak();
    const std::size_t before = kilobytes("VmRSS:");
    const std::string text = message_of([&] { load(path); });
    EXPECT_LE(kilobytes("VmHWM:"), before + 16384) << one.what << ": the file has a few KB";
    for (const std::string& part : one.says)
      EXPECT_NE(text.find(part), std::string::npos) << one.what << ": " << part << " is not in: " << text;
    EXPECT_EQ(text.find('\n'), text.find("\n  ")) << one.what << ": lines of the file's own making: " << text;
  }
}

// Reading the file computes what follows from constants alone, so each of these would be made there and then.
TEST(OnnxHostile, large_constants_that_a_file_only_asks_for_are_not_made) {
  const Engine engine;
  load(linear_model().saved(TemporaryFolder()));
  zeros(Shape{1}).to_vector<float>();  // the first kernel of a process brings the compiler along
  const std::vector<std::pair<const char*, std::function<void(Maker&)>>> all{
      {"integers by the hundred million",
       [](Maker& m) {
         m.ints("sizes", {1 << 27});
         auto& value =
             *Maker::attribute(m.node("ConstantOfShape", {"sizes"}, "big"), "value", ::onnx::AttributeProto::TENSOR)
                  .mutable_t();
         value.set_data_type(7);
         value.add_dims(1);
         value.add_int64_data(1);
       }},
      {"zeros",
       [](Maker& m) {
         m.ints("sizes", {1 << 13, 1 << 13});
         m.node("ConstantOfShape", {"sizes"}, "big");
       }},
      {"many zeros",
       [](Maker& m) {
         m.ints("sizes", {1000, 1000});
         for (int i = 0; i < 100; ++i) m.node("ConstantOfShape", {"sizes"}, i == 0 ? "big" : "big" + std::to_string(i));
       }},
      {"a wide integer",
       [](Maker& m) {
         m.ints("one", {1});
         m.ints("sizes", {1 << 13, 1 << 13});
         m.node("Expand", {"one", "sizes"}, "big");
       }},
      {"a repeated one",
       [](Maker& m) {
         m.ints("one", {1});
         m.ints("times", {1 << 26});
         m.node("Tile", {"one", "times"}, "big");
       }},
      {"a long range",
       [](Maker& m) {
         for (const auto& [name, value] : {std::pair{"from", 0}, std::pair{"to", 1 << 26}, std::pair{"by", 1}}) {
           m.ints(name, {value});
           m.model.mutable_graph()->mutable_initializer()->rbegin()->clear_dims();
         }
         m.node("Range", {"from", "to", "by"}, "big");
       }},
  };
  for (const auto& [what, make] : all) {
    const TemporaryFolder folder;
    Maker maker;
    make(maker);
    maker.output("big");
    const std::string path = maker.saved(folder);
    reset_peak();
    const std::size_t before = kilobytes("VmRSS:");
    EXPECT_EQ(load(path).outputs().size(), 1u) << what;
    EXPECT_LE(kilobytes("VmHWM:"), before + 16384) << what;
  }
}

TEST(OnnxHostile, nodes_without_a_result_are_read) {
  const Engine engine;
  for (const std::string op :
       {"Constant", "Softmax", "Div", "Sub", "ReduceMean", "Conv", "BatchNormalization", "Mul"}) {
    const TemporaryFolder folder;
    Maker maker = linear_model();
    auto& node =
        maker.node(op, op == "Constant" ? std::vector<std::string>{} : std::vector<std::string>{"y", "y"}, "z");
    node.clear_output();
    const std::string path = maker.saved(folder);
    EXPECT_EQ(load(path, {.any_batch = true}).outputs(), std::vector<std::string>{"y"}) << op;
  }
}

TEST(OnnxHostile, files_cut_anywhere_are_refused_or_read) {
  const Engine engine;
  const TemporaryFolder folder;
  nn::Sequential net(nn::Conv2d({.in = 2, .out = 3, .kernel = 3}), nn::Relu(), nn::Flatten(),
                     nn::Linear({.in = 12, .out = 2}));
  const std::string path = folder / "net.onnx";
  save(path, net, zeros({1, 4, 4, 2}));
  std::ifstream in(path, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(in)), {});
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = whole;
    if (i % 5 == 0) bytes.resize(random() % bytes.size());
    for (std::uint32_t k = 0; k < 1 + random() % 4 && !bytes.empty(); ++k) {
      char& byte = bytes[random() % bytes.size()];
      byte = random() % 2 == 0 ? static_cast<char>(random()) : static_cast<char>(byte ^ (1 << random() % 8));
    }
    const std::string damaged = folder / "damaged.onnx";
    std::ofstream(damaged, std::ios::binary) << bytes;
    try {
      load(damaged).summary();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()), "");
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
  EXPECT_LT(refused, 3000) << "some bytes are weights";
}

TEST(OnnxHostile, a_gigabyte_of_external_data_opens_at_once_and_copies_nothing) {
  const Engine engine;
  const TemporaryFolder folder;
  constexpr std::int64_t kRows = 1 << 14;
  const std::string data = folder / "w.bin";
  const int file = ::open(data.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ASSERT_GE(file, 0);
  ASSERT_EQ(::ftruncate(file, kRows * kRows * 4), 0);  // takes no place on the disk
  ::close(file);
  Maker maker;
  maker.input("x", {"2"});
  for (int i = 0; i < 4; ++i) {
    auto& tensor = external(maker, "w.bin", std::to_string(kRows * kRows * i));
    tensor.set_name("w" + std::to_string(i));
    tensor.clear_dims();
    tensor.add_dims(kRows);
    tensor.add_dims(kRows / 4);
    maker.node("MatMul", {"x", "w" + std::to_string(i)}, "y" + std::to_string(i));
    maker.output("y" + std::to_string(i));
  }
  const std::string path = maker.saved(folder);
  load(linear_model().saved(TemporaryFolder()));  // what the first load of a process does
  const auto copied = engine.transfers().bytes_copied;
  double best = 1;
  for (int i = 0; i < 3; ++i) {
    const auto start = std::chrono::steady_clock::now();
    const Model model = load(path);
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    EXPECT_EQ(model.outputs().size(), 4u);
  }
  EXPECT_LT(best, 0.05);
  EXPECT_EQ(engine.transfers().bytes_copied, copied);
  EXPECT_LT(engine.memory().live_bytes, std::size_t{1} << 20);
}

}  // namespace
}  // namespace samebytes::onnx

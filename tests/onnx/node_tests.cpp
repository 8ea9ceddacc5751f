// onnx_node_tests DIR [PART]: runs ONNX's backend node tests (DIR/test_*/model.onnx with test_data_set_*) whose names
// contain PART, and prints a table of Markdown per operator. What is refused goes to the standard error, with the
// reason. Exit status 1 if a result is wrong.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "onnx/call.h"
#include "samebytes/autograd.h"
#include "samebytes/engine.h"
#include "samebytes/error.h"

namespace samebytes::onnx {
namespace {

namespace fs = std::filesystem;

struct Score {
  int passed = 0, refused = 0, wrong = 0;
};

template <class Message>
Message read(const fs::path& path) {
  Message message;
  std::ifstream in(path, std::ios::binary);
  if (!message.ParseFromIstream(&in)) throw IoError("cannot read " + path.string(), path.string());
  return message;
}

bool is_plain(const ::onnx::ModelProto& model) {
  const auto plain = [](const auto& values) {
    return std::all_of(values.begin(), values.end(), [](const auto& value) {
      const int type = value.type().tensor_type().elem_type();
      return value.type().has_tensor_type() && type <= 16 && bytes_of(static_cast<Type>(type)) != 0;
    });
  };
  return plain(model.graph().input()) && plain(model.graph().output());
}

// What draws random numbers has the type and the sizes that ONNX says, and no values.
bool is_random(const ::onnx::ModelProto& model) {
  return std::any_of(model.graph().node().begin(), model.graph().node().end(), [](const auto& node) {
    return node.op_type() == "Bernoulli" || node.op_type() == "Multinomial" || node.op_type().starts_with("Random");
  });
}

std::vector<double> values_of(const Tensor& tensor) {
  Tensor copy = tensor;
  return reals_of(item_of(std::move(copy)));
}

// ONNX's own tolerance, and steps of the type for 16 bits.
std::string difference(const Tensor& got, const Tensor& want) {
  if (got.type != want.type) return "type " + name_of(got.type) + ", expected " + name_of(want.type);
  if (got.sizes != want.sizes) return "another shape";
  if (!is_floating(want.type)) return got.bytes == want.bytes ? "" : "other integers";
  const auto a = values_of(got), b = values_of(want);
  const double relative = want.type == Type::bf16 ? 1e-2 : 1e-3;
  const double absolute = want.type == Type::bf16 || want.type == Type::f16 ? 1e-3 : 1e-6;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) && std::isnan(b[i])) continue;
    if (a[i] == b[i] || std::abs(a[i] - b[i]) <= absolute + relative * std::abs(b[i])) continue;
    return "element " + std::to_string(i) + " is " + std::to_string(a[i]) + ", expected " + std::to_string(b[i]);
  }
  return "";
}

// What is wrong with a model's outputs for a set of data; empty if nothing is.
std::string different(const std::map<std::string, Value>& outputs, const fs::path& data,
                      const ::onnx::ModelProto& proto) {
  for (int i = 0; i < proto.graph().output_size(); ++i) {
    const Tensor want = tensor_of(read<::onnx::TensorProto>(data / ("output_" + std::to_string(i) + ".pb")));
    const Value& value = outputs.at(proto.graph().output(i).name());
    Tensor got;
    if (const Array* array = std::get_if<Array>(&value))
      got = on_host(item_of(*array));
    else
      got = std::get<Tensor>(value);
    std::string text = difference(got, want);
    if (got.type == want.type && got.sizes == want.sizes && is_random(proto)) text.clear();
    if (!text.empty()) return text;
  }
  return "";
}

std::string compared(const fs::path& folder, const ::onnx::ModelProto& proto) {
  Model model = load((folder / "model.onnx").string());
  for (int set = 0; fs::exists(folder / ("test_data_set_" + std::to_string(set))); ++set) {
    const fs::path data = folder / ("test_data_set_" + std::to_string(set));
    std::map<std::string, Value> inputs;
    for (std::size_t i = 0; i < model.inputs().size(); ++i) {
      const fs::path path = data / ("input_" + std::to_string(i) + ".pb");
      if (!fs::exists(path)) continue;
      Tensor tensor = tensor_of(read<::onnx::TensorProto>(path));
      if (is_floating(tensor.type))
        inputs[model.inputs()[i]] = plain(item_of(std::move(tensor)));
      else
        inputs[model.inputs()[i]] = std::move(tensor);
    }
    // With gradients first; without, where the third run builds what the second recorded, then each of three.
    for (int run = 0; run < 4; ++run) {
      std::optional<NoGrad> no_grad;
      if (run > 0) no_grad.emplace();
      if (const std::string text = different(model.run(inputs), data, proto); !text.empty()) return text;
    }
  }
  return "";
}

int run(const fs::path& root, const std::string& part) {
  const Engine engine;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(root))
    if (fs::exists(entry.path() / "model.onnx") && entry.path().filename().string().find(part) != std::string::npos)
      folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  std::map<std::string, Score> table;
  Score all;
  int others = 0, random = 0;
  for (const fs::path& folder : folders) {
    const auto proto = read<::onnx::ModelProto>(folder / "model.onnx");
    if (!is_plain(proto)) {
      ++others;
      continue;
    }
    const bool is_single = proto.graph().node_size() == 1 && folder.string().find("_expanded") == std::string::npos;
    Score& score = table[is_single ? proto.graph().node(0).op_type() : "(graphs of several nodes)"];
    try {
      const std::string text = compared(folder, proto);
      random += text.empty() && is_random(proto) ? 1 : 0;
      ++(text.empty() ? score.passed : score.wrong);
      ++(text.empty() ? all.passed : all.wrong);
      if (!text.empty()) std::cerr << "WRONG " << folder.filename().string() << ": " << text << "\n";
    } catch (const Error& error) {
      ++score.refused;
      ++all.refused;
      std::cerr << "refused " << folder.filename().string() << ": " << error.what() << "\n";
    }
  }
  std::cout << "| operator | passed | refused | wrong |\n|---|---|---|---|\n";
  for (const auto& [op, score] : table)
    std::cout << "| " << op << " | " << score.passed << " | " << score.refused << " | " << score.wrong << " |\n";
  std::cout << "| **all** | " << all.passed << " | " << all.refused << " | " << all.wrong << " |\n\n"
            << others << " cases with strings, sequences, optional values or packed types are left out. Of " << random
            << " that passed, which draw random numbers, the types and sizes are compared.\n";
  return all.wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace samebytes::onnx

int main(int count, char** words) {
  if (count < 2) {
    std::cerr << "onnx_node_tests DIR [PART]\n";
    return 2;
  }
  try {
    return samebytes::onnx::run(words[1], count > 2 ? words[2] : "");
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 2;
  }
}

#include "onnx/check.h"

#include <algorithm>
#include <set>
#include <vector>

#include "onnx/registry.h"
#include "samebytes/error.h"

namespace samebytes::onnx {
namespace {

constexpr std::int64_t kMostNodes = 1 << 20;  // with functions expanded: they may call each other many times

// The names that a graph gives, above those of the graph around it.
struct Names {
  std::set<std::string> own;
  const Names* outer = nullptr;

  bool contain(const std::string& name) const {
    for (const Names* names = this; names != nullptr; names = names->outer)
      if (names->own.contains(name)) return true;
    return false;
  }
};

bool is_control(char c) { return static_cast<unsigned char>(c) < 32 || c == 127; }

// Of an input, an initializer or a value that may not be left out.
void expect_name(const std::string& name, const char* what) {
  if (name.empty()) throw ArgumentError(std::string("onnx: ") + what + " has no name");
}

void expect_plain(const std::string& name, const char* what) {
  if (has_control(name))
    throw ArgumentError(std::string("onnx: the name of ") + what + " has a control character: '" + printable(name) +
                        "'; expected text on one line");
}

// What the runner does itself: all but constants have subgraphs.
const std::set<std::string>& control() {
  static const std::set<std::string> ops{"If", "Loop", "Scan", "Constant", "ai.onnx.preview.FlexAttention"};
  return ops;
}

// What a list of nodes becomes with its functions expanded.
struct Extent {
  std::int64_t nodes = 0;
  int levels = 0;  // of functions and subgraphs inside each other
};

// Checks a graph before anything runs: every value is made before it is read and once, every operator is known.
// The body of a function is checked once, however often it is called.
class Checker {
 public:
  explicit Checker(const Functions& functions) : functions_(functions) {}

  Extent graph(const ::onnx::GraphProto& graph, const Names* outer, int depth) {
    Names known{{}, outer};
    for (const auto& input : graph.input()) {
      expect_name(input.name(), "an input");
      expect_plain(input.name(), "an input");
      known.own.insert(input.name());
    }
    for (const auto& tensor : graph.initializer()) {
      expect_name(tensor.name(), "an initializer");
      expect_plain(tensor.name(), "an initializer");
      known.own.insert(tensor.name());
    }
    const Extent extent = nodes(graph.node(), known, depth);
    for (const auto& output : graph.output())
      if (!known.contain(output.name()))
        throw ArgumentError("onnx: the output '" + printable(output.name()) + "' is made by no node");
    return extent;
  }
  // The importer itself makes nodes of these names.
  void check_own() {
    for (const auto& [key, function] : functions_) {
      if (function->domain() == "samebytes")
        throw ArgumentError("onnx: the function '" + printable(function->name()) +
                            "' is in the domain 'samebytes', expected another one");
      if (is_standard(function->domain())) body(*function, 1);
    }
  }
  void finish() const {
    if (unknown_.empty()) return;
    std::string text = "onnx: " + std::to_string(unknown_.size()) + " nodes have operators that are not supported:";
    for (const std::string& node : unknown_) text += "\n  " + node;
    throw ArgumentError(text + "\nExport the model without them; docs/onnx.md lists what is supported.");
  }

 private:
  Extent nodes(const google::protobuf::RepeatedPtrField<::onnx::NodeProto>& list, Names& known, int depth) {
    expect_depth(depth);
    Extent extent;
    const auto add_inside = [&](const Extent& inside) {
      extent.nodes += inside.nodes;
      extent.levels = std::max(extent.levels, inside.levels + 1);
      expect_depth(depth + extent.levels);
    };
    for (const auto& node : list) {
      ++extent.nodes;
      for (const auto& input : node.input())
        if (!input.empty() && !known.contain(input))
          throw ArgumentError("onnx: " + shown(node) + " reads '" + printable(input) +
                              "', which no input, initializer or earlier node gives; a graph must have no cycle");
      for (const auto& attribute : node.attribute())
        if (attribute.has_g()) add_inside(graph(attribute.g(), &known, depth + 1));
      const auto function = functions_.find(key_of(node.domain(), node.op_type()));
      if (function != functions_.end()) {
        add_inside(body(*function->second, depth + 1));
      } else if (const std::string name = registered_as(node.domain(), node.op_type());
                 !registry().contains(name) && !control().contains(name)) {
        unknown_.push_back(shown(node));
      }
      if (extent.nodes > kMostNodes)
        throw ArgumentError("onnx: with functions expanded there are more than " + std::to_string(kMostNodes) +
                            " nodes, expected fewer");
      for (const auto& output : node.output()) {
        expect_plain(output, "a value");
        if (!output.empty() && (known.contain(output) || !known.own.insert(output).second))
          throw ArgumentError("onnx: " + shown(node) + " makes '" + printable(output) + "', which exists already");
      }
    }
    return extent;
  }

  // A function that calls itself is nested without end.
  Extent body(const ::onnx::FunctionProto& function, int depth) {
    if (const auto known = bodies_.find(&function); known != bodies_.end()) return known->second;
    Names inside{{function.input().begin(), function.input().end()}};
    return bodies_[&function] = nodes(function.node(), inside, depth);
  }

  static void expect_depth(int depth) {
    if (depth > kDeepestNesting)
      throw ArgumentError("onnx: functions or subgraphs are nested deeper than " + std::to_string(kDeepestNesting));
  }

  const Functions& functions_;
  std::map<const ::onnx::FunctionProto*, Extent> bodies_;
  std::vector<std::string> unknown_;
};

}  // namespace

bool is_standard(const std::string& domain) { return domain.empty() || domain == "ai.onnx"; }

std::string printable(const std::string& name) {
  std::string text = name.substr(0, 120);
  std::replace_if(text.begin(), text.end(), is_control, '?');
  return text;
}

bool has_control(const std::string& name) { return std::any_of(name.begin(), name.end(), is_control); }

std::string shown(const ::onnx::NodeProto& node) {
  std::string where = node.name();
  if (where.empty() && node.output_size() > 0) where = node.output(0);
  return printable((is_standard(node.domain()) ? "" : node.domain() + ".") + node.op_type()) + " '" + printable(where) +
         "'";
}

std::string registered_as(const std::string& domain, const std::string& op) {
  return is_standard(domain) ? op : domain + "." + op;
}

std::string key_of(const std::string& domain, const std::string& op) { return domain + ":" + op; }

void check(const ::onnx::GraphProto& graph, const Functions& functions) {
  Checker checker(functions);
  checker.graph(graph, nullptr, 0);
  checker.check_own();
  checker.finish();
}

}  // namespace samebytes::onnx

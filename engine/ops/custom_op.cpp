// custom_op: the user's own OpenCL C as a node of the graph.
#include <algorithm>
#include <cctype>
#include <mutex>
#include <optional>
#include <regex>
#include <unordered_set>

#include "graph/launch.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace detail {
namespace {

std::string without_comments(const std::string& source) {
  std::string text;
  for (std::size_t i = 0; i < source.size();) {
    const bool is_line = source.compare(i, 2, "//") == 0, is_block = source.compare(i, 2, "/*") == 0;
    if (!is_line && !is_block) {
      text += source[i++];
      continue;
    }
    const std::size_t end = source.find(is_line ? "\n" : "*/", i + 2);
    i = end == std::string::npos ? source.size() : end + (is_line ? 0 : 2);
    text += ' ';
  }
  return text;
}

// The text between the parentheses after the kernel's name, or nothing where the kernel is not written out in `source`.
std::optional<std::string> parameters_of(const std::string& source, const std::string& entry) {
  const std::string text = without_comments(source);
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  for (std::size_t at = text.find(entry); at != std::string::npos; at = text.find(entry, at + 1)) {
    const std::size_t open = text.find_first_not_of(" \t\n", at + entry.size());
    if (open == std::string::npos || text[open] != '(' || at == 0 || is_word(text[at - 1])) continue;
    const std::size_t before = text.find_last_of(";}", at);
    const std::size_t start = before == std::string::npos ? 0 : before;
    if (text.substr(start, at - start).find("kernel ") == std::string::npos) continue;
    int depth = 1;
    for (std::size_t i = open + 1; i < text.size(); ++i) {
      depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
      if (depth == 0) return text.substr(open + 1, i - open - 1);
    }
  }
  return {};
}

std::vector<std::string> split(const std::string& parameters) {
  std::vector<std::string> list(1);
  int depth = 0;
  for (const char c : parameters) {
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (c == ',' && depth == 0)
      list.emplace_back();
    else if (!list.back().empty() || !std::isspace(static_cast<unsigned char>(c)))
      list.back() += c;
  }
  return list;
}

// What a parameter of a kernel takes: "an array of real", "an int", "a real"; empty for what this does not understand.
std::string taken_by(const std::string& parameter) {
  static const std::regex array("ARRAY(_INPLACE)?\\s*\\(\\s*(const\\s+)?(\\w+)\\s*,\\s*\\w+\\s*\\)\\s*");
  static const std::regex scalar("(const\\s+)?(\\w+)\\s+(const\\s+)?\\w+\\s*");
  std::smatch found;
  const auto word = [](const std::string& type) -> std::string {
    if (type == "real" || type == "stored" || type == "float" || type == "double") return "real";
    return type == "int" || type == "long" || type == "uchar" ? type : "";
  };
  if (std::regex_match(parameter, found, array)) {
    const std::string type = word(found[3]);
    return type.empty() ? "" : "an array of " + type;
  }
  if (!std::regex_match(parameter, found, scalar)) return {};
  const std::string type = word(found[2]);
  return type == "real" ? "a real" : type == "int" ? "an int" : "";
}

// Throws unless the kernel takes what a launch passes. A kernel with parameters of other forms is not checked.
void require_parameters(const CustomOp& op, const Inputs& inputs, Dtype dtype, std::size_t numbers) {
  const auto array_of = [](Dtype type) {
    return std::string("an array of ") + (type == i32         ? "int"
                                          : type == i64       ? "long"
                                          : is_floating(type) ? "real"
                                                              : "uchar");
  };
  std::vector<std::pair<std::string, std::string>> passed;  // what, and its role
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) return;  // refused later
    passed.emplace_back(array_of(inputs[i].dtype()), "input " + std::to_string(i));
  }
  passed.emplace_back(array_of(dtype), "the result");
  passed.emplace_back("an int", "the number of elements");
  for (std::size_t i = 0; i < op.sizes.size(); ++i) passed.emplace_back("an int", "size " + std::to_string(i));
  for (std::size_t i = 0; i < numbers; ++i) passed.emplace_back("a real", "parameter " + std::to_string(i));
  static std::mutex mutex;
  static std::unordered_set<std::string>
      known;  // what fits; a loop calls an op with the same arguments again and again
  std::string key = op.entry + '\n' + op.source;
  for (const auto& argument : passed) key += '\n' + argument.first;
  {
    const std::lock_guard lock(mutex);
    if (known.count(key) != 0) return;
  }
  const std::optional<std::string> text = parameters_of(op.source, op.entry);
  if (!text) return;
  const std::vector<std::string> list = split(*text);
  for (const std::string& parameter : list)
    if (taken_by(parameter).empty()) return;
  const std::string kernel = op.name + ": kernel " + op.entry;
  for (std::size_t i = 0; i < std::min(list.size(), passed.size()); ++i)
    if (taken_by(list[i]) != passed[i].first)
      throw ArgumentError(kernel + ": parameter " + std::to_string(i) + ", \"" + list[i] + "\", takes " +
                          taken_by(list[i]) + ", it is passed " + passed[i].first + " (" + passed[i].second + ")");
  if (list.size() < passed.size())
    throw ArgumentError(kernel + ": has " + std::to_string(list.size()) + " parameters, it is passed " +
                        std::to_string(passed.size()) + "; the first without a parameter is " +
                        passed[list.size()].first + " (" + passed[list.size()].second + ")");
  if (list.size() > passed.size())
    throw ArgumentError(kernel + ": parameter " + std::to_string(passed.size()) + ", \"" + list[passed.size()] +
                        "\", is passed nothing; integers come from CustomOp::sizes, numbers from the call");
  const std::lock_guard lock(mutex);
  known.insert(std::move(key));
}

class Custom final : public Op {
 public:
  Custom(CustomOp op, std::size_t inputs, Dtype real) : op_(std::move(op)), inputs_(inputs), real_(real) {}
  std::string_view name() const override { return op_.name; }
  void hash(Hasher& hasher) const override {
    hasher.add(std::string_view(op_.source));
    hasher.add(std::string_view(op_.entry));
    hasher.add(static_cast<std::uint64_t>(op_.elements_per_item));
    hasher.add(static_cast<std::uint64_t>(op_.sizes.size()));
    for (const std::int64_t size : op_.sizes) hasher.add(static_cast<std::uint64_t>(size));
    hasher.add(static_cast<std::uint64_t>(real_));
  }

  void launch(Launch& run) const override {
    const std::int64_t n = run.dst_shape().size();
    const std::int64_t items = (n + op_.elements_per_item - 1) / op_.elements_per_item;
    KernelCall call = run.generated(op_.source, op_.entry, real_, op_.name);
    for (std::size_t i = 0; i < inputs_; ++i) call.args(run.src(static_cast<int>(i)));
    call.args(run.dst(), static_cast<int>(n));
    for (const std::int64_t size : op_.sizes) call.args(static_cast<int>(size));
    for (std::size_t p = 0; p < run.node().scalars.size(); ++p) call.args(DynamicReal{static_cast<int>(p)});
    call.over_items(items);
  }

  std::vector<Array> gradient(const GradientRequest& g) const override {
    if (!op_.gradient) throw ArgumentError(op_.name + ": this custom op has no gradient; set CustomOp::gradient");
    std::vector<Array> dx = op_.gradient(g.dy[0], g.src, g.dst[0]);
    if (dx.size() != g.src.size())
      throw ArgumentError(op_.name + ": its gradient must give one array per input (" + std::to_string(g.src.size()) +
                          "), it gave " + std::to_string(dx.size()));
    for (std::size_t i = 0; i < dx.size(); ++i)
      if (dx[i].defined() && is_floating(g.src[i].dtype()) &&
          !(dx[i].shape() == g.src[i].shape() && dx[i].dtype() == g.src[i].dtype()))
        throw ArgumentError(op_.name + ": its gradient of input " + std::to_string(i) + " must be " +
                            describe(g.src[i]) + ", as the input is, it is " + describe(dx[i]));
    return dx;
  }

 private:
  CustomOp op_;
  std::size_t inputs_;
  Dtype real_;  // of the kernel: f32 or f64
};

}  // namespace
}  // namespace detail

Array custom_op(const CustomOp& op, const Inputs& inputs, const Shape& shape, std::optional<Dtype> wanted,
                std::span<const double> parameters) {
  if (op.name.empty() || op.entry.empty() || op.source.empty())
    throw ArgumentError("custom_op: needs a name, an entry and a source; name is \"" + op.name + "\", entry is \"" +
                        op.entry + "\"");
  if (inputs.empty()) throw ArgumentError(op.name + ": needs at least one input");
  if (op.elements_per_item < 1)
    throw ArgumentError(op.name + ": elements_per_item must be 1 or more, it is " +
                        std::to_string(op.elements_per_item));
  for (const std::int64_t size : op.sizes)
    if (size != static_cast<int>(size))
      throw ArgumentError(op.name + ": sizes are ints in the kernel, got " + std::to_string(size));
  std::vector<Array> converted(inputs.begin(), inputs.end());
  std::optional<Dtype> widest;
  for (const Array& a : converted)
    if (a.defined() && is_floating(a.dtype())) {
      const bool differ = widest && *widest != a.dtype();
      widest = !differ ? a.dtype() : *widest == f64 || a.dtype() == f64 ? f64 : f32;
    }
  const Dtype dtype = wanted.value_or(widest.value_or(f32));
  const Dtype real = dtype == f64 || widest == f64 ? f64 : f32;
  detail::require_parameters(op, inputs, dtype, parameters.size());
  for (Array& a : converted)
    if (a.defined() && is_floating(a.dtype()) && a.dtype() != real) a = astype(a, real);
  std::vector<detail::Scalar> scalars(parameters.begin(), parameters.end());
  const Array result = detail::make_array(detail::make_op<detail::Custom>(op, inputs.size(), real), shape,
                                          is_floating(dtype) ? real : dtype, converted, std::move(scalars));
  return result.dtype() == dtype ? result : astype(result, dtype);
}

}  // namespace samebytes

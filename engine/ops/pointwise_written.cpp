// Pointwise nodes in ONNX: PointwiseRow::written, read once and put operator by operator.
#include <cstdlib>

#include "ops/dtypes.h"
#include "ops/pointwise.h"

namespace samebytes::detail {
namespace {

class Reader {
 public:
  Reader(const char* text, NodeWriter& writer, std::vector<NodeWriter::Name> operands, Dtype numbers)
      : at_(text), writer_(writer), operands_(std::move(operands)), numbers_(numbers) {}

  // $0, #0, a number, or Name[key=number,...](value,...)
  NodeWriter::Name value() {
    if (*at_ == '$') return operands_[digit()];
    if (*at_ < 'A' || *at_ > 'Z') return writer_.number(number(), numbers_);
    std::string type;
    while ((*at_ >= 'A' && *at_ <= 'Z') || (*at_ >= 'a' && *at_ <= 'z')) type += *at_++;
    NodeWriter::Attributes attributes;
    if (*at_ == '[') {
      do {
        ++at_;
        std::string key;
        while (*at_ != '=') key += *at_++;
        ++at_;
        attributes.push_back({key, number()});
      } while (*at_ == ',');
      ++at_;
    }
    std::vector<NodeWriter::Name> inputs;
    do {
      ++at_;
      inputs.push_back(value());
    } while (*at_ == ',');
    ++at_;
    return writer_.put(numbers_ == bool_ ? of_bools(type) : type, inputs, attributes);
  }

 private:
  // ONNX's arithmetic takes no bools.
  static std::string of_bools(const std::string& type) {
    if (type == "Min" || type == "Mul") return "And";
    return type == "Max" || type == "Add" ? "Or" : type;
  }
  std::size_t digit() {
    const auto place = static_cast<std::size_t>(at_[1] - '0');
    at_ += 2;
    return place;
  }
  double number() {
    if (*at_ == '#') return writer_.scalar(digit()).real;
    char* end = nullptr;
    const double result = std::strtod(at_, &end);
    at_ = end;
    return result;
  }

  const char* at_;
  NodeWriter& writer_;
  const std::vector<NodeWriter::Name> operands_;
  const Dtype numbers_;
};

Dtype wider_of(Dtype a, Dtype b) {
  if (a == b || a == bool_) return b;
  if (is_floating(a) && is_floating(b)) return wider(a, b);
  return is_floating(b) || a == u8 ? b : a;
}

}  // namespace

void Pointwise::write(NodeWriter& writer) const {
  if (row_.written == nullptr) writer.refuse("ONNX has no operator for it");
  NodeWriter::Ints order;
  std::vector<NodeWriter::Name> operands = writer.operands(order);
  // ONNX wants operands of one type; a condition, which decides between the others, keeps its own.
  const bool is_choice = std::string_view(row_.written).starts_with("Where($");
  const std::size_t condition = is_choice ? static_cast<std::size_t>(row_.written[7] - '0') : operands.size();
  Dtype inside = writer.dtype(condition == 0 ? 1 : 0);
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (i != condition) inside = wider_of(inside, writer.dtype(i));
  if (row_.result != PointwiseRow::Result::truth) inside = writer.result_dtype();
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (i != condition) operands[i] = writer.cast(operands[i], writer.dtype(i), inside);
  const NodeWriter::Name result = Reader(row_.written, writer, std::move(operands), inside).value();
  writer.give(order.empty() ? result : writer.turned(result, order));
}

}  // namespace samebytes::detail

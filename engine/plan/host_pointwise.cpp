#include "plan/host_pointwise.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ops/host.h"
#include "plan/pointwise_text.h"
#include "runtime/runtime.h"

namespace samebytes::detail {
namespace {

using Code = HostInstruction::Code;

// A register of the program, and what it holds.
struct Value {
  int at = 0;
  bool is_real = false;
};

// Functions of one real, as expressions write them.
constexpr std::pair<std::string_view, Code> kFunctions[] = {{"sqrt(", Code::root},
                                                            {"floor(", Code::floor},
                                                            {"rint(", Code::round},
                                                            {"fabs(", Code::magnitude},
                                                            {"sb_exp(", Code::exp},
                                                            {"sb_expm1(", Code::expm1},
                                                            {"sb_log(", Code::log},
                                                            {"sb_log1p(", Code::log1p},
                                                            {"sb_tanh(", Code::tanh},
                                                            {"sb_erf(", Code::erf},
                                                            {"sb_gelu_slope(", Code::gelu_slope}};
// Those that are polynomials of ours in vectors of f32.
constexpr bool is_own(Code code) { return code >= Code::exp && code <= Code::gelu_slope; }

// What an expression means is not known to the host.
struct Unknown {};

class Compiler {
 public:
  Compiler(const PointwiseKernel& kernel, std::span<const Node* const> members, const Device& device)
      : kernel_(kernel),
        members_(members),
        has_fma_(device.info().has_fma),
        has_own_(has_fma_ && kernel.real == Dtype::f32 && device.personality() == Personality::cpu &&
                 device.vector_width(Dtype::f32) > 1) {}

  HostPointwise compile() {
    program_.is_double = kernel_.real == Dtype::f64;
    program_.sizes = kernel_.sizes;
    for (const PointwiseInput& input : kernel_.inputs) {
      const Value value = fresh(is_real(checked(input.node->dtype)));
      value_of_.emplace(input.node, value);
      program_.inputs.push_back({input.node->dtype, input.strides, value.at});
    }
    int scalar = 0;
    for (const Node* member : members_) {
      first_scalar_ = scalar;
      scalar += static_cast<int>(member->scalars.size());
      value_of_[member] = value_of(*member);
    }
    for (const Node* output : kernel_.outputs) program_.outputs.push_back({output->dtype, value_of_.at(output).at});
    if (members_.empty()) {  // a copy, or zeros
      const Value value =
          kernel_.inputs.empty() ? constant(is_real(kernel_.plain), 0) : value_of_.at(kernel_.inputs[0].node);
      program_.outputs.push_back({checked(kernel_.plain), value.at});
    }
    drop_unused();
    join_choices();
    return std::move(program_);
  }

 private:
  static Dtype checked(Dtype dtype) {
    if (dtype == Dtype::f16 || dtype == Dtype::bf16) throw Unknown();
    return dtype;
  }

  Value fresh(bool is_real) {
    if (program_.registers == HostPointwise::kMostRegisters) throw Unknown();
    return {program_.registers++, is_real};
  }
  Value emit(Code code, bool is_real, Value a, Value b = {}, Value c = {}) {
    const Value to = fresh(is_real);
    program_.code.push_back({code, to.at, a.at, b.at, c.at});
    return to;
  }
  Value constant(bool is_real, double value) {
    const auto [found, is_new] = constants_.try_emplace({is_real, value});
    if (is_new) {
      found->second = fresh(is_real);
      program_.constants.push_back({found->second.at, is_real, value});
    }
    return found->second;
  }
  Value as(Value value, bool is_real) {
    if (value.is_real == is_real) return value;
    return emit(is_real ? Code::to_real : Code::to_int, is_real, value);
  }

  // Instructions whose value nobody reads.
  void drop_unused() {
    std::vector<char> is_read(HostPointwise::kMostRegisters, 0);
    for (const HostPointwise::Output& output : program_.outputs) is_read[static_cast<std::size_t>(output.from)] = 1;
    std::vector<HostInstruction> kept;
    for (std::size_t i = program_.code.size(); i-- > 0;) {
      const HostInstruction& at = program_.code[i];
      if (!is_read[static_cast<std::size_t>(at.to)]) continue;
      for (const int from : {at.a, at.b, at.c}) is_read[static_cast<std::size_t>(from)] = 1;  // 0 where there is none
      kept.push_back(at);
    }
    program_.code.assign(kept.rbegin(), kept.rend());
  }

  // A comparison that one choice alone asks for becomes part of it.
  void join_choices() {
    static constexpr std::pair<Code, Code> kJoined[] = {{Code::less, Code::select_less},
                                                        {Code::less_equal, Code::select_less_equal},
                                                        {Code::greater, Code::select_greater},
                                                        {Code::greater_equal, Code::select_greater_equal}};
    std::vector<int> readers(HostPointwise::kMostRegisters, 0);
    for (const HostPointwise::Output& output : program_.outputs) ++readers[static_cast<std::size_t>(output.from)];
    for (const HostInstruction& at : program_.code)
      for (const int from : {at.a, at.b, at.c}) ++readers[static_cast<std::size_t>(from)];
    std::vector<HostInstruction> joined;
    for (const HostInstruction& at : program_.code) {
      joined.push_back(at);
      if (at.code != Code::select || readers[static_cast<std::size_t>(at.a)] != 1) continue;
      const auto maker = std::find_if(joined.begin(), joined.end(), [&](const auto& made) { return made.to == at.a; });
      if (maker == joined.end()) continue;
      for (const auto& [comparison, choice] : kJoined)
        if (maker->code == comparison) {
          joined.back() = {choice, at.to, maker->a, maker->b, at.b, at.c};
          joined.erase(maker);
          break;
        }
    }
    program_.code = std::move(joined);
  }

  // A truth of an expression, which is a number there, stays a whole number where only zero or not counts.
  Value emit_number(Value truth) {
    const Value number = as(truth, compute_real_);
    if (number.is_real) truth_of_.try_emplace(number.at, truth);
    return number;
  }
  std::optional<Value> truth_of(Value number) const {
    const auto found = truth_of_.find(number.at);
    return found == truth_of_.end() ? std::nullopt : std::optional(found->second);
  }

  // As Writer::member_text of pointwise_kernel.cpp has it.
  Value value_of(const Node& member) {
    const bool result_real = is_real(checked(member.dtype));
    member_ = &member;
    compute_real_ = computes_real(member);
    text_ = member.op->traits().expression;
    Value value = comparison();
    if (!text_.empty() || value.is_real != compute_real_) throw Unknown();
    if (const auto truth = truth_of(value); truth && member.dtype == Dtype::bool_)
      return are_truths_.count(truth->at) != 0 ? *truth : emit(Code::not_equal_i, false, *truth, constant(false, 0));
    if (member.dtype == Dtype::bool_)
      return compute_real_ ? emit(Code::not_equal, false, value, constant(true, 0))
                           : emit(Code::not_equal_i, false, value, constant(false, 0));
    value = as(value, result_real);
    return member.dtype == Dtype::u8 ? emit(Code::low_byte, false, value) : value;
  }

  Value operand(std::size_t i) {
    if (i >= member_->inputs.size()) throw Unknown();
    const auto found = value_of_.find(member_->inputs[i].node.get());
    if (found == value_of_.end()) throw Unknown();
    return as(found->second, compute_real_);
  }

  // ---- expressions: comparisons of sums of products

  void skip_blanks() {
    while (!text_.empty() && text_.front() == ' ') text_.remove_prefix(1);
  }
  bool take(std::string_view word) {
    skip_blanks();
    if (text_.substr(0, word.size()) != word) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) throw Unknown();
  }

  Value comparison() {
    static constexpr std::pair<std::string_view, std::pair<Code, Code>> kSigns[] = {
        {"==", {Code::equal, Code::equal_i}},
        {"!=", {Code::not_equal, Code::not_equal_i}},
        {"<=", {Code::less_equal, Code::less_equal_i}},
        {">=", {Code::greater_equal, Code::greater_equal_i}},
        {"<", {Code::less, Code::less_i}},
        {">", {Code::greater, Code::greater_i}}};
    const Value left = sum();
    for (const auto& [sign, codes] : kSigns)
      if (take(sign)) {
        const Value right = sum();
        if (left.is_real != right.is_real) throw Unknown();
        const Value truth = emit(left.is_real ? codes.first : codes.second, false, left, right);
        are_truths_.insert(truth.at);
        return truth;
      }
    return left;
  }
  Value sum() {
    Value left = term();
    for (;;) {
      const bool adds = take("+");
      if (!adds && !take("-")) return left;
      const Value right = term();
      left = both(left, right, adds ? Code::add : Code::subtract, adds ? Code::add_i : Code::subtract_i);
    }
  }
  Value term() {
    Value left = factor();
    for (;;) {
      const bool multiplies = take("*");
      if (!multiplies && !take("/")) return left;
      const Value right = factor();
      if (!multiplies && !left.is_real) throw Unknown();
      left = both(left, right, multiplies ? Code::multiply : Code::divide, Code::multiply_i);
    }
  }
  Value both(Value left, Value right, Code of_reals, Code of_ints) {
    if (left.is_real != right.is_real) throw Unknown();
    const Value result = emit(left.is_real ? of_reals : of_ints, left.is_real, left, right);
    const auto a = truth_of(left), b = truth_of(right);
    if (a && b && (of_reals == Code::add || of_reals == Code::subtract))
      truth_of_.try_emplace(result.at, emit(of_ints, false, *a, *b));
    return result;
  }
  Value factor() {
    if (take("-")) {
      const Value value = factor();
      return emit(value.is_real ? Code::negate : Code::negate_i, value.is_real, value);
    }
    if (take("(SB_TYPE)")) return factor();  // of what already has the compute type
    if (take("(")) {
      const Value value = comparison();
      expect(")");
      return value;
    }
    if (take("$")) return operand(digit());
    if (take("#")) return scalar(digit());
    return named();
  }
  std::size_t digit() {
    if (text_.empty() || !std::isdigit(static_cast<unsigned char>(text_.front()))) throw Unknown();
    const std::size_t value = static_cast<std::size_t>(text_.front() - '0');
    text_.remove_prefix(1);
    return value;
  }
  Value scalar(std::size_t index) {
    if (!compute_real_ || index >= member_->scalars.size()) throw Unknown();
    const int place = first_scalar_ + static_cast<int>(index);
    const auto [found, is_new] = scalars_.try_emplace(place);
    if (is_new) {
      found->second = fresh(true);
      program_.parameters.push_back({found->second.at, place});
    }
    return found->second;
  }
  Value named() {
    if (take("SB_ZERO")) return constant(compute_real_, 0);
    if (take("REAL_C(")) return literal();
    if (take("SB_TRUTH(")) {
      const Value truth = comparison();
      expect(")");
      if (truth.is_real) throw Unknown();
      return emit_number(truth);
    }
    if (take("SB_WHERE(")) {
      const Value condition = comparison();
      expect(",");
      const Value yes = comparison();
      expect(",");
      const Value no = comparison();
      expect(")");
      if (yes.is_real != no.is_real) throw Unknown();
      const auto known = truth_of(condition);
      const Value truth = known               ? *known
                          : condition.is_real ? emit(Code::not_equal, false, condition, constant(true, 0))
                                              : condition;
      return emit(yes.is_real ? Code::select : Code::select_i, yes.is_real, truth, yes, no);
    }
    for (const auto& [name, code] : kFunctions)
      if ((has_own_ || !is_own(code)) && take(name)) return emit(code, true, real_argument());
    if (take("sb_square(")) {
      const Value x = real_argument();
      return emit(Code::multiply, true, x, x);
    }
    if (take("sb_cube(")) {
      const Value x = real_argument();
      return emit(Code::multiply, true, emit(Code::multiply, true, x, x), x);
    }
    if (take("sb_root(")) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      const Value x = real_argument(), root = emit(Code::root, true, emit(Code::add, true, x, constant(true, 0)));
      const Value is_lowest = emit(Code::equal, false, x, constant(true, -kInfinity));
      return emit(Code::select, true, is_lowest, constant(true, kInfinity), root);
    }
    if (has_fma_ && take("FMA(")) {
      const Value a = comparison();
      expect(",");
      const Value b = comparison();
      expect(",");
      const Value c = comparison();
      expect(")");
      if (!a.is_real || !b.is_real || !c.is_real) throw Unknown();
      return emit(Code::multiply_add, true, a, b, c);
    }
    throw Unknown();
  }
  Value real_argument() {
    const Value value = comparison();
    expect(")");
    if (!value.is_real) throw Unknown();
    return value;
  }
  Value literal() {
    const std::string digits(text_.substr(0, text_.find(')')));
    char* end = nullptr;
    // Rounded once, as the compiler of the kernel does.
    const double value = program_.is_double ? std::strtod(digits.c_str(), &end) : std::strtof(digits.c_str(), &end);
    if (digits.empty() || *end != '\0') throw Unknown();
    text_.remove_prefix(digits.size());
    expect(")");
    return constant(true, value);
  }

  const PointwiseKernel& kernel_;
  std::span<const Node* const> members_;
  const bool has_fma_;
  const bool has_own_;  // the kernel's functions of vectors are texts of ours, not the driver's
  HostPointwise program_;
  std::unordered_map<const Node*, Value> value_of_;
  std::map<std::pair<bool, double>, Value> constants_;
  std::map<int, Value> scalars_;
  std::map<int, Value> truth_of_;  // by the register of the number: the whole number that is 0 where it is
  std::set<int> are_truths_;       // registers of 0 or 1
  const Node* member_ = nullptr;   // being compiled
  bool compute_real_ = false;
  int first_scalar_ = 0;
  std::string_view text_;  // what is left of its expression
};

// A function is a polynomial and a quotient.
constexpr double kFunctionPasses = 12;
std::ptrdiff_t functions_of(const HostPointwise& program) {
  return std::count_if(program.code.begin(), program.code.end(),
                       [](const HostInstruction& at) { return is_own(at.code); });
}

}  // namespace

std::shared_ptr<const HostForm> host_form_of(const PointwiseKernel& kernel, std::span<const Node* const> members,
                                             const Device& device) {
  std::int64_t elements = 1;
  for (const std::int64_t size : kernel.sizes) elements *= size;
  if (elements > kMostHostValues) return nullptr;
  try {
    HostPointwise program = Compiler(kernel, members, device).compile();
    const double passes = program.passes() + kFunctionPasses * static_cast<double>(functions_of(program));
    const std::int64_t inner = kernel.sizes.back(), lanes = program.lanes();
    const std::int64_t blocks = elements / inner * ((inner + lanes - 1) / lanes);
    const HostWork work{.steps = passes * static_cast<double>(blocks),
                        .values = passes * static_cast<double>(elements)};
    return std::make_shared<const HostForm>(
        HostForm{[program = std::move(program)](void* const* arrays, const double* scalars) {
                   host_pointwise(program, arrays, scalars);
                 },
                 work});
  } catch (const Unknown&) {
    return nullptr;
  }
}

}  // namespace samebytes::detail

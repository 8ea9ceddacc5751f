// Over 400 lines because one class compiles: expressions, and the patterns that become one instruction, share its
// program.
#include "plan/host_pointwise.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "ops/host.h"
#include "plan/expression.h"
#include "plan/pointwise_text.h"
#include "runtime/runtime.h"

namespace samebytes::detail {
namespace {

using Code = HostInstruction::Code;

// A register of the program and the kind of value in it.
enum class NumberKind : bool { whole, real };
NumberKind kind_of(Dtype dtype) { return is_real(dtype) ? NumberKind::real : NumberKind::whole; }
constexpr NumberKind kWholeNumber = NumberKind::whole, kRealNumber = NumberKind::real;

struct Value {
  int at = 0;
  NumberKind kind = kWholeNumber;
  bool is_real() const { return kind == kRealNumber; }
};

// Functions of one real, as expressions write them.
constexpr std::pair<std::string_view, Code> kFunctions[] = {{"sqrt", Code::root},
                                                            {"floor", Code::floor},
                                                            {"ceil", Code::ceil},
                                                            {"trunc", Code::trunc},
                                                            {"rint", Code::round},
                                                            {"fabs", Code::magnitude},
                                                            {"sb_exp", Code::exp},
                                                            {"sb_expm1", Code::expm1},
                                                            {"sb_log", Code::log},
                                                            {"sb_log1p", Code::log1p},
                                                            {"sb_tanh", Code::tanh},
                                                            {"sb_erf", Code::erf},
                                                            {"sb_gelu_slope", Code::gelu_slope},
                                                            {"sb_exp2", Code::exp2},
                                                            {"sb_log2", Code::log2},
                                                            {"sb_log10", Code::log10},
                                                            {"sb_sinh", Code::sinh},
                                                            {"sb_cosh", Code::cosh},
                                                            {"sb_atanh", Code::atanh},
                                                            {"sb_asin", Code::asin},
                                                            {"sb_acos", Code::acos},
                                                            {"sb_atan", Code::atan},
                                                            {"sb_sin", Code::sin},
                                                            {"sb_cos", Code::cos},
                                                            {"sb_tan", Code::tan}};
// Those that are polynomials of ours in vectors of f32.
constexpr bool is_own(Code code) { return code >= Code::exp && code <= Code::tan; }

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
    program_.is_double = kernel_.real == Dtype::f64 || (members_.empty() && kernel_.plain == Dtype::i64);
    program_.sizes = kernel_.sizes;
    for (const PointwiseInput& input : kernel_.inputs) {
      const Dtype dtype = checked(input.node->dtype);
      const Value value = fresh(kind_of(dtype));
      value_of_.emplace(input.node, value);
      program_.inputs.push_back({dtype, input.strides, value.at});
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
          kernel_.inputs.empty() ? constant(kind_of(checked(kernel_.plain)), 0) : value_of_.at(kernel_.inputs[0].node);
      program_.outputs.push_back({checked(kernel_.plain), value.at});
    }
    drop_unused();
    join_choices();
    return std::move(program_);
  }

 private:
  Dtype checked(Dtype dtype) const {
    if (dtype == Dtype::i64 && members_.empty()) return Dtype::f64;  // a copy, or zeros: doubles have as many bits
    if (dtype == Dtype::i64) throw Unknown();                        // registers hold 32 bits of whole numbers
    if (program_.is_double && (dtype == Dtype::f16 || dtype == Dtype::bf16)) throw Unknown();
    return dtype;
  }

  Value fresh(NumberKind kind) {
    if (program_.registers == HostPointwise::kMostRegisters) throw Unknown();
    return {program_.registers++, kind};
  }
  // The value of the instruction; texts repeat themselves, so it may be there already.
  Value emit(Code code, NumberKind kind, Value a, Value b = {}, Value c = {}) {
    for (const HostInstruction& made : program_.code)
      if (made.code == code && made.a == a.at && made.b == b.at && made.c == c.at) return {made.to, kind};
    const Value to = fresh(kind);
    program_.code.push_back({code, to.at, a.at, b.at, c.at});
    return to;
  }
  Value constant(NumberKind kind, double value) {
    const auto [found, is_new] = constants_.try_emplace({kind, value});
    if (is_new) {
      found->second = fresh(kind);
      program_.constants.push_back({found->second.at, kind == kRealNumber, value});
    }
    return found->second;
  }
  Value as(Value value, NumberKind kind) {
    if (value.kind == kind) return value;
    return emit(kind == kRealNumber ? Code::to_real : Code::to_int, kind, value);
  }

  // Removes instructions whose value nobody reads.
  void drop_unused() {
    std::vector<char> is_read(HostPointwise::kMostRegisters, 0);
    for (const HostPointwise::Output& output : program_.outputs) is_read[static_cast<std::size_t>(output.from)] = 1;
    std::vector<HostInstruction> kept;
    for (std::size_t i = program_.code.size(); i-- > 0;) {
      const HostInstruction& at = program_.code[i];
      if (!is_read[static_cast<std::size_t>(at.to)]) continue;
      for (const int from : {at.a, at.b, at.c}) is_read[static_cast<std::size_t>(from)] = 1;  // 0 if unused
      kept.push_back(at);
    }
    program_.code.assign(kept.rbegin(), kept.rend());
  }

  // How many instructions and results read each register.
  std::vector<int> readers() const {
    std::vector<int> count(HostPointwise::kMostRegisters, 0);
    for (const HostPointwise::Output& output : program_.outputs) ++count[static_cast<std::size_t>(output.from)];
    for (const HostInstruction& at : program_.code)
      for (const int from : {at.a, at.b, at.c, at.d}) ++count[static_cast<std::size_t>(from)];
    return count;
  }
  // Whether all lanes of a register have the same value.
  bool is_same_in_lanes(int at) const {
    const auto is_it = [at](const auto& value) { return value.to == at; };
    return std::any_of(program_.constants.begin(), program_.constants.end(), is_it) ||
           std::any_of(program_.parameters.begin(), program_.parameters.end(), is_it);
  }
  bool is_zero(int at) const {
    return std::any_of(program_.constants.begin(), program_.constants.end(),
                       [at](const HostPointwise::Constant& it) { return it.to == at && it.value == 0; });
  }
  // What a constant real is, if its negative is another number.
  std::optional<double> number_in(Value value) const {
    for (const HostPointwise::Constant& it : program_.constants)
      if (it.to == value.at && it.is_real && it.value != 0) return it.value;
    return std::nullopt;
  }

  // A comparison used by only one choice becomes part of it, and larger patterns become one instruction.
  void join_choices() {
    static constexpr std::pair<Code, Code> kJoined[] = {{Code::less, Code::select_less},
                                                        {Code::less_equal, Code::select_less_equal},
                                                        {Code::greater, Code::select_greater},
                                                        {Code::greater_equal, Code::select_greater_equal}};
    const std::vector<int> count = readers();
    std::vector<HostInstruction> joined;
    // The instruction with the one reader that is being looked at, if its code is this one.
    const auto only = [&](int at, Code code) -> const HostInstruction* {
      if (count[static_cast<std::size_t>(at)] != 1) return nullptr;
      const auto found = std::find_if(joined.begin(), joined.end(), [&](const auto& made) { return made.to == at; });
      return found == joined.end() || found->code != code ? nullptr : &*found;
    };
    const auto put = [&](const HostInstruction& instruction, std::initializer_list<int> instead_of) {
      std::erase_if(joined, [&](const HostInstruction& made) {
        return std::find(instead_of.begin(), instead_of.end(), made.to) != instead_of.end();
      });
      joined.push_back(instruction);
    };
    for (const HostInstruction& at : program_.code) {
      if (at.code == Code::select) {
        if (const auto* sum = only(at.a, Code::add_i)) {  // the maximum of two, NaN if one is
          const auto* is_nan = only(sum->b, Code::not_equal);
          const bool is_of_first = is_nan && is_nan->a == at.b && is_nan->b == at.b;
          const auto* above = is_of_first ? only(sum->a, Code::greater_equal) : nullptr;
          const auto* below = is_of_first ? only(sum->a, Code::less_equal) : nullptr;
          const auto* beyond = above ? above : below;
          if (beyond && beyond->a == at.b && beyond->b == at.c) {
            put({above ? Code::maximum : Code::minimum, at.to, at.b, at.c}, {sum->a, sum->b, at.a});
            continue;
          }
        }
        HostInstruction choice;
        for (const auto& [comparison, joint] : kJoined)
          if (const auto* made = only(at.a, comparison)) choice = {joint, at.to, made->a, made->b, at.b, at.c};
        if (choice.to == at.to) {
          const auto* upper = choice.code == Code::select_less ? only(choice.d, Code::select_greater) : nullptr;
          const bool is_clamp = upper && upper->a == choice.a && upper->d == choice.a && upper->b == upper->c &&
                                choice.b == choice.c && is_same_in_lanes(choice.b) && is_same_in_lanes(upper->b);
          if (is_clamp)
            put({Code::clamp, at.to, choice.a, choice.b, upper->b}, {at.a, choice.d});
          else
            put(choice, {at.a});
          joined.back().has_limit = is_same_in_lanes(joined.back().b);
          continue;
        }
      } else if (at.code == Code::subtract) {  // a sign
        const auto *one = only(at.a, Code::to_real), *other = only(at.b, Code::to_real);
        const auto* above = one ? only(one->a, Code::greater) : nullptr;
        const auto* below = other ? only(other->a, Code::less) : nullptr;
        if (above && below && above->a == below->a && is_zero(above->b) && is_zero(below->b)) {
          put({Code::sign, at.to, above->a}, {at.a, at.b, one->a, other->a});
          continue;
        }
      }
      joined.push_back(at);
    }
    program_.code = std::move(joined);
  }

  // A truth value is a number in the expression; it stays an integer if only zero or nonzero matters.
  Value emit_number(Value truth) {
    const Value number = as(truth, compute_kind_);
    if (number.is_real()) truth_of_.try_emplace(number.at, truth);
    return number;
  }
  std::optional<Value> truth_of(Value number) const {
    const auto found = truth_of_.find(number.at);
    return found == truth_of_.end() ? std::nullopt : std::optional(found->second);
  }

  // Same rules as Writer::member_text of pointwise_kernel.cpp.
  Value value_of(const Node& member) {
    const NumberKind wanted = kind_of(checked(member.dtype));
    member_ = &member;
    compute_kind_ = computes_real(member) ? kRealNumber : kWholeNumber;
    Value value = member.op->traits().updates_cell ? operand(1) : of(expression_of(*member.op));
    if (value.kind != compute_kind_) throw Unknown();
    if (const auto truth = truth_of(value); truth && member.dtype == Dtype::bool_)
      return are_truths_.count(truth->at) != 0
                 ? *truth
                 : emit(Code::not_equal_i, kWholeNumber, *truth, constant(kWholeNumber, 0));
    if (member.dtype == Dtype::bool_)
      return compute_kind_ == kRealNumber ? emit(Code::not_equal, kWholeNumber, value, constant(kRealNumber, 0))
                                          : emit(Code::not_equal_i, kWholeNumber, value, constant(kWholeNumber, 0));
    value = as(value, wanted);
    if (member.dtype == Dtype::f16) return emit(Code::round_f16, kRealNumber, value);
    if (member.dtype == Dtype::bf16) return emit(Code::round_bf16, kRealNumber, value);
    return member.dtype == Dtype::u8 ? emit(Code::low_byte, kWholeNumber, value) : value;
  }

  Value operand(std::size_t i) {
    if (i >= member_->inputs.size()) throw Unknown();
    const auto found = value_of_.find(member_->inputs[i].node.get());
    if (found == value_of_.end()) throw Unknown();
    return as(found->second, compute_kind_);
  }
  Value scalar(std::size_t index) {
    if (compute_kind_ != kRealNumber || index >= member_->scalars.size()) throw Unknown();
    const int place = first_scalar_ + static_cast<int>(index);
    const auto [found, is_new] = scalars_.try_emplace(place);
    if (is_new) {
      found->second = fresh(kRealNumber);
      program_.parameters.push_back({found->second.at, place});
    }
    return found->second;
  }
  // Rounded once, as the compiler of the kernel does.
  Value number(const std::string& digits) {
    return constant(kRealNumber, program_.is_double ? std::strtod(digits.c_str(), nullptr)
                                                    : static_cast<double>(std::strtof(digits.c_str(), nullptr)));
  }

  // ---- expressions

  Value of(const Expression& expression) {
    switch (expression.kind) {
      case Expression::Kind::operand: return operand(expression.index);
      case Expression::Kind::scalar: return scalar(expression.index);
      case Expression::Kind::number: return number(expression.word);
      case Expression::Kind::whole: return constant(compute_kind_, std::stod(expression.word));
      case Expression::Kind::zero: return constant(compute_kind_, 0);
      case Expression::Kind::cast: return of(expression.parts[0]);  // of what already has the compute type
      case Expression::Kind::negate: {
        const Value value = of(expression.parts[0]);
        if (const auto known = number_in(value)) return constant(kRealNumber, -*known);
        return emit(value.is_real() ? Code::negate : Code::negate_i, value.kind, value);
      }
      case Expression::Kind::binary: return binary(expression);
      case Expression::Kind::call: return call(expression);
      case Expression::Kind::place: break;
    }
    throw Unknown();
  }
  Value real(const Expression& expression) {
    const Value value = of(expression);
    if (!value.is_real()) throw Unknown();
    return value;
  }

  Value binary(const Expression& expression) {
    struct Sign {
      std::string_view word;
      Code of_reals, of_ints;
    };
    static constexpr Sign kSigns[] = {{"+", Code::add, Code::add_i},
                                      {"-", Code::subtract, Code::subtract_i},
                                      {"*", Code::multiply, Code::multiply_i},
                                      {"/", Code::divide, Code::divide},
                                      {"==", Code::equal, Code::equal_i},
                                      {"!=", Code::not_equal, Code::not_equal_i},
                                      {"<=", Code::less_equal, Code::less_equal_i},
                                      {">=", Code::greater_equal, Code::greater_equal_i},
                                      {"<", Code::less, Code::less_i},
                                      {">", Code::greater, Code::greater_i}};
    const auto* sign =
        std::find_if(std::begin(kSigns), std::end(kSigns), [&](const Sign& s) { return s.word == expression.word; });
    const Value left = of(expression.parts[0]), right = of(expression.parts[1]);
    if (sign == std::end(kSigns) || left.kind != right.kind) throw Unknown();
    if (sign->of_reals == Code::divide && !left.is_real()) throw Unknown();
    const Code code = left.is_real() ? sign->of_reals : sign->of_ints;
    if (sign->of_reals >= Code::equal && sign->of_reals <= Code::greater_equal) {
      const Value truth = emit(code, kWholeNumber, left, right);
      are_truths_.insert(truth.at);
      return truth;
    }
    const Value result = emit(code, left.kind, left, right);
    const auto a = truth_of(left), b = truth_of(right);
    if (a && b && (sign->word == "+" || sign->word == "-" || sign->word == "*"))
      truth_of_.try_emplace(result.at, emit(sign->of_ints, kWholeNumber, *a, *b));
    return result;
  }

  Value call(const Expression& expression) {
    const std::vector<Expression>& parts = expression.parts;
    for (const auto& [name, code] : kFunctions)
      if (expression.is_call(name) && (has_own_ || !is_own(code))) return emit(code, kRealNumber, real(parts[0]));
    if (expression.is_call("SB_TRUTH")) {
      const Value truth = of(parts[0]);
      if (truth.is_real()) throw Unknown();
      return emit_number(truth);
    }
    if (expression.is_call("sb_atan2") && has_own_)
      return emit(Code::atan2, kRealNumber, real(parts[0]), real(parts[1]));
    if (expression.is_call("sb_fmod")) return emit(Code::fmod, kRealNumber, real(parts[0]), real(parts[1]));
    if (expression.is_call("SB_WHERE")) return where(of(parts[0]), of(parts[1]), of(parts[2]));
    if (expression.is_call("sb_square") || expression.is_call("sb_cube")) {
      const Value x = real(parts[0]), square = emit(Code::multiply, kRealNumber, x, x);
      return expression.is_call("sb_square") ? square : emit(Code::multiply, kRealNumber, square, x);
    }
    if (expression.is_call("sb_root")) {
      constexpr double kInfinity = std::numeric_limits<double>::infinity();
      const Value x = real(parts[0]),
                  root = emit(Code::root, kRealNumber, emit(Code::add, kRealNumber, x, constant(kRealNumber, 0)));
      const Value is_lowest = emit(Code::equal, kWholeNumber, x, constant(kRealNumber, -kInfinity));
      return emit(Code::select, kRealNumber, is_lowest, constant(kRealNumber, kInfinity), root);
    }
    if (has_fma_ && expression.is_call("FMA")) {
      const Value a = real(parts[0]), b = real(parts[1]), c = real(parts[2]);
      return emit(Code::multiply_add, kRealNumber, a, b, c);
    }
    throw Unknown();
  }
  Value where(Value condition, Value yes, Value no) {
    if (yes.kind != no.kind) throw Unknown();
    const auto known = truth_of(condition);
    const Value truth = known                 ? *known
                        : condition.is_real() ? emit(Code::not_equal, kWholeNumber, condition, constant(kRealNumber, 0))
                                              : condition;
    return emit(yes.is_real() ? Code::select : Code::select_i, yes.kind, truth, yes, no);
  }

  const PointwiseKernel& kernel_;
  std::span<const Node* const> members_;
  const bool has_fma_;
  const bool has_own_;  // the kernel's vector functions are our own texts, not the driver's
  HostPointwise program_;
  std::unordered_map<const Node*, Value> value_of_;
  std::map<std::pair<NumberKind, double>, Value> constants_;
  std::map<int, Value> scalars_;
  std::map<int, Value> truth_of_;  // by the number's register: the integer that is 0 if the number is
  std::set<int> are_truths_;       // registers of 0 or 1
  const Node* member_ = nullptr;   // currently compiled
  NumberKind compute_kind_ = kWholeNumber;
  int first_scalar_ = 0;
};

// A function is a polynomial and a quotient, in registers: as long as so many sums of arrays.
constexpr double kFunctionPasses = 3;
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
    const std::int64_t units = program.units();
    const HostWork work{.steps = program.starts(), .values = passes * static_cast<double>(elements)};
    const auto shared = std::make_shared<const HostPointwise>(std::move(program));
    return std::make_shared<const HostForm>(
        units,
        [shared](void* const* arrays, const double* scalars, std::int64_t begin, std::int64_t end) {
          host_pointwise(*shared, arrays, scalars, begin, end);
        },
        work);
  } catch (const Unknown&) {
    return nullptr;
  }
}

}  // namespace samebytes::detail

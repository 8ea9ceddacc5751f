#include "plan/expression.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <map>
#include <mutex>
#include <utility>

#include "samebytes/error.h"

namespace samebytes::detail {
namespace {

using Kind = Expression::Kind;

class Parser {
 public:
  explicit Parser(std::string_view text) : whole_(text), rest_(text) {}

  Expression parse() {
    Expression result = comparison();
    skip_blanks();
    if (!rest_.empty()) fail("the end");
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw Error("pointwise expression \"" + std::string(whole_) + "\": expected " + expected + " at \"" +
                std::string(rest_) + "\"");
  }
  void skip_blanks() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  bool take(std::string_view word) {
    skip_blanks();
    if (rest_.substr(0, word.size()) != word) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(const char* word) {
    if (!take(word)) fail(std::string("'") + word + "'");
  }

  // The first of `signs` that stands here, or nothing.
  std::string_view taken_of(std::initializer_list<std::string_view> signs) {
    for (const std::string_view sign : signs)
      if (take(sign)) return sign;
    return {};
  }
  static Expression both(Expression left, std::string_view sign, Expression right) {
    Expression result{Kind::binary, 0, std::string(sign)};
    result.parts.push_back(std::move(left));
    result.parts.push_back(std::move(right));
    return result;
  }

  Expression comparison() {
    Expression left = sum();
    const std::string_view sign = taken_of({"==", "!=", "<=", ">=", "<", ">"});
    return sign.empty() ? left : both(std::move(left), sign, sum());
  }
  Expression sum() {
    Expression left = term();
    for (std::string_view sign; !(sign = taken_of({"+", "-"})).empty();) left = both(std::move(left), sign, term());
    return left;
  }
  Expression term() {
    Expression left = factor();
    for (std::string_view sign; !(sign = taken_of({"*", "/", "%"})).empty();)
      left = both(std::move(left), sign, factor());
    return left;
  }
  Expression factor() {
    if (take("-")) return {Kind::negate, 0, {}, {factor()}};
    if (take("(SB_TYPE)")) return {Kind::cast, 0, {}, {factor()}};
    if (take("(")) {
      Expression inside = comparison();
      expect(")");
      return inside;
    }
    if (take("$")) return {Kind::operand, digit()};
    if (take("#")) return {Kind::scalar, digit()};
    if (take("PLACE_OF_")) return {Kind::place, digit()};
    if (take("SB_ZERO")) return {Kind::zero};
    if (take("REAL_C(")) {
      Expression number{Kind::number, 0, std::string(rest_.substr(0, rest_.find(')')))};
      rest_.remove_prefix(number.word.size());
      expect(")");
      return number;
    }
    if (!rest_.empty() && is_digit(rest_.front())) return {Kind::whole, 0, taken_while(is_digit)};
    return call();
  }
  static bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
  static bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
  std::string taken_while(bool (*belongs)(char)) {
    std::string word(rest_.begin(), std::find_if_not(rest_.begin(), rest_.end(), belongs));
    rest_.remove_prefix(word.size());
    return word;
  }
  std::size_t digit() {
    if (rest_.empty() || !is_digit(rest_.front())) fail("a digit");
    const auto value = static_cast<std::size_t>(rest_.front() - '0');
    rest_.remove_prefix(1);
    return value;
  }
  Expression call() {
    Expression result{Kind::call, 0, taken_while(is_of_name)};
    if (result.word.empty()) fail("an operand or a function");
    expect("(");
    do result.parts.push_back(comparison());
    while (take(","));
    expect(")");
    return result;
  }

  const std::string_view whole_;
  std::string_view rest_;
};

}  // namespace

Expression parse_expression(std::string_view text) { return Parser(text).parse(); }

const Expression& expression_of(const Op& op) {
  static std::mutex mutex;
  static std::map<std::string, Expression, std::less<>> known;
  const std::string_view text = op.traits().expression;
  const std::lock_guard lock(mutex);
  auto found = known.find(text);
  if (found == known.end()) found = known.emplace(std::string(text), parse_expression(text)).first;
  return found->second;
}

bool is_costly(const Expression& expression) {
  static constexpr std::array<std::string_view, 8> kCheap{"SB_TRUTH", "SB_WHERE",  "FMA",     "fabs",
                                                          "floor",    "sb_square", "sb_cube", "rint"};
  if (expression.kind == Kind::binary && (expression.word == "/" || expression.word == "%")) return true;
  if (expression.kind == Kind::call && std::find(kCheap.begin(), kCheap.end(), expression.word) == kCheap.end())
    return true;
  return std::any_of(expression.parts.begin(), expression.parts.end(), is_costly);
}

}  // namespace samebytes::detail

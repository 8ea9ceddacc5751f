// Values of templates as Python has them: truth, comparison, printing, parts and arithmetic.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "text/jinja.h"
#include "text/jinja_text.h"

namespace samebytes::detail::jinja {
namespace {

bool is_whole(const Value& value) { return value.is_number_integer() || value.is_boolean(); }
bool is_number(const Value& value) { return value.is_number() || value.is_boolean(); }
std::int64_t whole_of(const Value& value) {
  return value.is_boolean() ? std::int64_t{value.get<bool>()} : value.get<std::int64_t>();
}
double real_of(const Value& value) {
  return value.is_boolean() ? static_cast<double>(value.get<bool>()) : value.get<double>();
}

std::string real_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return Value(value).dump();
}

// Python's repr().
std::string shown(const Value& value) {
  if (!value.is_string()) return printed(value);
  const auto& text = value.get_ref<const std::string&>();
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string result(1, quote);
  for (const char c : text) {
    if (c == '\n')
      result += "\\n";
    else if (c == '\t')
      result += "\\t";
    else if (c == '\r')
      result += "\\r";
    else if (c == quote || c == '\\')
      result += '\\', result += c;
    else
      result += c;
  }
  return result + quote;
}

std::string kind_of(const Value& value) {
  if (value.is_discarded()) return "something undefined";
  if (value.is_null()) return "none";
  if (value.is_string()) return "a text";
  if (value.is_array()) return "a list";
  return value.is_object() ? "an object" : "a number";
}

std::int64_t floored(std::int64_t a, std::int64_t b) {
  const std::int64_t quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

Value whole_arithmetic(const std::string& sign, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  const auto checked = [&](bool overflows) {
    if (overflows) throw std::invalid_argument("expected a whole number of 64 bits, got a larger one");
    return Value(result);
  };
  if (sign == "+") return checked(__builtin_add_overflow(a, b, &result));
  if (sign == "-") return checked(__builtin_sub_overflow(a, b, &result));
  if (sign == "*") return checked(__builtin_mul_overflow(a, b, &result));
  if (sign == "**") {
    constexpr double kLargest = 9e18;
    const double power = std::pow(static_cast<double>(a), static_cast<double>(b));
    return b >= 0 && std::fabs(power) < kLargest ? Value(static_cast<std::int64_t>(power)) : Value(power);
  }
  if (b == 0) throw std::invalid_argument("division by zero");
  if (sign == "/") return static_cast<double>(a) / static_cast<double>(b);
  if (a == std::numeric_limits<std::int64_t>::min()) checked(true);
  if (sign == "//") return floored(a, b);
  return a - floored(a, b) * b;
}
Value real_arithmetic(const std::string& sign, double a, double b) {
  if (sign == "+") return a + b;
  if (sign == "-") return a - b;
  if (sign == "*") return a * b;
  if (sign == "**") return std::pow(a, b);
  if (b == 0) throw std::invalid_argument("division by zero");
  if (sign == "/") return a / b;
  if (sign == "//") return std::floor(a / b);
  return a - std::floor(a / b) * b;
}

// The places that a slice takes of `size` ones.
std::vector<std::size_t> places(std::int64_t size, const Value& from, const Value& to, const Value& step) {
  const auto number = [](const Value& value, std::int64_t fallback) {
    if (value.is_null()) return fallback;
    if (!is_whole(value)) throw std::invalid_argument("expected whole numbers in a slice, got " + kind_of(value));
    return whole_of(value);
  };
  const std::int64_t stride = number(step, 1);
  if (stride == 0) throw std::invalid_argument("expected a step that is not 0");
  const std::int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? size : size - 1;
  const auto bound = [&](const Value& value, std::int64_t fallback) {
    if (value.is_null()) return fallback;
    std::int64_t at = number(value, 0);
    if (at < 0) at = at < -size ? low : at + size;
    return std::clamp(at, low, std::max(low, high));
  };
  const std::int64_t begin = bound(from, stride > 0 ? low : high), end = bound(to, stride > 0 ? high : low);
  std::vector<std::size_t> result;
  for (std::int64_t i = begin; stride > 0 ? i < end : i > end;) {
    result.push_back(static_cast<std::size_t>(i));
    if (stride > 0 ? end - i <= stride : end - i >= stride) break;
    i += stride;
  }
  return result;
}

}  // namespace

Value undefined() { return Value(Value::value_t::discarded); }

bool is_true(const Value& value) {
  if (value.is_discarded() || value.is_null()) return false;
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number()) return value.get<double>() != 0;
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return !value.empty();
}

bool equal(const Value& a, const Value& b) {
  if (a.is_discarded() || b.is_discarded()) return a.is_discarded() && b.is_discarded();
  if (is_whole(a) && is_whole(b)) return whole_of(a) == whole_of(b);
  if (is_number(a) && is_number(b)) return real_of(a) == real_of(b);
  if (!a.is_object() || !b.is_object()) return a == b;
  if (a.size() != b.size()) return false;  // in any order
  return std::all_of(a.items().begin(), a.items().end(), [&](const auto& item) {
    const auto found = b.find(item.key());
    return found != b.end() && equal(item.value(), *found);
  });
}

bool less(const Value& a, const Value& b) {
  if (is_number(a) && is_number(b)) return real_of(a) < real_of(b);
  if ((a.is_string() && b.is_string()) || (a.is_array() && b.is_array())) return a < b;
  throw std::invalid_argument("expected two numbers or two texts to compare, got " + kind_of(a) + " and " + kind_of(b));
}

bool contains(const Value& whole, const Value& part) {
  if (whole.is_discarded()) return false;
  if (whole.is_string()) {
    if (!part.is_string()) throw std::invalid_argument("expected a text to look for in a text, got " + kind_of(part));
    return whole.get_ref<const std::string&>().find(part.get_ref<const std::string&>()) != std::string::npos;
  }
  if (whole.is_object()) return part.is_string() && whole.contains(part.get_ref<const std::string&>());
  if (whole.is_array())
    return std::any_of(whole.begin(), whole.end(), [&](const Value& one) { return equal(one, part); });
  throw std::invalid_argument("expected a text, a list or an object to look in, got " + kind_of(whole));
}

std::string printed(const Value& value) {
  if (value.is_discarded()) return {};
  if (value.is_string()) return value.get<std::string>();
  if (value.is_null()) return "None";
  if (value.is_boolean()) return value.get<bool>() ? "True" : "False";
  if (value.is_number_float()) return real_text(value.get<double>());
  if (value.is_number()) return value.dump();
  std::string text;
  if (value.is_array()) {
    for (const Value& one : value) text += (text.empty() ? "" : ", ") + shown(one);
    return "[" + text + "]";
  }
  for (const auto& [key, one] : value.items()) text += (text.empty() ? "" : ", ") + shown(key) + ": " + shown(one);
  return "{" + text + "}";
}

std::vector<Value> items_of(const Value& value) {
  std::vector<Value> items;
  if (value.is_discarded()) return items;
  if (value.is_array()) {
    items.assign(value.begin(), value.end());
  } else if (value.is_object()) {
    for (const auto& [key, one] : value.items()) items.emplace_back(key);
  } else if (value.is_string()) {
    for (std::string& one : characters(value.get_ref<const std::string&>())) items.emplace_back(std::move(one));
  } else {
    throw std::invalid_argument("expected a list, an object or a text to go over, got " + kind_of(value));
  }
  return items;
}

Value attribute_of(const Value& value, const Value& key) {
  if (value.is_object()) {
    if (!key.is_string()) return undefined();
    const auto found = value.find(key.get_ref<const std::string&>());
    return found == value.end() ? undefined() : *found;
  }
  if (!is_whole(key)) return undefined();
  const std::int64_t place = whole_of(key);
  const auto at = [&](std::int64_t size) { return place < 0 ? place + size : place; };
  if (value.is_array()) {
    const auto size = static_cast<std::int64_t>(value.size());
    return at(size) >= 0 && at(size) < size ? value[static_cast<std::size_t>(at(size))] : undefined();
  }
  if (!value.is_string()) return undefined();
  const std::vector<std::string> all = characters(value.get_ref<const std::string&>());
  const auto size = static_cast<std::int64_t>(all.size());
  return at(size) >= 0 && at(size) < size ? Value(all[static_cast<std::size_t>(at(size))]) : undefined();
}

Value slice_of(const Value& value, const Value& from, const Value& to, const Value& step) {
  if (value.is_string()) {
    const std::vector<std::string> all = characters(value.get_ref<const std::string&>());
    std::string text;
    for (const std::size_t place : places(static_cast<std::int64_t>(all.size()), from, to, step)) text += all[place];
    return text;
  }
  if (!value.is_array()) throw std::invalid_argument("expected a text or a list to slice, got " + kind_of(value));
  Value list = Value::array();
  for (const std::size_t place : places(static_cast<std::int64_t>(value.size()), from, to, step))
    list.push_back(value[place]);
  return list;
}

Value calculate(const std::string& sign, const Value& a, const Value& b) {
  if (is_whole(a) && is_whole(b)) return whole_arithmetic(sign, whole_of(a), whole_of(b));
  if (is_number(a) && is_number(b)) return real_arithmetic(sign, real_of(a), real_of(b));
  if (sign == "+" && a.is_string() && b.is_string()) {
    std::string text = a.get<std::string>() + b.get_ref<const std::string&>();
    if (text.size() > kMostBytes) throw std::invalid_argument("expected a text of at most 64 MiB, got more");
    return text;
  }
  if (sign == "+" && a.is_array() && b.is_array()) {
    Value list = a;
    for (const Value& one : b) list.push_back(one);
    return list;
  }
  if (sign == "*" && a.is_string() && is_whole(b)) {
    const auto& text = a.get_ref<const std::string&>();
    const std::int64_t count = std::max<std::int64_t>(0, whole_of(b));
    if (!text.empty() && count > static_cast<std::int64_t>(kMostBytes / text.size()))
      throw std::invalid_argument("expected a text of at most 64 MiB, got more");
    std::string result;
    for (std::int64_t i = 0; i < count && !text.empty(); ++i) result += text;
    return result;
  }
  throw std::invalid_argument("'" + sign + "' does not go with " + kind_of(a) + " and " + kind_of(b));
}

}  // namespace samebytes::detail::jinja

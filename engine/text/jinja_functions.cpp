// The filters, tests, methods and functions that chat templates call.
// Over 400 lines because filters and methods do the same to texts, and each is a few lines.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <limits>
#include <stdexcept>

#include "text/jinja.h"
#include "text/jinja_text.h"

namespace samebytes::detail::jinja {
namespace {

constexpr std::int64_t kMostItems = std::int64_t{1} << 20;

[[noreturn]] void expected(const std::string& what) { throw std::invalid_argument("expected " + what); }

const std::string& text_of(const Value& value, std::string_view who) {
  if (!value.is_string()) expected("a text for " + std::string(who));
  return value.get_ref<const std::string&>();
}
std::int64_t whole_of(const Value& value, const std::string& who) {
  if (!value.is_number_integer()) expected("a whole number for " + who);
  return value.get<std::int64_t>();
}

// Without characters of `set` (blanks where it is none) at its ends.
std::string stripped(const std::string& text, const Value& set, bool left, bool right) {
  const std::vector<std::string> all = characters(text);
  const std::vector<std::string> unwanted =
      set.is_string() ? characters(set.get<std::string>()) : std::vector<std::string>{};
  const auto goes = [&](const std::string& c) {
    return set.is_string() ? std::find(unwanted.begin(), unwanted.end(), c) != unwanted.end() : is_blank_character(c);
  };
  std::size_t first = 0, last = all.size();
  while (left && first < last && goes(all[first])) ++first;
  while (right && last > first && goes(all[last - 1])) --last;
  std::string result;
  for (std::size_t i = first; i < last; ++i) result += all[i];
  return result;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), upper_of);
  return text;
}
std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), lower_of);
  return text;
}
std::string capitalised(const std::string& text) {
  std::string result = lower(text);
  if (!result.empty()) result[0] = upper_of(result[0]);
  return result;
}
std::string titled(const std::string& text) {
  std::string result = lower(text);
  bool begins = true;
  for (char& c : result) {
    const bool is_letter = c >= 'a' && c <= 'z';
    if (begins && is_letter) c = upper_of(c);
    begins = !is_letter && static_cast<unsigned char>(c) < 0x80;
  }
  return result;
}
std::string replaced(const std::string& text, const std::string& from, const std::string& to, std::int64_t most) {
  std::string result;
  std::size_t at = 0;
  if (from.empty()) expected("a text that is not empty to replace");
  while (most != 0) {
    const std::size_t found = text.find(from, at);
    if (found == std::string::npos) break;
    result.append(text, at, found - at).append(to);
    at = found + from.size();
    --most;
  }
  return result.append(text, at, std::string::npos);
}
Value split(const std::string& text, const Value& by, std::int64_t most) {
  Value parts = Value::array();
  if (by.is_string()) {
    const auto sign = by.get<std::string>();
    if (sign.empty()) expected("a separator that is not empty");
    std::size_t at = 0;
    for (std::size_t found; most != 0 && (found = text.find(sign, at)) != std::string::npos; --most) {
      parts.push_back(text.substr(at, found - at));
      at = found + sign.size();
    }
    parts.push_back(text.substr(at));
    return parts;
  }
  std::string part;
  const std::vector<std::string> all = characters(text);
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!is_blank_character(all[i])) {
      part += all[i];
    } else if (!part.empty()) {
      parts.push_back(std::move(part));
      part.clear();
      if (--most == 0) {  // the rest, without blanks around it
        std::string rest;
        while (++i < all.size()) rest += all[i];
        part = stripped(rest, {}, true, false);
        break;
      }
    }
  }
  if (!part.empty()) parts.push_back(part);
  return parts;
}
Value lines_of(const std::string& text) {
  Value lines = Value::array();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\n\r", at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + (text.compare(end, 2, "\r\n") == 0 ? 2 : 1);
  }
  return lines;
}

// Python's json.dumps() with its separators and without ASCII's escapes.
void dump(const Value& value, std::int64_t indent, std::int64_t level, std::string& out) {
  if (value.is_discarded()) expected("a value for tojson, got something undefined");
  if (!value.is_structured()) {
    out += value.is_string()    ? value.dump(-1, ' ', false, Value::error_handler_t::replace)
           : value.is_null()    ? "null"
           : value.is_boolean() ? (value.get<bool>() ? "true" : "false")
                                : printed(value);
    return;
  }
  const bool is_list = value.is_array();
  out += is_list ? '[' : '{';
  bool is_first = true;
  const auto new_line = [&](std::int64_t at) {
    if (indent >= 0) out += '\n' + std::string(static_cast<std::size_t>(indent * at), ' ');
  };
  for (const auto& [key, one] : value.items()) {
    if (!is_first) out += indent >= 0 ? "," : ", ";
    is_first = false;
    new_line(level + 1);
    if (!is_list) out += Value(key).dump(-1, ' ', false, Value::error_handler_t::replace) + ": ";
    dump(one, indent, level + 1, out);
  }
  if (!value.empty()) new_line(level);
  out += is_list ? ']' : '}';
}

std::int64_t length_of(const Value& value) {
  if (value.is_discarded()) return 0;
  if (value.is_string()) return static_cast<std::int64_t>(characters(value.get_ref<const std::string&>()).size());
  if (!value.is_structured()) expected("a text, a list or an object for length");
  return static_cast<std::int64_t>(value.size());
}

// "a.b" of a value.
Value deep_attribute(Value value, const Value& path) {
  if (!path.is_string()) return attribute_of(value, path);
  const auto text = path.get<std::string>();
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('.', at), text.size());
    value = value.is_structured() ? attribute_of(value, text.substr(at, end - at)) : undefined();
    at = end + 1;
  }
  return value;
}

Arguments behind(const Arguments& all, std::size_t count) {
  Arguments rest;
  for (std::size_t i = count; i < all.values.size(); ++i) rest.values.push_back(all.values[i]);
  return rest;
}

// select, reject, selectattr, rejectattr
Value selected(const Value& value, const Arguments& a, bool by_attribute, bool keeps) {
  const std::size_t first = by_attribute ? 1 : 0;
  if (by_attribute && a.values.empty()) expected("the name of an attribute");
  Value list = Value::array();
  for (const Value& one : items_of(value)) {
    const Value tested = by_attribute ? deep_attribute(one, a.values[0]) : one;
    const bool holds = a.values.size() > first
                           ? run_test(text_of(a.values[first], "a test's name"), tested, behind(a, first + 1))
                           : is_true(tested);
    if (holds == keeps) list.push_back(one);
  }
  return list;
}
Value mapped(const Value& value, const Arguments& a) {
  const Value attribute = a.get(1u << 20, "attribute"), fallback = a.get(1u << 20, "default", undefined());
  Value list = Value::array();
  for (const Value& one : items_of(value)) {
    if (!attribute.is_null()) {
      Value found = deep_attribute(one, attribute);
      if (found.is_discarded()) found = fallback;
      list.push_back(std::move(found));
    } else {
      if (a.values.empty()) expected("a filter's name or attribute= for map");
      const std::string& name = text_of(a.values[0], "map");
      if (!is_filter(name)) expected("a filter's name for map, got " + name);
      list.push_back(filtered(name, one, behind(a, 1)));
    }
  }
  return list;
}
Value pairs_of(const Value& value) {
  if (value.is_discarded()) return Value::array();
  if (!value.is_object()) expected("an object for items");
  Value list = Value::array();
  for (const auto& [key, one] : value.items()) list.push_back(Value::array({key, one}));
  return list;
}
Value sorted(const Value& value, const Arguments& a) {
  const Value attribute = a.get(2, "attribute");
  const bool is_reverse = is_true(a.get(0, "reverse", false));
  const bool is_exact = is_true(a.get(1, "case_sensitive", false));
  const auto key = [&](const Value& one) {
    Value found = attribute.is_null() ? one : deep_attribute(one, attribute);
    return found.is_string() && !is_exact ? Value(lower(found.get<std::string>())) : found;
  };
  std::vector<std::pair<Value, Value>> keyed;
  for (Value& one : items_of(value)) keyed.emplace_back(key(one), std::move(one));
  std::stable_sort(keyed.begin(), keyed.end(), [&](const auto& x, const auto& y) {
    return is_reverse ? less(y.first, x.first) : less(x.first, y.first);
  });
  Value list = Value::array();
  for (auto& [order, one] : keyed) list.push_back(std::move(one));
  return list;
}
std::string joined(const Value& value, const Arguments& a) {
  const std::string between = printed(a.get(0, "d", ""));
  const Value attribute = a.get(1, "attribute");
  std::string text;
  bool is_first = true;
  for (const Value& one : items_of(value)) {
    if (!is_first) text += between;
    is_first = false;
    text += printed(attribute.is_null() ? one : deep_attribute(one, attribute));
  }
  return text;
}
std::string indented(const std::string& text, const Arguments& a) {
  const Value width = a.get(0, "width", 4);
  const std::string blanks =
      width.is_string()
          ? width.get<std::string>()
          : std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(whole_of(width, "indent"), 0, 1000)), ' ');
  const bool first = is_true(a.get(1, "first", false)), blank = is_true(a.get(2, "blank", false));
  std::string result;
  std::size_t at = 0;
  for (bool is_first = true;; is_first = false) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    if (is_first ? first : blank || !line.empty()) result += blanks;
    result += line;
    if (end == text.size()) return result;
    result += '\n';
    at = end + 1;
  }
}
Value as_whole(const Value& value, const Arguments& a) {
  if (value.is_number_float()) return static_cast<std::int64_t>(value.get<double>());
  if (value.is_boolean()) return std::int64_t{value.get<bool>()};
  if (value.is_number()) return value;
  if (value.is_string()) {
    const std::string text = stripped(value.get<std::string>(), {}, true, true);
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (!text.empty() && *end == '\0' && std::fabs(number) < 9e18) return static_cast<std::int64_t>(number);
  }
  return a.get(0, "default", 0);
}
Value as_real(const Value& value, const Arguments& a) {
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) {
    const std::string text = stripped(value.get<std::string>(), {}, true, true);
    char* end = nullptr;
    const double number = std::strtod(text.c_str(), &end);
    if (!text.empty() && *end == '\0') return number;
  }
  return a.get(0, "default", 0.0);
}
Value extreme(const Value& value, bool is_most) {
  std::vector<Value> items = items_of(value);
  if (items.empty()) return undefined();
  return is_most ? *std::max_element(items.begin(), items.end(), less)
                 : *std::min_element(items.begin(), items.end(), less);
}
Value list_of(std::vector<Value> items) {
  Value list = Value::array();
  for (Value& one : items) list.push_back(std::move(one));
  return list;
}

using Filter = Value (*)(const Value& value, const Arguments& a);
struct FilterRow {
  const char* name;
  Filter filter;
};
const FilterRow kFilters[] = {
    {"trim",
     [](const Value& v, const Arguments& a) -> Value { return stripped(printed(v), a.get(0, "chars"), true, true); }},
    {"length", [](const Value& v, const Arguments&) -> Value { return length_of(v); }},
    {"count", [](const Value& v, const Arguments&) -> Value { return length_of(v); }},
    {"upper", [](const Value& v, const Arguments&) -> Value { return upper(printed(v)); }},
    {"lower", [](const Value& v, const Arguments&) -> Value { return lower(printed(v)); }},
    {"title", [](const Value& v, const Arguments&) -> Value { return titled(printed(v)); }},
    {"capitalize", [](const Value& v, const Arguments&) -> Value { return capitalised(printed(v)); }},
    {"string", [](const Value& v, const Arguments&) -> Value { return printed(v); }},
    {"safe", [](const Value& v, const Arguments&) -> Value { return v; }},
    {"int", as_whole},
    {"float", as_real},
    {"abs",
     [](const Value& v, const Arguments&) -> Value {
       return v.is_number() && v.get<double>() < 0 ? calculate("-", 0, v) : v;
     }},
    {"list", [](const Value& v, const Arguments&) -> Value { return list_of(items_of(v)); }},
    {"first",
     [](const Value& v, const Arguments&) -> Value {
       std::vector<Value> items = items_of(v);
       return items.empty() ? undefined() : items.front();
     }},
    {"last",
     [](const Value& v, const Arguments&) -> Value {
       std::vector<Value> items = items_of(v);
       return items.empty() ? undefined() : items.back();
     }},
    {"reverse",
     [](const Value& v, const Arguments&) -> Value {
       std::vector<Value> items = items_of(v);
       std::reverse(items.begin(), items.end());
       if (!v.is_string()) return list_of(std::move(items));
       std::string text;
       for (const Value& one : items) text += one.get_ref<const std::string&>();
       return text;
     }},
    {"join", [](const Value& v, const Arguments& a) -> Value { return joined(v, a); }},
    {"replace",
     [](const Value& v, const Arguments& a) -> Value {
       const Value most = a.get(2, "count");
       return replaced(printed(v), printed(a.get(0, "old")), printed(a.get(1, "new")),
                       most.is_null() ? -1 : whole_of(most, "replace"));
     }},
    {"default",
     [](const Value& v, const Arguments& a) -> Value {
       const bool counts_false = is_true(a.get(1, "boolean", false));
       return v.is_discarded() || (counts_false && !is_true(v)) ? a.get(0, "default_value", "") : v;
     }},
    {"d", [](const Value& v, const Arguments& a) -> Value { return filtered("default", v, a); }},
    {"items", [](const Value& v, const Arguments&) -> Value { return pairs_of(v); }},
    {"dictsort",
     [](const Value& v, const Arguments& a) -> Value {
       Arguments by;
       by.values = {a.get(2, "reverse", false), a.get(0, "case_sensitive", false),
                    Value(a.get(1, "by", "key") == "value" ? 1 : 0)};
       return sorted(pairs_of(v), by);
     }},
    {"sort", sorted},
    {"map", mapped},
    {"select", [](const Value& v, const Arguments& a) -> Value { return selected(v, a, false, true); }},
    {"reject", [](const Value& v, const Arguments& a) -> Value { return selected(v, a, false, false); }},
    {"selectattr", [](const Value& v, const Arguments& a) -> Value { return selected(v, a, true, true); }},
    {"rejectattr", [](const Value& v, const Arguments& a) -> Value { return selected(v, a, true, false); }},
    {"unique",
     [](const Value& v, const Arguments&) -> Value {
       Value list = Value::array();
       for (const Value& one : items_of(v))
         if (!contains(list, one)) list.push_back(one);
       return list;
     }},
    {"indent", [](const Value& v, const Arguments& a) -> Value { return indented(printed(v), a); }},
    {"sum",
     [](const Value& v, const Arguments&) -> Value {
       Value total = 0;
       for (const Value& one : items_of(v)) total = calculate("+", total, one);
       return total;
     }},
    {"min", [](const Value& v, const Arguments&) -> Value { return extreme(v, false); }},
    {"max", [](const Value& v, const Arguments&) -> Value { return extreme(v, true); }},
    {"tojson", [](const Value& v, const Arguments& a) -> Value {
       const Value indent = a.get(1, "indent");  // behind ensure_ascii, as in transformers
       std::string text;
       dump(v, indent.is_null() ? -1 : std::min<std::int64_t>(whole_of(indent, "tojson"), 100), 0, text);
       return text;
     }}};

const FilterRow* filter_of(const std::string& name) {
  const auto* found =
      std::find_if(std::begin(kFilters), std::end(kFilters), [&](const FilterRow& row) { return name == row.name; });
  return found == std::end(kFilters) ? nullptr : found;
}

bool is_text_of(const Value& v, bool is_upper) {
  if (!v.is_string()) return false;
  const auto& text = v.get_ref<const std::string&>();
  return (is_upper ? upper(text) : lower(text)) == text && lower(text) != upper(text);
}

using Test = bool (*)(const Value& value, const Arguments& a);
struct TestRow {
  const char* name;
  Test test;
};
bool is_equal(const Value& v, const Arguments& a) { return equal(v, a.get(0, "")); }
bool is_less(const Value& v, const Arguments& a) { return less(v, a.get(0, "")); }
bool is_greater(const Value& v, const Arguments& a) { return less(a.get(0, ""), v); }
const TestRow kTests[] = {
    {"defined", [](const Value& v, const Arguments&) { return !v.is_discarded(); }},
    {"undefined", [](const Value& v, const Arguments&) { return v.is_discarded(); }},
    {"none", [](const Value& v, const Arguments&) { return v.is_null(); }},
    {"string", [](const Value& v, const Arguments&) { return v.is_string(); }},
    {"mapping", [](const Value& v, const Arguments&) { return v.is_object(); }},
    {"sequence",
     [](const Value& v, const Arguments&) { return v.is_structured() || v.is_string() || v.is_discarded(); }},
    {"iterable",
     [](const Value& v, const Arguments&) { return v.is_structured() || v.is_string() || v.is_discarded(); }},
    {"number", [](const Value& v, const Arguments&) { return v.is_number() || v.is_boolean(); }},
    {"integer", [](const Value& v, const Arguments&) { return v.is_number_integer(); }},
    {"float", [](const Value& v, const Arguments&) { return v.is_number_float(); }},
    {"boolean", [](const Value& v, const Arguments&) { return v.is_boolean(); }},
    {"true", [](const Value& v, const Arguments&) { return v.is_boolean() && v.get<bool>(); }},
    {"false", [](const Value& v, const Arguments&) { return v.is_boolean() && !v.get<bool>(); }},
    {"callable", [](const Value&, const Arguments&) { return false; }},
    {"equalto", is_equal},
    {"eq", is_equal},
    {"sameas", is_equal},
    {"ne", [](const Value& v, const Arguments& a) { return !is_equal(v, a); }},
    {"lt", is_less},
    {"lessthan", is_less},
    {"gt", is_greater},
    {"greaterthan", is_greater},
    {"le", [](const Value& v, const Arguments& a) { return !is_greater(v, a); }},
    {"ge", [](const Value& v, const Arguments& a) { return !is_less(v, a); }},
    {"in", [](const Value& v, const Arguments& a) { return contains(a.get(0, ""), v); }},
    {"odd", [](const Value& v, const Arguments&) { return whole_of(v, "odd") % 2 != 0; }},
    {"even", [](const Value& v, const Arguments&) { return whole_of(v, "even") % 2 == 0; }},
    {"divisibleby",
     [](const Value& v, const Arguments& a) {
       const std::int64_t by = whole_of(a.get(0, ""), "divisibleby");
       if (by == 0) expected("a divisor that is not 0");
       return whole_of(v, "divisibleby") % by == 0;
     }},
    {"lower", [](const Value& v, const Arguments&) { return is_text_of(v, false); }},
    {"upper", [](const Value& v, const Arguments&) { return is_text_of(v, true); }}};

const TestRow* test_of(const std::string& name) {
  const auto* found =
      std::find_if(std::begin(kTests), std::end(kTests), [&](const TestRow& row) { return name == row.name; });
  return found == std::end(kTests) ? nullptr : found;
}

bool has_end(const std::string& text, const Value& of, bool at_start) {
  if (of.is_array())
    return std::any_of(of.begin(), of.end(), [&](const Value& one) { return has_end(text, one, at_start); });
  const std::string& part = text_of(of, at_start ? "startswith" : "endswith");
  return at_start ? text.starts_with(part) : text.ends_with(part);
}

Value text_method(const std::string& name, const std::string& text, const Arguments& a) {
  const auto count = [&](std::size_t place, const char* what) {
    const Value value = a.get(place, what);
    return value.is_null() ? std::int64_t{-1} : whole_of(value, name);
  };
  if (name == "strip") return stripped(text, a.get(0, "chars"), true, true);
  if (name == "lstrip") return stripped(text, a.get(0, "chars"), true, false);
  if (name == "rstrip") return stripped(text, a.get(0, "chars"), false, true);
  if (name == "startswith" || name == "endswith") return has_end(text, a.get(0, ""), name == "startswith");
  if (name == "split") return split(text, a.get(0, "sep"), count(1, "maxsplit"));
  if (name == "splitlines") return lines_of(text);
  if (name == "upper") return upper(text);
  if (name == "lower") return lower(text);
  if (name == "title") return titled(text);
  if (name == "capitalize") return capitalised(text);
  if (name == "replace")
    return replaced(text, text_of(a.get(0, "old"), name), text_of(a.get(1, "new"), name), count(2, "count"));
  if (name == "removeprefix" || name == "removesuffix") {
    const Value part = a.get(0, "");
    const bool at_start = name == "removeprefix";
    if (!has_end(text, part, at_start)) return text;
    const std::size_t size = text_of(part, name).size();
    return at_start ? text.substr(size) : text.substr(0, text.size() - size);
  }
  if (name == "join") {
    Arguments with;
    with.values = {text};
    return joined(a.get(0, ""), with);
  }
  if (name == "find" || name == "rfind") {
    const Value part = a.get(0, "");
    const std::size_t found = name == "find" ? text.find(text_of(part, name)) : text.rfind(text_of(part, name));
    return found == std::string::npos ? std::int64_t{-1} : length_of(text.substr(0, found));
  }
  if (name == "count") {
    const Value part = a.get(0, "");
    return static_cast<std::int64_t>(split(text, text_of(part, name), -1).size()) - 1;
  }
  const auto all_are = [&](const auto& is) {
    return Value(!text.empty() && std::all_of(text.begin(), text.end(), is));
  };
  if (name == "isdigit") return all_are([](char c) { return c >= '0' && c <= '9'; });
  if (name == "isspace") return Value(!text.empty() && stripped(text, {}, true, true).empty());
  expected("a method of texts that this version has, got " + name);
}

Value formatted_now(const std::string& format) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 512> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), format.c_str(), &local);
  return std::string(text.data(), size);
}

Value range(const Arguments& a) {
  std::vector<std::int64_t> numbers;
  for (const Value& value : a.values) numbers.push_back(whole_of(value, "range"));
  if (numbers.empty() || numbers.size() > 3) expected("one to three numbers for range");
  const std::int64_t from = numbers.size() > 1 ? numbers[0] : 0, to = numbers[numbers.size() > 1 ? 1 : 0];
  const std::int64_t step = numbers.size() > 2 ? numbers[2] : 1;
  if (step == 0) expected("a step of range that is not 0");
  Value list = Value::array();
  for (std::int64_t i = from; step > 0 ? i < to : i > to;) {
    if (static_cast<std::int64_t>(list.size()) == kMostItems) expected("a range of at most 2^20 numbers, got more");
    list.push_back(i);
    if (__builtin_add_overflow(i, step, &i)) break;
  }
  return list;
}

}  // namespace

Value Arguments::get(std::size_t place, std::string_view name, Value fallback) const {
  if (place < values.size()) return values[place];
  for (const auto& [key, value] : named)
    if (key == name) return value;
  return fallback;
}

bool is_filter(const std::string& name) { return filter_of(name) != nullptr; }
bool is_test(const std::string& name) { return test_of(name) != nullptr; }

Value filtered(const std::string& name, const Value& value, const Arguments& arguments) {
  return filter_of(name)->filter(value, arguments);
}
bool run_test(const std::string& name, const Value& value, const Arguments& arguments) {
  const TestRow* row = test_of(name);
  if (row == nullptr) expected("a test that this version has, got " + name);
  return row->test(value, arguments);
}

Value call_method(const std::string& name, const Value& value, const Arguments& a) {
  if (value.is_string()) return text_method(name, value.get_ref<const std::string&>(), a);
  if (value.is_object()) {
    if (name == "items") return pairs_of(value);
    if (name == "keys") return list_of(items_of(value));
    if (name == "get") {
      Value found = attribute_of(value, a.get(0, ""));
      return found.is_discarded() ? a.get(1, "default") : found;
    }
    if (name == "values") {
      Value list = Value::array();
      for (const Value& one : value) list.push_back(one);
      return list;
    }
  }
  if (value.is_array() && (name == "index" || name == "count")) {
    std::int64_t count = 0;
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (!equal(value[i], a.get(0, ""))) continue;
      if (name == "index") return i;
      ++count;
    }
    if (name == "count") return count;
    expected("a value that is in the list");
  }
  if (value.is_discarded()) expected("a value with the method " + name + ", got something undefined");
  expected("a method that this version has, got " + name);
}

Value call_function(const std::string& name, const Arguments& a) {
  if (name == "raise_exception") throw std::invalid_argument("the template refuses: " + printed(a.get(0, "")));
  if (name == "strftime_now") return formatted_now(text_of(a.get(0, "format"), name));
  if (name == "range") return range(a);
  if (name == "namespace" || name == "dict") {
    Value object = a.values.empty() || !a.values[0].is_object() ? Value::object() : a.values[0];
    for (const auto& [key, value] : a.named) object[key] = value;
    return object;
  }
  expected("a function that this version has, got " + name);
}

}  // namespace samebytes::detail::jinja

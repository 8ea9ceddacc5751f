// Jinja, as far as chat templates of language models use it: output, if, for, set, namespaces, filters, tests, methods
// of texts, lists and objects, and the control of blanks, with the settings of transformers (trim_blocks and
// lstrip_blocks on, breaks and continues of loops). No macros, imports or inheritance.
// docs/decisions/chat_templates.md says why it is ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace samebytes::detail::jinja {

// A value of a template; a discarded one is undefined.
using Value = nlohmann::ordered_json;

// The largest text that a template may make: anybody may have written it.
constexpr std::size_t kMostBytes = std::size_t{1} << 26;

enum class Kind : std::uint8_t {
  literal,     // value
  name,        // text
  list,        // parts
  object,      // parts: key, value, key, ...
  attribute,   // parts[0].text
  item,        // parts[0][parts[1]]
  slice,       // parts[0][parts[1]:parts[2]:parts[3]], each of the last three may be null
  call,        // parts[0](parts[1], ..., named)
  filter,      // parts[0] | text(parts[1], ..., named)
  test,        // parts[0] is text parts[1]
  negative,    // -parts[0]
  is_not,      // not parts[0]
  both,        // parts[0] and parts[1]
  either,      // parts[0] or parts[1]
  comparison,  // parts[0] words[0] parts[1] words[1] ...
  arithmetic,  // parts[0] text parts[1]
  join,        // parts ~ ...
  choice       // parts[0] if parts[1] else parts[2], which may be null
};

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;
struct Expression {
  Kind kind = Kind::literal;
  int line = 1;
  int depth = 1;  // levels below and with it
  std::string text = {};
  Value value = {};
  std::vector<ExpressionPtr> parts = {};
  std::vector<std::pair<std::string, ExpressionPtr>> named = {};
  std::vector<std::string> words = {};
};

enum class Action : std::uint8_t { text, output, choose, loop, set, set_block, leave, next, block };

struct Statement {
  Action action = Action::text;
  int line = 1;
  std::string text = {};                            // text: itself; set: the attribute of a namespace, or empty
  std::vector<std::string> names = {};              // set, loop: what gets the value
  std::vector<ExpressionPtr> expressions = {};      // choose: conditions, the last may be null; loop: values, condition
  std::vector<std::vector<Statement>> bodies = {};  // choose: one each; loop: body, else
};

class Template {
 public:
  // Throws IoError, naming path and line, for what is no template and for what this subset does not have.
  Template(std::string path, std::string_view text);
  // `variables` is an object. Throws Error for what a template raises or cannot compute, naming path and line.
  std::string render(const Value& variables) const;

 private:
  std::string path_;
  std::vector<Statement> statements_;
};

// A part of a template between its marks.
struct Piece {
  enum class Kind : std::uint8_t { text, output, tag } kind = Kind::text;
  std::string text;
  int line = 1;
};
// Texts, whose blanks beside tags are gone as the marks say, outputs and tags, without comments. Throws IoError.
std::vector<Piece> pieces_of(const std::string& path, std::string_view text);
[[noreturn]] void throw_syntax(const std::string& path, int line, const std::string& expected, const std::string& got);

std::vector<Statement> parse(const std::string& path, std::string_view text);

// Arguments of a call, evaluated.
struct Arguments {
  std::vector<Value> values = {};
  std::vector<std::pair<std::string, Value>> named = {};
  // An argument by place or name; `fallback` where it is not there.
  Value get(std::size_t place, std::string_view name, Value fallback = {}) const;
};
// What the library knows of values. They throw std::invalid_argument with a text that says what was expected.
Value undefined();
bool is_true(const Value& value);
bool equal(const Value& a, const Value& b);
bool less(const Value& a, const Value& b);
bool contains(const Value& whole, const Value& part);
std::string printed(const Value& value);          // as it is printed
std::vector<Value> items_of(const Value& value);  // what a loop goes over
Value attribute_of(const Value& value, const Value& key);
Value slice_of(const Value& value, const Value& from, const Value& to, const Value& step);
Value calculate(const std::string& sign, const Value& a, const Value& b);
Value filtered(const std::string& name, const Value& value, const Arguments& arguments);
bool run_test(const std::string& name, const Value& value, const Arguments& arguments);
Value call_method(const std::string& name, const Value& value, const Arguments& arguments);
Value call_function(const std::string& name, const Arguments& arguments);
bool is_filter(const std::string& name);
bool is_test(const std::string& name);

}  // namespace samebytes::detail::jinja

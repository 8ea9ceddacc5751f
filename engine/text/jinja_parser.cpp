// From the text of a template to its statements.
// Over 400 lines because words, expressions and statements are one grammar.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <memory>

#include "text/jinja.h"
#include "text/utf8.h"

namespace samebytes::detail::jinja {
namespace {

constexpr int kMostLevels = 200;     // of expressions and of statements in each other
constexpr int kMostSteps = 1 << 20;  // expressions of a template
constexpr std::size_t kShown = 40;

struct Word {
  enum class Kind : std::uint8_t { end, name, number, text, sign } kind = Kind::end;
  std::string text = {};
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The words of one output or tag, and a place among them.
class Words {
 public:
  Words(const std::string& path, const Piece& piece) : path_(path), line_(piece.line) { read(piece.text); }

  int line() const { return line_; }
  const Word& next() const { return words_[at_]; }
  Word take() { return at_ + 1 < words_.size() ? words_[at_++] : words_[at_]; }
  bool is_sign(std::string_view text) const { return next().kind == Word::Kind::sign && next().text == text; }
  bool is_name(std::string_view text) const { return next().kind == Word::Kind::name && next().text == text; }
  bool take_sign(std::string_view text) { return is_sign(text) && (++at_, true); }
  bool take_name(std::string_view text) { return is_name(text) && (++at_, true); }
  void expect_sign(std::string_view text) {
    if (!take_sign(text)) fail("'" + std::string(text) + "'");
  }
  std::string expect_name(const char* what) {
    if (next().kind != Word::Kind::name) fail(what);
    return take().text;
  }
  void expect_end() const {
    if (next().kind != Word::Kind::end) fail("the end of the tag");
  }
  [[noreturn]] void fail(const std::string& expected) const {
    throw_syntax(path_, line_, expected,
                 next().kind == Word::Kind::end ? "the end of the tag" : next().text.substr(0, kShown));
  }

 private:
  void read(const std::string& text) {
    static constexpr std::array<std::string_view, 8> kLong{"==", "!=", "<=", ">=", "//", "**", "{{", "}}"};
    for (std::size_t i = 0; i < text.size();) {
      const char c = text[i];
      if (c == ' ' || (c >= '\t' && c <= '\r')) {
        ++i;
      } else if (is_letter(c)) {
        const std::size_t from = i;
        while (i < text.size() && (is_letter(text[i]) || is_digit(text[i]))) ++i;
        words_.push_back({Word::Kind::name, text.substr(from, i - from)});
      } else if (is_digit(c)) {
        i = read_number(text, i);
      } else if (c == '\'' || c == '"') {
        i = read_text(text, i);
      } else {
        const auto pair = std::string_view(text).substr(i, 2);
        const bool is_long = std::find(kLong.begin(), kLong.begin() + 6, pair) != kLong.begin() + 6;
        if (!is_long && std::string_view("+-*/%~|.,:()[]{}=<>").find(c) == std::string_view::npos)
          throw_syntax(path_, line_, "an expression", text.substr(i, kShown));
        words_.push_back({Word::Kind::sign, text.substr(i, is_long ? 2 : 1)});
        i += is_long ? 2 : 1;
      }
    }
    words_.emplace_back();
  }
  std::size_t read_number(const std::string& text, std::size_t i) {
    const std::size_t from = i;
    while (i < text.size() && (is_digit(text[i]) || text[i] == '_')) ++i;
    if (i + 1 < text.size() && text[i] == '.' && is_digit(text[i + 1]))
      for (++i; i < text.size() && is_digit(text[i]);) ++i;
    std::size_t end = i;
    if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
      ++end;
      if (end < text.size() && (text[end] == '+' || text[end] == '-')) ++end;
      if (end < text.size() && is_digit(text[end]))
        for (i = end; i < text.size() && is_digit(text[i]);) ++i;
    }
    std::string digits = text.substr(from, i - from);
    std::erase(digits, '_');
    words_.push_back({Word::Kind::number, digits});
    return i;
  }
  std::size_t read_text(const std::string& text, std::size_t i) {
    const char quote = text[i++];
    std::string value;
    for (; i < text.size() && text[i] != quote; ++i) {
      if (text[i] != '\\' || i + 1 == text.size()) {
        value += text[i];
        continue;
      }
      ++i;
      switch (text[i]) {
        case 'n': value += '\n'; break;
        case 't': value += '\t'; break;
        case 'r': value += '\r'; break;
        case '\n': break;
        case '\\':
        case '\'':
        case '"': value += text[i]; break;
        case 'u': i += read_code(text, i + 1, 4, value); break;
        case 'x': i += read_code(text, i + 1, 2, value); break;
        default: value += '\\', value += text[i];
      }
    }
    if (i == text.size()) throw_syntax(path_, line_, "the end of a text", text.substr(0, kShown));
    words_.push_back({Word::Kind::text, value});
    return i + 1;
  }
  // Appends the character of so many hexadecimal digits.
  std::size_t read_code(const std::string& text, std::size_t from, std::size_t digits, std::string& value) const {
    unsigned code = 0;
    const char* const begin = text.data() + std::min(from, text.size());
    const char* const end = text.data() + std::min(from + digits, text.size());
    const auto result = std::from_chars(begin, end, code, 16);
    if (result.ec != std::errc() || result.ptr != begin + digits)
      throw_syntax(path_, line_, std::to_string(digits) + " hexadecimal digits", text.substr(0, kShown));
    append_utf8(value, static_cast<char32_t>(code));
    return digits;
  }

  const std::string& path_;
  int line_;
  std::vector<Word> words_;
  std::size_t at_ = 0;
};

// Expressions, by Jinja's precedence.
class Expressions {
 public:
  Expressions(const std::string& path, int& count) : path_(path), count_(count) {}

  ExpressionPtr whole(Words& words) {
    const Level level(*this, words);
    ExpressionPtr value = either(words);
    while (words.take_name("if")) {
      ExpressionPtr choice = make(words, Kind::choice);
      choice->parts.push_back(std::move(value));
      choice->parts.push_back(either(words));
      choice->parts.push_back(words.take_name("else") ? whole(words) : nullptr);
      value = done(words, std::move(choice));
    }
    return value;
  }
  // Several with commas between them are a list.
  ExpressionPtr tuple(Words& words) {
    ExpressionPtr first = whole(words);
    if (!words.is_sign(",")) return first;
    ExpressionPtr list = make(words, Kind::list);
    list->parts.push_back(std::move(first));
    while (words.take_sign(",") && words.next().kind != Word::Kind::end && !words.is_sign(")"))
      list->parts.push_back(whole(words));
    return done(words, std::move(list));
  }
  ExpressionPtr either(Words& words) {
    return binary(
        words, [&] { return both(words); }, [&] { return words.take_name("or"); }, Kind::either);
  }

 private:
  struct Level {
    Level(Expressions& of, const Words& words) : owner(of) {
      if (++owner.level_ > kMostLevels) words.fail("an expression of at most 200 levels");
    }
    ~Level() { --owner.level_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;
    Expressions& owner;
  };

  ExpressionPtr make(const Words& words, Kind kind) {
    if (++count_ > kMostSteps) words.fail("a template of at most 2^20 expressions");
    auto made = std::make_unique<Expression>();
    made->kind = kind;
    made->line = words.line();
    return made;
  }
  // Notes how deep it is, which bounds the stack of those who go through it.
  static ExpressionPtr done(const Words& words, ExpressionPtr made) {
    for (const ExpressionPtr& part : made->parts)
      if (part) made->depth = std::max(made->depth, part->depth + 1);
    for (const auto& [name, part] : made->named) made->depth = std::max(made->depth, part->depth + 1);
    if (made->depth > 4 * kMostLevels) words.fail("an expression of at most 800 steps in each other");
    return made;
  }

  template <class Part, class Sign>
  ExpressionPtr binary(Words& words, const Part& part, const Sign& sign, Kind kind) {
    ExpressionPtr left = part();
    while (sign()) {
      ExpressionPtr made = make(words, kind);
      made->parts.push_back(std::move(left));
      made->parts.push_back(part());
      left = done(words, std::move(made));
    }
    return left;
  }
  ExpressionPtr both(Words& words) {
    return binary(
        words, [&] { return negated(words); }, [&] { return words.take_name("and"); }, Kind::both);
  }
  ExpressionPtr negated(Words& words) {
    if (!words.take_name("not")) return comparison(words);
    const Level level(*this, words);
    ExpressionPtr made = make(words, Kind::is_not);
    made->parts.push_back(negated(words));
    return done(words, std::move(made));
  }
  static std::string comparing(Words& words) {
    for (const char* sign : {"==", "!=", "<=", ">=", "<", ">"})
      if (words.take_sign(sign)) return sign;
    if (words.take_name("in")) return "in";
    if (!words.is_name("not")) return {};
    words.take();
    if (!words.take_name("in")) words.fail("in");
    return "not in";
  }
  ExpressionPtr comparison(Words& words) {
    ExpressionPtr first = sum(words);
    std::string sign = comparing(words);
    if (sign.empty()) return first;
    ExpressionPtr made = make(words, Kind::comparison);
    made->parts.push_back(std::move(first));
    for (; !sign.empty(); sign = comparing(words)) {
      made->words.push_back(sign);
      made->parts.push_back(sum(words));
    }
    return done(words, std::move(made));
  }
  template <class Part>
  ExpressionPtr arithmetic(Words& words, std::initializer_list<const char*> signs, const Part& part) {
    ExpressionPtr left = part();
    for (;;) {
      const auto sign = std::find_if(signs.begin(), signs.end(), [&](const char* one) { return words.take_sign(one); });
      if (sign == signs.end()) return left;
      ExpressionPtr made = make(words, Kind::arithmetic);
      made->text = *sign;
      made->parts.push_back(std::move(left));
      made->parts.push_back(part());
      left = done(words, std::move(made));
    }
  }
  ExpressionPtr sum(Words& words) {
    return arithmetic(words, {"+", "-"}, [&] { return joined(words); });
  }
  ExpressionPtr joined(Words& words) {
    ExpressionPtr first = product(words);
    if (!words.is_sign("~")) return first;
    ExpressionPtr made = make(words, Kind::join);
    made->parts.push_back(std::move(first));
    while (words.take_sign("~")) made->parts.push_back(product(words));
    return done(words, std::move(made));
  }
  ExpressionPtr product(Words& words) {
    return arithmetic(words, {"*", "//", "/", "%"}, [&] { return power(words); });
  }
  ExpressionPtr power(Words& words) {
    return arithmetic(words, {"**"}, [&] { return signed_value(words, true); });
  }
  ExpressionPtr signed_value(Words& words, bool has_filters) {
    const Level level(*this, words);
    ExpressionPtr value;
    if (words.take_sign("-")) {
      value = make(words, Kind::negative);
      value->parts.push_back(signed_value(words, false));
      value = done(words, std::move(value));
    } else if (words.take_sign("+")) {
      value = signed_value(words, false);
    } else {
      value = behind(words, primary(words));
    }
    while (has_filters) {
      if (words.take_sign("|"))
        value = filter(words, std::move(value));
      else if (words.take_name("is"))
        value = test(words, std::move(value));
      else if (words.is_sign("("))
        value = call(words, std::move(value));
      else
        break;
    }
    return value;
  }

  ExpressionPtr literal(Words& words, Value value) {
    ExpressionPtr made = make(words, Kind::literal);
    made->value = std::move(value);
    return made;
  }
  ExpressionPtr primary(Words& words) {
    const Word word = words.take();
    if (word.kind == Word::Kind::text) {
      std::string text = word.text;
      while (words.next().kind == Word::Kind::text) text += words.take().text;
      return literal(words, text);
    }
    if (word.kind == Word::Kind::number) return literal(words, number(words, word.text));
    if (word.kind == Word::Kind::name) {
      if (word.text == "true" || word.text == "True") return literal(words, true);
      if (word.text == "false" || word.text == "False") return literal(words, false);
      if (word.text == "none" || word.text == "None") return literal(words, nullptr);
      ExpressionPtr made = make(words, Kind::name);
      made->text = word.text;
      return made;
    }
    if (word.kind == Word::Kind::sign && word.text == "(") {
      ExpressionPtr value = words.is_sign(")") ? make(words, Kind::list) : tuple(words);
      words.expect_sign(")");
      return value;
    }
    if (word.kind == Word::Kind::sign && word.text == "[") {
      ExpressionPtr list = make(words, Kind::list);
      while (!words.is_sign("]")) {
        list->parts.push_back(whole(words));
        if (!words.take_sign(",")) break;
      }
      words.expect_sign("]");
      return done(words, std::move(list));
    }
    if (word.kind == Word::Kind::sign && word.text == "{") {
      ExpressionPtr object = make(words, Kind::object);
      while (!words.is_sign("}")) {
        object->parts.push_back(whole(words));
        words.expect_sign(":");
        object->parts.push_back(whole(words));
        if (!words.take_sign(",")) break;
      }
      words.expect_sign("}");
      return done(words, std::move(object));
    }
    throw_syntax(path_, words.line(), "a value",
                 word.kind == Word::Kind::end ? "the end of the tag" : word.text.substr(0, kShown));
  }
  static Value number(const Words& words, const std::string& text) {
    if (text.find_first_of(".eE") != std::string::npos) return std::strtod(text.c_str(), nullptr);
    std::int64_t value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec != std::errc()) words.fail("a whole number of 64 bits");
    return value;
  }
  ExpressionPtr behind(Words& words, ExpressionPtr value) {
    for (;;) {
      if (words.take_sign(".")) {
        ExpressionPtr made = make(words, words.next().kind == Word::Kind::number ? Kind::item : Kind::attribute);
        made->parts.push_back(std::move(value));
        if (made->kind == Kind::item)
          made->parts.push_back(literal(words, number(words, words.take().text)));
        else
          made->text = words.expect_name("the name of an attribute");
        value = done(words, std::move(made));
      } else if (words.is_sign("[")) {
        value = item(words, std::move(value));
      } else if (words.is_sign("(")) {
        value = call(words, std::move(value));
      } else {
        return value;
      }
    }
  }
  ExpressionPtr item(Words& words, ExpressionPtr value) {
    words.take();
    ExpressionPtr made = make(words, Kind::item);
    made->parts.push_back(std::move(value));
    std::array<ExpressionPtr, 3> bounds;
    std::size_t count = 0;
    for (; count < bounds.size(); ++count) {
      if (!words.is_sign(":") && !words.is_sign("]")) bounds.at(count) = whole(words);
      if (!words.take_sign(":")) break;
    }
    words.expect_sign("]");
    if (count == 0) {
      if (!bounds[0]) words.fail("an index");
      made->parts.push_back(std::move(bounds[0]));
      return done(words, std::move(made));
    }
    made->kind = Kind::slice;
    for (ExpressionPtr& bound : bounds) made->parts.push_back(std::move(bound));
    return done(words, std::move(made));
  }
  // (a, b, name=c) behind what is there of `made`.
  void arguments(Words& words, Expression& made) {
    words.expect_sign("(");
    while (!words.is_sign(")")) {
      ExpressionPtr value = whole(words);
      if (value->kind == Kind::name && words.take_sign("="))
        made.named.emplace_back(value->text, whole(words));
      else
        made.parts.push_back(std::move(value));
      if (!words.take_sign(",")) break;
    }
    words.expect_sign(")");
  }
  ExpressionPtr call(Words& words, ExpressionPtr value) {
    ExpressionPtr made = make(words, Kind::call);
    made->parts.push_back(std::move(value));
    arguments(words, *made);
    return done(words, std::move(made));
  }
  ExpressionPtr filter(Words& words, ExpressionPtr value) {
    ExpressionPtr made = make(words, Kind::filter);
    made->text = words.expect_name("the name of a filter");
    if (!is_filter(made->text)) throw_syntax(path_, words.line(), "a filter that this version has", made->text);
    made->parts.push_back(std::move(value));
    if (words.is_sign("(")) arguments(words, *made);
    return done(words, std::move(made));
  }
  ExpressionPtr test(Words& words, ExpressionPtr value) {
    const bool is_negated = words.take_name("not");
    ExpressionPtr made = make(words, Kind::test);
    made->text = words.expect_name("the name of a test");
    if (!is_test(made->text)) throw_syntax(path_, words.line(), "a test that this version has", made->text);
    made->parts.push_back(std::move(value));
    if (words.is_sign("(")) {
      arguments(words, *made);
    } else {
      const Word& next = words.next();
      const bool is_word = next.kind == Word::Kind::name && next.text != "else" && next.text != "or" &&
                           next.text != "and" && next.text != "if" && next.text != "is" && next.text != "in" &&
                           next.text != "not";
      if (is_word || next.kind == Word::Kind::number || next.kind == Word::Kind::text || words.is_sign("[") ||
          words.is_sign("{"))
        made->parts.push_back(behind(words, primary(words)));
    }
    made = done(words, std::move(made));
    if (!is_negated) return made;
    ExpressionPtr other = make(words, Kind::is_not);
    other->parts.push_back(std::move(made));
    return done(words, std::move(other));
  }

  const std::string& path_;
  int& count_;
  int level_ = 0;
};

class Statements {
 public:
  Statements(const std::string& path, std::string_view text)
      : path_(path), pieces_(pieces_of(path, text)), expressions_(path_, count_) {}

  std::vector<Statement> all() {
    std::vector<Statement> result = until({}, nullptr);
    return result;
  }

 private:
  // Statements up to a tag with one of these names, which ended_by gets; to the end of the template without names.
  std::vector<Statement> until(const std::vector<std::string_view>& ends, std::unique_ptr<Words>* ended_by) {
    if (++level_ > kMostLevels) throw_syntax(path_, line_, "blocks of at most 200 levels", "more");
    std::vector<Statement> result;
    while (at_ < pieces_.size()) {
      const Piece& piece = pieces_[at_++];
      line_ = piece.line;
      if (piece.kind == Piece::Kind::text) {
        result.push_back({.action = Action::text, .line = piece.line, .text = piece.text});
        continue;
      }
      Words words(path_, piece);
      if (piece.kind == Piece::Kind::output) {
        Statement made{.action = Action::output, .line = piece.line};
        made.expressions.push_back(expressions_.tuple(words));
        words.expect_end();
        result.push_back(std::move(made));
        continue;
      }
      const std::string name = words.expect_name("the name of a tag");
      if (std::find(ends.begin(), ends.end(), name) != ends.end()) {
        *ended_by = std::make_unique<Words>(std::move(words));
        last_ = name;
        --level_;
        return result;
      }
      result.push_back(statement(name, words));
    }
    if (!ends.empty()) throw_syntax(path_, line_, "{% " + std::string(ends.back()) + " %}", "the end of the template");
    --level_;
    return result;
  }

  Statement statement(const std::string& name, Words& words) {
    Statement made{.line = words.line()};
    if (name == "if") return choose(words);
    if (name == "for") return loop(words);
    if (name == "set") return set(words);
    if (name == "generation") {  // what marks an answer for training; the text is as without it
      words.expect_end();
      made.action = Action::block;
      std::unique_ptr<Words> end;
      made.bodies.push_back(until({"endgeneration"}, &end));
      end->expect_end();
      return made;
    }
    if (name == "break" || name == "continue") {
      if (loops_ == 0) throw_syntax(path_, words.line(), name + " in a loop", "it outside of one");
      words.expect_end();
      made.action = name == "break" ? Action::leave : Action::next;
      return made;
    }
    throw_syntax(path_, words.line(), "if, for, set, break, continue or generation", name);
  }

  Statement choose(Words& words) {
    Statement made{.action = Action::choose, .line = words.line()};
    std::string tag = "if";
    std::unique_ptr<Words> here;
    Words* current = &words;
    while (tag != "endif") {
      made.expressions.push_back(tag == "else" ? nullptr : expressions_.tuple(*current));
      current->expect_end();
      const bool is_else = tag == "else";
      std::unique_ptr<Words> end;
      made.bodies.push_back(is_else ? until({"endif"}, &end) : until({"elif", "else", "endif"}, &end));
      here = std::move(end);
      current = here.get();
      tag = last_;
    }
    current->expect_end();
    return made;
  }

  std::vector<std::string> targets(Words& words) {
    std::vector<std::string> names;
    const bool has_brackets = words.take_sign("(");
    do names.push_back(words.expect_name("the name of a variable"));
    while (words.take_sign(","));
    if (has_brackets) words.expect_sign(")");
    return names;
  }

  Statement loop(Words& words) {
    Statement made{.action = Action::loop, .line = words.line()};
    made.names = targets(words);
    if (!words.take_name("in")) words.fail("in");
    made.expressions.push_back(expressions_.either(words));  // no choice: "if" selects values here
    if (words.is_sign(",")) words.fail("one value to go over");
    made.expressions.push_back(words.take_name("if") ? expressions_.whole(words) : nullptr);
    if (words.is_name("recursive")) words.fail("a loop that is not recursive");
    words.expect_end();
    std::unique_ptr<Words> end;
    ++loops_;
    made.bodies.push_back(until({"else", "endfor"}, &end));
    --loops_;
    end->expect_end();
    made.bodies.emplace_back();
    if (last_ == "else") {
      std::unique_ptr<Words> last;
      made.bodies.back() = until({"endfor"}, &last);
      last->expect_end();
    }
    return made;
  }

  Statement set(Words& words) {
    Statement made{.action = Action::set, .line = words.line()};
    made.names = targets(words);
    if (made.names.size() == 1 && words.take_sign(".")) made.text = words.expect_name("the name of an attribute");
    if (words.take_sign("=")) {
      made.expressions.push_back(expressions_.tuple(words));
      words.expect_end();
      return made;
    }
    if (made.names.size() > 1) words.fail("'='");
    words.expect_end();
    made.action = Action::set_block;
    std::unique_ptr<Words> end;
    made.bodies.push_back(until({"endset"}, &end));
    end->expect_end();
    return made;
  }

  std::string path_;
  std::vector<Piece> pieces_;
  int count_ = 0;
  Expressions expressions_;
  std::size_t at_ = 0;
  int line_ = 1, level_ = 0, loops_ = 0;
  std::string last_;  // the tag that ended a body
};

}  // namespace

std::vector<Statement> parse(const std::string& path, std::string_view text) { return Statements(path, text).all(); }

}  // namespace samebytes::detail::jinja

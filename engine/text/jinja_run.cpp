// Renders a template: variables in scopes, loops, calls.
#include <algorithm>
#include <map>
#include <optional>
#include <stdexcept>

#include "samebytes/error.h"
#include "text/jinja.h"

namespace samebytes::detail::jinja {
namespace {

// What anybody's template may take.
constexpr std::int64_t kMostEvaluations = std::int64_t{1} << 25;

enum class Flow : std::uint8_t { on, leave, next };

class Run {
 public:
  Run(const std::string& path, const Value& variables) : path_(path) {
    scopes_.emplace_back();
    for (const auto& [name, value] : variables.items()) scopes_.back()[name] = value;
  }

  Flow statements(const std::vector<Statement>& all) {
    for (const Statement& one : all)
      if (const Flow flow = statement(one); flow != Flow::on) return flow;
    return Flow::on;
  }
  std::string text() { return std::move(out_); }

 private:
  using Scope = std::map<std::string, Value>;

  [[noreturn]] void fail(int line, const std::string& what) const {
    throw Error("chat template: " + path_ + ", line " + std::to_string(line) + ": " + what);
  }
  // What fn gives; its faults get a place.
  template <class Fn>
  auto guarded(int line, const Fn& fn) const {
    try {
      return fn();
    } catch (const std::invalid_argument& error) {
      fail(line, error.what());
    } catch (const nlohmann::json::exception& error) {
      fail(line, error.what());
    }
  }

  void write(int line, const std::string& text) {
    if (out_.size() + text.size() > kMostBytes) fail(line, "expected a text of at most 64 MiB, got more");
    out_ += text;
  }

  Flow statement(const Statement& one) {
    switch (one.action) {
      case Action::text: write(one.line, one.text); return Flow::on;
      case Action::output: {
        const Value value = evaluate(*one.expressions[0]);
        write(one.line, guarded(one.line, [&] { return printed(value); }));
        return Flow::on;
      }
      case Action::choose:
        for (std::size_t i = 0; i < one.bodies.size(); ++i)
          if (!one.expressions[i] || is_true(evaluate(*one.expressions[i]))) return statements(one.bodies[i]);
        return Flow::on;
      case Action::loop: return loop(one);
      case Action::set:
        if (one.text.empty())
          bind(one.line, one.names, evaluate(*one.expressions[0]));
        else
          set_attribute(one, evaluate(*one.expressions[0]));
        return Flow::on;
      case Action::set_block: {
        std::string before = std::move(out_);
        out_.clear();
        const Flow flow = statements(one.bodies[0]);
        const Value value = std::exchange(out_, std::move(before));
        if (one.text.empty())
          scopes_.back()[one.names[0]] = value;
        else
          set_attribute(one, value);
        return flow;
      }
      case Action::leave: return Flow::leave;
      case Action::next: return Flow::next;
      case Action::block: break;
    }
    return statements(one.bodies[0]);
  }

  void bind(int line, const std::vector<std::string>& names, const Value& value) {
    if (names.size() == 1) {
      scopes_.back()[names[0]] = value;
      return;
    }
    const std::vector<Value> items = guarded(line, [&] { return items_of(value); });
    if (items.size() != names.size())
      fail(line, "expected " + std::to_string(names.size()) + " values, got " + std::to_string(items.size()));
    for (std::size_t i = 0; i < names.size(); ++i) scopes_.back()[names[i]] = items[i];
  }
  // {% set name.text = value %}
  void set_attribute(const Statement& one, const Value& value) {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto found = scope->find(one.names[0]);
      if (found == scope->end()) continue;
      if (!found->second.is_object()) break;
      found->second[one.text] = value;
      return;
    }
    fail(one.line, "expected a namespace, " + one.names[0] + " is none");
  }

  Flow loop(const Statement& one) {
    const Value whole = evaluate(*one.expressions[0]);
    std::vector<Value> items = guarded(one.line, [&] { return items_of(whole); });
    if (one.expressions[1]) {
      std::vector<Value> kept;
      for (Value& item : items) {
        scopes_.emplace_back();
        bind(one.line, one.names, item);
        if (is_true(evaluate(*one.expressions[1]))) kept.push_back(std::move(item));
        scopes_.pop_back();
      }
      items = std::move(kept);
    }
    if (items.empty()) return statements(one.bodies[1]);
    for (std::size_t i = 0; i < items.size(); ++i) {
      scopes_.emplace_back();
      bind(one.line, one.names, items[i]);
      Value place = Value::object();
      place["index"] = i + 1;
      place["index0"] = i;
      place["revindex"] = items.size() - i;
      place["revindex0"] = items.size() - i - 1;
      place["length"] = items.size();
      place["first"] = i == 0;
      place["last"] = i + 1 == items.size();
      if (i > 0) place["previtem"] = items[i - 1];
      if (i + 1 < items.size()) place["nextitem"] = items[i + 1];
      scopes_.back()["loop"] = std::move(place);
      const Flow flow = statements(one.bodies[0]);
      scopes_.pop_back();
      if (flow == Flow::leave) break;
    }
    return Flow::on;
  }

  const Value* find(const std::string& name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope)
      if (const auto found = scope->find(name); found != scope->end()) return &found->second;
    return nullptr;
  }

  Value evaluate(const Expression& e) {
    if (++evaluations_ > kMostEvaluations) fail(e.line, "expected at most 2^25 evaluations, got more");
    switch (e.kind) {
      case Kind::literal: return e.value;
      case Kind::name: {
        const Value* found = find(e.text);
        return found != nullptr ? *found : undefined();
      }
      case Kind::list: {
        Value list = Value::array();
        for (const ExpressionPtr& part : e.parts) list.push_back(evaluate(*part));
        return list;
      }
      case Kind::object: {
        Value object = Value::object();
        for (std::size_t i = 0; i + 1 < e.parts.size(); i += 2) {
          const Value key = evaluate(*e.parts[i]);
          object[key.is_string() ? key.get<std::string>() : printed(key)] = evaluate(*e.parts[i + 1]);
        }
        return object;
      }
      case Kind::attribute: return attribute(e, *e.parts[0], e.text);
      case Kind::item: return attribute(e, *e.parts[0], evaluate(*e.parts[1]));
      case Kind::slice: {
        const auto bound = [&](std::size_t i) { return e.parts[i] ? evaluate(*e.parts[i]) : Value(); };
        const Value value = evaluate(*e.parts[0]), from = bound(1), to = bound(2), step = bound(3);
        return guarded(e.line, [&] { return slice_of(value, from, to, step); });
      }
      case Kind::call: return call(e);
      case Kind::filter: {
        const Value value = evaluate(*e.parts[0]);
        const Arguments given = arguments(e);
        return guarded(e.line, [&] { return filtered(e.text, value, given); });
      }
      case Kind::test: {
        const Value value = evaluate(*e.parts[0]);
        const Arguments given = arguments(e);
        return guarded(e.line, [&] { return Value(run_test(e.text, value, given)); });
      }
      case Kind::negative: {
        const Value value = evaluate(*e.parts[0]);
        return guarded(e.line, [&] { return calculate("-", 0, value); });
      }
      case Kind::is_not: return !is_true(evaluate(*e.parts[0]));
      case Kind::both: {
        Value first = evaluate(*e.parts[0]);
        return is_true(first) ? evaluate(*e.parts[1]) : first;
      }
      case Kind::either: {
        Value first = evaluate(*e.parts[0]);
        return is_true(first) ? first : evaluate(*e.parts[1]);
      }
      case Kind::comparison: return comparison(e);
      case Kind::arithmetic: {
        const Value a = evaluate(*e.parts[0]), b = evaluate(*e.parts[1]);
        return guarded(e.line, [&] { return calculate(e.text, a, b); });
      }
      case Kind::join: {
        std::string text;
        for (const ExpressionPtr& part : e.parts) text += printed(evaluate(*part));
        if (text.size() > kMostBytes) fail(e.line, "expected a text of at most 64 MiB, got more");
        return text;
      }
      case Kind::choice: break;
    }
    if (is_true(evaluate(*e.parts[1]))) return evaluate(*e.parts[0]);
    return e.parts[2] ? evaluate(*e.parts[2]) : undefined();
  }

  // A chain of names and items goes through the values where they lie, so that no conversation is copied.
  const Value* lying(const Expression& e) {
    if (e.kind == Kind::name) return find(e.text);
    if (e.kind != Kind::attribute && e.kind != Kind::item) return nullptr;
    const Value* whole = lying(*e.parts[0]);
    if (whole == nullptr) return nullptr;
    const Value key = e.kind == Kind::attribute ? Value(e.text) : evaluate(*e.parts[1]);
    if (whole->is_object() && key.is_string()) {
      const auto found = whole->find(key.get_ref<const std::string&>());
      return found == whole->end() ? nullptr : &*found;
    }
    if (whole->is_array() && key.is_number_integer()) {
      const auto place = key.get<std::int64_t>(), size = static_cast<std::int64_t>(whole->size());
      const std::int64_t at = place < 0 ? place + size : place;
      return at >= 0 && at < size ? &(*whole)[static_cast<std::size_t>(at)] : nullptr;
    }
    return nullptr;
  }
  Value attribute(const Expression& e, const Expression& of, const Value& key) {
    if (const Value* whole = lying(of)) return guarded(e.line, [&] { return attribute_of(*whole, key); });
    const Value value = evaluate(of);
    if (value.is_discarded())
      fail(e.line, "expected a value to take " + printed(key) + " of, " +
                       (of.text.empty() ? std::string("it") : of.text) + " is undefined");
    return guarded(e.line, [&] { return attribute_of(value, key); });
  }

  Arguments arguments(const Expression& e) {
    Arguments result;
    for (std::size_t i = 1; i < e.parts.size(); ++i) result.values.push_back(evaluate(*e.parts[i]));
    for (const auto& [name, value] : e.named) result.named.emplace_back(name, evaluate(*value));
    return result;
  }
  Value call(const Expression& e) {
    const Expression& called = *e.parts[0];
    if (called.kind == Kind::attribute) {
      const Value value = evaluate(*called.parts[0]);
      const Arguments given = arguments(e);
      return guarded(e.line, [&] { return call_method(called.text, value, given); });
    }
    if (called.kind != Kind::name) fail(e.line, "expected a function's name before '('");
    const Arguments given = arguments(e);
    return guarded(e.line, [&] { return call_function(called.text, given); });
  }

  Value comparison(const Expression& e) {
    Value left = evaluate(*e.parts[0]);
    for (std::size_t i = 0; i < e.words.size(); ++i) {
      Value right = evaluate(*e.parts[i + 1]);
      const std::string& sign = e.words[i];
      const bool holds = guarded(e.line, [&] {
        if (sign == "==") return equal(left, right);
        if (sign == "!=") return !equal(left, right);
        if (sign == "in") return contains(right, left);
        if (sign == "not in") return !contains(right, left);
        if (sign == "<") return less(left, right);
        if (sign == ">") return less(right, left);
        return sign == "<=" ? !less(right, left) : !less(left, right);
      });
      if (!holds) return false;
      left = std::move(right);
    }
    return true;
  }

  const std::string& path_;
  std::vector<Scope> scopes_;
  std::string out_;
  std::int64_t evaluations_ = 0;
};

}  // namespace

Template::Template(std::string path, std::string_view text) : path_(std::move(path)), statements_(parse(path_, text)) {}

std::string Template::render(const Value& variables) const {
  Run run(path_, variables);
  run.statements(statements_);
  return run.text();
}

}  // namespace samebytes::detail::jinja

#include "samebytes/text/chat_template.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/io_error.h"
#include "core/json.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"
#include "samebytes/io/gguf.h"
#include "text/gguf_tokenizer.h"
#include "text/jinja.h"

namespace samebytes::text {
namespace {

using detail::jinja::Value;
constexpr const char* kReader = "chat template";
constexpr const char* kConfig = "tokenizer_config.json";

std::string read(const std::string& path) {
  const std::vector<std::byte> bytes = io::read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The texts of special tokens, which a config has as texts or as objects with "content".
Value tokens_of(const Value& config) {
  Value tokens = Value::object();
  for (const auto& [key, value] : config.items()) {
    if (!key.ends_with("_token")) continue;
    if (value.is_string()) tokens[key] = value;
    if (value.is_object() && value.contains("content") && value["content"].is_string()) tokens[key] = value["content"];
  }
  return tokens;
}

// The template in a config; none where it has none.
std::optional<std::string> template_of(const std::string& path, const Value& config) {
  if (!config.contains("chat_template") || config["chat_template"].is_null()) return std::nullopt;
  const Value& found = config["chat_template"];
  if (found.is_string()) return found.get<std::string>();
  if (found.is_array())
    for (const Value& one : found)
      if (one.is_object() && one.value("name", Value()) == "default" && one.value("template", Value()).is_string())
        return one["template"].get<std::string>();
  detail::throw_io(kReader, path, -1, "a text as chat_template, or a list with one of the name default",
                   found.type_name());
}

Value parsed(const char* what, std::string_view text) {
  std::optional<Value> value = detail::parse_json<Value>(text);
  if (!value) throw ArgumentError(std::string("chat template: expected JSON as ") + what);
  return std::move(*value);
}

}  // namespace

struct ChatTemplate::State {
  detail::jinja::Template jinja;
  Value tokens;
};

std::optional<ChatTemplate> ChatTemplate::find(const std::string& folder) {
  if (io::is_gguf(folder)) {
    const Value file = detail::read_gguf_tokenizer_config(folder);
    const std::optional<std::string> text = template_of(folder, file);
    return text ? std::optional(parse(folder, *text, detail::to_line(tokens_of(file)))) : std::nullopt;
  }
  const std::filesystem::path base(folder);
  const std::string path = (base / "chat_template.jinja").string(), config_path = (base / kConfig).string();
  std::error_code code;
  Value config = Value::object();
  if (std::filesystem::exists(config_path, code)) {
    config = detail::parse_json<Value>(kReader, config_path, read(config_path));
    if (!config.is_object()) detail::throw_io(kReader, config_path, 0, "an object", config.type_name());
  }
  const std::string tokens = tokens_of(config).dump();
  if (std::filesystem::exists(path, code)) return parse(path, read(path), tokens);
  if (const std::optional<std::string> text = template_of(config_path, config))
    return parse(config_path, *text, tokens);
  return std::nullopt;
}

ChatTemplate ChatTemplate::load(const std::string& folder) {
  std::optional<ChatTemplate> found = find(folder);
  if (!found)
    detail::throw_io(kReader, folder, -1, "chat_template.jinja, or chat_template in " + std::string(kConfig), "none");
  return *found;
}

ChatTemplate ChatTemplate::parse(const std::string& path, std::string_view jinja, std::string_view tokens) {
  ChatTemplate made;
  made.state_ = std::make_shared<const State>(State{detail::jinja::Template(path, jinja), parsed("tokens", tokens)});
  return made;
}

std::string ChatTemplate::apply(const std::vector<ChatMessage>& messages, const ChatOptions& options) const {
  Value list = Value::array();
  for (const ChatMessage& message : messages) list.push_back({{"role", message.role}, {"content", message.content}});
  return apply_json(list.dump(-1, ' ', false, Value::error_handler_t::replace), options);
}

std::string ChatTemplate::apply_json(std::string_view messages, const ChatOptions& options) const {
  Value variables = state_->tokens;
  // What transformers gives every template.
  for (const char* name : {"tools", "documents"}) variables[name] = nullptr;
  if (!options.variables.empty()) {
    const Value more = parsed("variables", options.variables);
    if (!more.is_object()) throw ArgumentError("chat template: expected a JSON object as variables");
    for (const auto& [key, value] : more.items()) variables[key] = value;
  }
  variables["messages"] = parsed("messages", messages);
  if (!variables["messages"].is_array()) throw ArgumentError("chat template: expected a JSON list of messages");
  variables["add_generation_prompt"] = options.add_generation_prompt;
  return state_->jinja.render(variables);
}

}  // namespace samebytes::text

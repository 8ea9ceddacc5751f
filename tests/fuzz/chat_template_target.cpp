#include <nlohmann/json.hpp>

#include "fuzz/target.h"
#include "samebytes/text/chat_template.h"
#include "support/files.h"
#include "support/places.h"

namespace samebytes::fuzz {
namespace {

const nlohmann::json& chats() {
  static const auto parsed = nlohmann::json::parse(testing::get(testing::source_folder() + "/tests/text/chats.json"));
  return parsed;
}

// The templates of tests/text/chats.json: those of the families, and what shows one thing each.
void make(const std::string& folder) {
  int i = 0;
  for (const char* list : {"families", "snippets"})
    for (const auto& one : chats()[list])
      testing::put(folder + "/" + std::to_string(100 + i++), one["template"].get<std::string>());
}

const Added added({
    .name = "chat_template",
    .file = "chat_template.jinja",
    .make = make,
    .read =
        [](const std::string& path) {
          const auto chat = text::ChatTemplate::parse(path, testing::get(path), chats()["tokens"].dump());
          chat.apply({{"user", "How high?"}, {"assistant", "4478 m \xff"}, {"user", "Thanks"}},
                     {.add_generation_prompt = true, .variables = chats()["values"].dump()});
        },
    .words =
        {"{{",        "}}",       "{%",       "%}",      "{#",       "#}",         "{%-",       "-%}",
         "for",       "endfor",   "in",       "if",      "elif",     "else",       "endif",     "set",
         "endset",    "messages", "message",  "content", "role",     "loop.first", "namespace", "is defined",
         "| tojson",  "| trim",   "| length", "| join",  "~",        "%",          "**",        "range(",
         "'a' * 999", "[::-1]",   "split(",   "macro",   "endmacro", "recursive",  "not in",    "raise_exception("},
    .growth = 2000,  // a loop writes its text for each message, a range for each number
});

}  // namespace
}  // namespace samebytes::fuzz

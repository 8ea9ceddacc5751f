#include "fuzz/target.h"
#include "samebytes/data/text_samples.h"
#include "samebytes/error.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

const data::ChatReader& reader() {
  static const data::ChatReader made{
      .tokenizer = text::Tokenizer::parse("tokenizer.json", R"({"model": {"type": "WordLevel", "unk_token": "?",
"vocab": {"?": 0, "a": 1, "b": 2, "user": 3}}, "pre_tokenizer": {"type": "Whitespace"}})"),
      .chat_template = text::ChatTemplate::parse(
          "x.jinja", "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}", "{}"),
      .end = 0};
  return made;
}

// Samples as ids, else as texts.
const Added added({
    .name = "chats",
    .file = "chats.jsonl",
    .make =
        [](const std::string& folder) {
          testing::put(folder + "/ids", R"({"prompt": [1, 2], "answer": [3]}
{"pieces": [{"ids": [1]}, {"ids": [2, 3], "counts": true}]}
)");
          testing::put(folder + "/texts",
                       R"({"messages": [{"role": "user", "content": "a b"}, {"role": "assistant", "content": "b"}]}
{"prompt": "a", "answer": "b"}
{"prompt": "a", "completion": "b"}

{"instruction": "a", "input": "b", "output": "a"}
{"text": "a b a"}
)");
        },
    .read =
        [](const std::string& path) {
          try {
            data::read_text_samples(path);
          } catch (const Error&) {
            data::read_chats(path, reader());
          }
        },
    .words = {"\"messages\"", "\"role\"", "\"content\"", "\"assistant\"", "\"prompt\"", "\"pieces\"", "\"ids\"",
              "\"text\"", "\n", "4294967296", "1e999", "-1", "null", "[]", "{}", "\\ud800"},
    .growth = 2000,  // a conversation is written anew for each of its answers
});

}  // namespace
}  // namespace samebytes::fuzz

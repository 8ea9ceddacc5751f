#include "fuzz/target.h"
#include "samebytes/text/chat_template.h"
#include "samebytes/text/tokenizer.h"
#include "support/files.h"
#include "support/gguf.h"

namespace samebytes::fuzz {
namespace {

using testing::gguf::pair;
using Texts = std::vector<std::string>;

std::string bytes_file() {
  return testing::gguf::file_of({pair("tokenizer.ggml.model", "gpt2"), pair("tokenizer.ggml.pre", "qwen2"),
                                 pair("tokenizer.ggml.tokens", Texts{"a", "b", "ab", "\u0120", "<e>"}),
                                 pair("tokenizer.ggml.token_type", std::vector<std::int32_t>{1, 1, 1, 1, 3}),
                                 pair("tokenizer.ggml.merges", Texts{"a b"}),
                                 pair("tokenizer.ggml.add_eos_token", true),
                                 pair("tokenizer.ggml.eos_token_id", std::uint32_t{4}),
                                 pair("tokenizer.chat_template", "{{ messages[0].content }}{{ eos_token }}")});
}

std::string pieces_file() {
  return testing::gguf::file_of(
      {pair("tokenizer.ggml.model", "llama"),
       pair("tokenizer.ggml.tokens", Texts{"<unk>", "<s>", "<0x41>", "\u2581", "a", "\u2581a", "aa"}),
       pair("tokenizer.ggml.scores", std::vector<float>{0, 0, 0, -1, -2, -3, -4}),
       pair("tokenizer.ggml.token_type", std::vector<std::int32_t>{2, 3, 6, 1, 1, 1, 1}),
       pair("tokenizer.ggml.unknown_token_id", std::uint32_t{0}),
       pair("tokenizer.ggml.bos_token_id", std::uint32_t{1})});
}

std::string words_file() {
  return testing::gguf::file_of({pair("tokenizer.ggml.model", "bert"),
                                 pair("tokenizer.ggml.tokens", Texts{"[UNK]", "[CLS]", "[SEP]", "\u2581a", "b"}),
                                 pair("tokenizer.ggml.unknown_token_id", std::uint32_t{0}),
                                 pair("tokenizer.ggml.cls_token_id", std::uint32_t{1}),
                                 pair("tokenizer.ggml.seperator_token_id", std::uint32_t{2})});
}

const Added added({
    .name = "gguf_tokenizer",
    .file = "x.gguf",
    .make =
        [](const std::string& folder) {
          testing::put(folder + "/bytes", bytes_file());
          testing::put(folder + "/pieces", pieces_file());
          testing::put(folder + "/words", words_file());
        },
    .read =
        [](const std::string& path) {
          const auto tokenizer = text::Tokenizer::load(path);
          const auto ids = tokenizer.encode("ab aa <e> caf\u00e9 12\xff\n").ids;
          tokenizer.decode(ids, {.skip_special_tokens = false});
          if (const auto chat = text::ChatTemplate::find(path)) chat->apply({{"user", "a"}});
        },
    .words = {"tokenizer.ggml.model", "tokenizer.ggml.pre", "tokenizer.ggml.scores", "tokenizer.ggml.merges", "gpt2",
              "llama", "bert", "tekken", "default", "tokenizer.huggingface.json", std::string("\x09\0\0\0", 4),
              std::string("\0\0\0\0\0\0\0\x80", 8), std::string("\0\0\xc0\x7f", 4)},
    .growth = 500,  // of short tokens each is a string in a map, and in pairs
});

}  // namespace
}  // namespace samebytes::fuzz

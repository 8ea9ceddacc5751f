#include "fuzz/target.h"
#include "samebytes/data/text.h"
#include "samebytes/error.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

// As a vocabulary, and as the merges of one that is there.
const Added added({
    .name = "vocabulary",
    .file = "vocab.json",
    .make =
        [](const std::string& folder) {
          data::CharTokenizer::from_text("a\u00fcb \n\u20ac").save(folder + "/characters");
          testing::put(folder + "/vocab", R"({"a": 0, "b": 1, "ab": 2, "\u0120a": 3, "\u0120": 4})");
          testing::put(folder + "/merges", "#version: 0.2\na b\n\u0120 a\n");
        },
    .read =
        [](const std::string& path) {
          const std::string folder = path.substr(0, path.rfind('/'));
          const std::string vocab = folder + "/whole.json", merges = folder + "/whole.txt";
          testing::put(vocab, R"({"a": 0, "b": 1, "ab": 2, "\u0120a": 3, "\u0120": 4})");
          testing::put(merges, "a b\n");
          try {
            data::CharTokenizer::load(path);
          } catch (const Error&) {
            try {
              data::BpeTokenizer::load(path, merges).encode("abab a");
            } catch (const Error&) {
              data::BpeTokenizer::load(vocab, path).encode("abab a");
            }
          }
        },
    .words = {"\"characters\"", "[", "]", "{", "}", ":", "\\ud83d\\ude00", "\\u0000", "1e999", "-1", "4294967296"},
    .growth = 300,  // of short tokens each is a string in a map
});

}  // namespace
}  // namespace samebytes::fuzz

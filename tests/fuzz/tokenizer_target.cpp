#include "fuzz/target.h"
#include "samebytes/text/tokenizer.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

const Added added({
    .name = "tokenizer",
    .file = "tokenizer.json",
    .make =
        [](const std::string& folder) {
          testing::put(folder + "/bytes", R"({"added_tokens": [{"id": 9, "content": "<|end|>", "special": true,
"lstrip": true, "rstrip": true, "single_word": true, "normalized": true}], "normalizer": {"type": "NFC"}, "pre_tokenizer":
{"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "\\p{L}+|\\s"}, "behavior": "Isolated",
"invert": false}, {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true}]},
"post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "s", "type_id": 0}}, {"Sequence":
{"id": "A", "type_id": 0}}], "pair": [{"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": {"s": {"id": "s", "ids":
[1], "tokens": ["a"]}}}, "decoder": {"type": "ByteLevel"}, "truncation": {"direction": "Right", "max_length": 9, "strategy":
"LongestFirst", "stride": 0}, "padding": {"strategy": "BatchLongest", "direction": "Left", "pad_to_multiple_of": 4, "pad_id":
0, "pad_type_id": 0, "pad_token": "a"}, "model": {"type": "BPE", "unk_token": "a", "fuse_unk": true, "byte_fallback": true,
"ignore_merges": true, "continuing_subword_prefix": "", "vocab": {"a": 0, "b": 1, "ab": 2, "\u0120": 3, "<0x41>": 4},
"merges": [["a", "b"]]}})");
          testing::put(folder + "/pieces",
                       R"({"normalizer": {"type": "Sequence", "normalizers": [{"type": "BertNormalizer",
"clean_text": true, "strip_accents": null}, {"type": "Replace", "pattern": {"String": "a"}, "content": "ab"}, {"type":
"Prepend", "prepend": "b"}, {"type": "Strip", "strip_left": true, "strip_right": true}, {"type": "Precompiled",
"precompiled_charsmap": "CAAAAAAEAAAABAAAYQBiAA=="}]}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type":
"BertPreTokenizer"}, {"type": "Digits", "individual_digits": true}, {"type": "Punctuation", "behavior":
"MergedWithPrevious"}, {"type": "Whitespace"}]}, "post_processor": {"type": "BertProcessing", "sep": ["a", 1], "cls": ["b",
2]}, "decoder": {"type": "Sequence", "decoders": [{"type": "WordPiece", "prefix": "##", "cleanup": true}, {"type": "Strip",
"content": " ", "start": 1, "stop": 1}, {"type": "ByteFallback"}, {"type": "Fuse"}]}, "model": {"type": "WordPiece",
"unk_token": "[UNK]", "max_input_chars_per_word": 9, "vocab": {"[UNK]": 0, "a": 1, "##b": 2}}})");
          testing::put(folder + "/scores", R"({"pre_tokenizer": {"type": "Metaspace", "replacement": "\u2581",
"prepend_scheme": "first", "split": true}, "post_processor": {"type": "RobertaProcessing", "sep": ["a", 1], "cls": ["b", 2]},
"decoder": {"type": "Metaspace", "prepend_scheme": "always"}, "model": {"type": "Unigram", "unk_id": 0, "byte_fallback":
true, "vocab": [["<unk>", 0], ["\u2581a", -1.5], ["b", -2.25], ["ab", -1e-7]]}})");
        },
    .read =
        [](const std::string& path) {
          const auto tokenizer = text::Tokenizer::load(path);
          const auto ids = tokenizer.encode("Ab a 12 <|end|> caf\u00e9 \u65e5\U0001f600\xff\n's").ids;
          tokenizer.decode(ids, {.skip_special_tokens = false});
          tokenizer.encode("a", "b");
        },
    .words = {"\"type\"",       "\"Sequence\"", "\"Split\"",      "\"Regex\"", "\"String\"", "\"content\"",
              "\"vocab\"",      "\"merges\"",   "\"ByteLevel\"",  "\"NFKD\"",  "\"Nmt\"",    "\"Unigram\"",
              "\"WordLevel\"",  "\"Removed\"",  "\"Contiguous\"", "(?=",       "\\\\p{N}",   "{1,99}",
              "\\ud83d\\ude00", "\\u0000",      "1e999",          "-1",        "4294967296", "null"},
    .growth = 300,  // of short tokens each is a string in a map
});

}  // namespace
}  // namespace samebytes::fuzz

// samebytes finetune, chat and embed on small folders with words as tokens.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/command.h"
#include "models/folders.h"
#include "models/gguf_files.h"
#include "samebytes/io/tensor_npy.h"
#include "samebytes/models/lora.h"
#include "samebytes/models/sentence_encoder.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

// A token for each word; the model's 29 ids are enough for these.
Json word_tokenizer() {
  Json vocabulary = {{"<unk>", 0}};
  for (const char* word : {"<s>", "</s>", "<user>", "<bot>", "red", "green", "blue", "sky", "grass", "blood", "what",
                           "colour", "has", "the", "?", "it", "is"})
    vocabulary[word] = vocabulary.size();
  Json added = Json::array();
  for (const char* word : {"<s>", "</s>", "<user>", "<bot>"})
    added.push_back({{"id", vocabulary[word]},
                     {"content", word},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  return {{"version", "1.0"},
          {"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "WhitespaceSplit"}}},
          {"post_processor", nullptr},
          {"decoder", nullptr},
          {"model", {{"type", "WordLevel"}, {"vocab", vocabulary}, {"unk_token", "<unk>"}}}};
}

constexpr const char* kTemplate =
    "{{ bos_token }}{% for m in messages %}{{ '<user> ' if m.role == 'user' else '<bot> ' }}{{ m.content }}"
    "{{ ' ' if m.role == 'user' else eos_token }}{% endfor %}{% if add_generation_prompt %}<bot> {% endif %}";

class LanguageCommandTest : public ::testing::Test {
 protected:
  LanguageCommandTest() {
    Json config = decoder_config("llama", "LlamaForCausalLM");
    config.update({{"hidden_size", 64}, {"intermediate_size", 64}, {"eos_token_id", 2}, {"initializer_range", 0.1}});
    write(model_, config);
    put(model_ + "/tokenizer_config.json",
        Json{{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"chat_template", kTemplate}}.dump());
    std::string lines;
    for (const auto& [thing, colour] : {std::pair{"sky", "blue"}, {"grass", "green"}, {"blood", "red"}})
      for (int i = 0; i < 2; ++i)
        lines += Json{{"prompt", std::string("what colour has the ") + thing + " ?"}, {"answer", colour}}.dump() + "\n";
    put(chats_, lines);
  }
  static void write(const std::string& folder, const Json& config) {
    Engine engine;
    const EngineScope scope(engine);
    write_folder(folder, config);
    put(folder + "/tokenizer.json", word_tokenizer().dump());
  }
  static CommandResult run(std::vector<std::string> words, const std::string& input = "", int status = 0) {
    CommandRun how;
    how.arguments = std::move(words);
    how.input = input;
    CommandResult result = run_command(how);
    EXPECT_EQ(result.status, status) << result.out << result.err;
    return result;
  }

  const TemporaryFolder folder_;
  const std::string model_ = folder_ / "tiny", chats_ = folder_ / "chat.jsonl", adapters_ = folder_ / "adapters",
                    merged_ = folder_ / "merged";
};

TEST_F(LanguageCommandTest, adapters_learn_answers_which_chat_then_gives) {
  const auto trained =
      run({"finetune",     model_, "--data", chats_,    "--lora",  "8",     "--lora-targets", "all-linear",
           "--quantise",   "q8",   "--rate", "2e-2",    "--steps", "60",    "--context",      "32",
           "--validation", "0.17", "--save", adapters_, "--merge", merged_, "--memory-limit", "200MB",
           "--json"});
  EXPECT_LT(trained.json()["test_loss"], 0.1);
  EXPECT_THAT(trained.err, HasSubstr("5 samples in 3 rows of 32 tokens; 10 of 55 tokens count"));
  EXPECT_THAT(trained.err, HasSubstr("memory: "));
  EXPECT_THAT(trained.err, HasSubstr("lora: "));
  EXPECT_TRUE(std::filesystem::exists(adapters_ + "/adapter_config.json"));
  EXPECT_TRUE(std::filesystem::exists(merged_ + "/tokenizer.json"));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"chat", model_, "--adapter", adapters_, "--quantise", "q8"}, {"chat", merged_}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--temperature", "0", "--tokens", "5"});
    EXPECT_EQ(run(all, "what colour has the sky ?\n/clear\nwhat colour has the blood ?\n").out, "blue\nred\n");
  }
  const auto answer = run({"chat", merged_, "--temperature", "0", "--json", "--stop", "gre"},
                          "what colour has the grass ?\n/quit\nnever read\n");
  EXPECT_EQ(answer.json()["answer"], "");
  EXPECT_EQ(answer.json()["prompt_tokens"], 9);
}

TEST_F(LanguageCommandTest, weights_that_the_system_does_not_map_are_an_error_that_names_their_file) {
  if (is_sanitized()) GTEST_SKIP() << "LD_PRELOAD does not go with sanitizers";
  CommandRun how;
  how.arguments = {"chat", model_, "--tokens", "2"};
  how.input = "the sky\n";
  how.environment = {{"LD_PRELOAD", built_program("libfaults_preload.so")}, {"SAMEBYTES_FAULTS", "always mmap 1"}};
  const CommandResult result = run_command(how);
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("tiny/model.safetensors"));
  EXPECT_THAT(result.err, HasSubstr("expected a file that can be mapped, found Cannot allocate memory"));
}

// The folder's model, its words as a tokenizer of bytes, and its template as one file.
TEST_F(LanguageCommandTest, a_gguf_file_is_talked_with_trained_embedded_and_estimated) {
  const std::string file = folder_ / "tiny.gguf";
  std::vector<std::string> tokens{"<unk>", "<s>", "</s>", "<user>", "<bot>"};
  std::vector<std::int32_t> types{2, 3, 3, 4, 4};
  std::vector<float> scores(5, 0.0f);
  float score = 0;
  for (const char* piece :
       {"\u2581red", "\u2581", "r",    "e",          "d",  "re", "b",  "l",  "u",   "n",  "g",  "s",
        "k",         "y",      "blue", "\u2581blue", "ed", "bl", "ue", "sk", "sky", "gr", "en", "green"}) {
    tokens.emplace_back(piece);
    types.push_back(1);
    scores.push_back(score--);
  }
  {
    Engine engine;
    const EngineScope scope(engine);
    put(file, gguf::file_of_folder(
                  model_, true,
                  {gguf::pair("tokenizer.ggml.model", "llama"), gguf::pair("tokenizer.ggml.tokens", tokens),
                   gguf::pair("tokenizer.ggml.scores", scores), gguf::pair("tokenizer.ggml.token_type", types),
                   gguf::pair("tokenizer.ggml.unknown_token_id", std::uint32_t{0}),
                   gguf::pair("tokenizer.ggml.bos_token_id", std::uint32_t{1}),
                   gguf::pair("tokenizer.ggml.eos_token_id", std::uint32_t{2}),
                   gguf::pair("tokenizer.chat_template", kTemplate)}));
  }
  std::string lines;
  for (int i = 0; i < 4; ++i)
    lines += Json{{"prompt", i % 2 == 0 ? "sky" : "blood"}, {"answer", i % 2 == 0 ? "blue" : "red"}}.dump() + "\n";
  put(chats_, lines);
  const auto trained =
      run({"finetune", file, "--data", chats_, "--lora", "8", "--lora-targets", "all-linear", "--rate", "2e-2",
           "--steps", "60", "--context", "32", "--save", adapters_, "--merge", merged_, "--json"});
  EXPECT_LT(trained.json()["train_loss"], 0.2);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"chat", file, "--adapter", adapters_}, {"chat", merged_}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--temperature", "0", "--tokens", "8"});
    EXPECT_EQ(run(all, "sky\n/clear\nblood\n").out, "blue\nred\n");
  }
  const std::string vector = run({"embed", file}, "sky\n").out;
  EXPECT_EQ(std::count(vector.begin(), vector.end(), ' '), 63);
  // Frozen weights are neither trained nor forgotten.
  for (const std::vector<std::string>& model :
       {std::vector<std::string>{file}, {model_}, {model_, "--quantise", "q8"}}) {
    std::vector<std::string> words{"estimate", "--lora", "8", "--context", "32", "--json"};
    words.insert(words.begin() + 1, model.begin(), model.end());
    const auto estimate = run(words).json();
    const double closed = estimate["closed_form"]["total"], exact = estimate["exact"]["total"];
    EXPECT_NEAR(closed / exact, 1.0, 0.1) << model.back();
    EXPECT_GT(estimate["mapped"], 0) << model.back();
  }
  EXPECT_THAT(run({"chat", file, "--quantise", "q4"}, "", 2).err, HasSubstr("has blocks of its own"));
}

TEST_F(LanguageCommandTest, a_run_that_was_stopped_goes_on_to_the_same_bytes) {
  const auto words = [&](const std::string& adapters, const std::string& steps, const std::string& state) {
    return std::vector<std::string>{
        "finetune",  model_, "--data", chats_,   "--lora",     "4",        "--steps",      steps, "--rate",   "1e-2",
        "--context", "32",   "--save", adapters, "--schedule", "constant", "--checkpoint", state, "--resume", "auto"};
  };
  run(words(folder_ / "whole", "8", folder_ / "one"));
  run(words(folder_ / "half", "3", folder_ / "two"));
  const auto second = run(words(folder_ / "both", "8", folder_ / "two"));
  EXPECT_THAT(second.err + second.out, HasSubstr("goes on after step 3"));
  EXPECT_EQ(get(folder_ / "both/adapter_model.safetensors"), get(folder_ / "whole/adapter_model.safetensors"));
  // A checkpoint has the adapters and what the optimizer remembers of them, not the model.
  const auto size = std::filesystem::file_size(model_ + "/model.safetensors");
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "two"))
    EXPECT_LT(std::filesystem::file_size(entry.path()), size / 2) << entry.path();
  auto other = words(folder_ / "other", "8", folder_ / "two");
  other[5] = "8";
  EXPECT_THAT(run(other, "", 2).err, HasSubstr("--lora"));
}

TEST_F(LanguageCommandTest, what_cannot_be_said_is_an_error_that_says_so) {
  EXPECT_THAT(run({"finetune", folder_.string(), "--data", chats_}, "", 2).err, HasSubstr("has no config.json"));
  EXPECT_THAT(run({"chat", folder_ / "nowhere.gguf"}, "", 2).err, HasSubstr("nowhere.gguf does not exist; expected"));
  put(folder_ / "text.gguf", "no blocks");
  EXPECT_THAT(run({"embed", folder_ / "text.gguf"}, "", 2).err, HasSubstr("text.gguf is no GGUF file; expected"));
  EXPECT_THAT(run({"estimate", folder_ / "text.gguf"}, "", 2).err, HasSubstr("text.gguf is no model's file; expected"));
  EXPECT_THAT(run({"train", model_, "--data", chats_}, "", 2).err, HasSubstr("`samebytes finetune "));
  EXPECT_THAT(run({"finetune", model_, "--data", chats_, "--context", "65"}, "", 2).err,
              HasSubstr("--context 65 is more than "));
  put(chats_, "{\"prompt\": \"what\", \"answer\": \"is\"}\n{\"question\": 1}\n");
  EXPECT_THAT(run({"finetune", model_, "--data", chats_}, "", 1).err,
              HasSubstr("expected an object with messages, with prompt and answer"));
  std::filesystem::remove(model_ + "/tokenizer_config.json");
  EXPECT_THAT(run({"chat", model_, "--tokens", "2"}, "the sky\n").err, HasSubstr("has no chat template"));
}

TEST_F(LanguageCommandTest, embed_writes_the_vectors_of_the_library) {
  const std::string encoder = folder_ / "encoder";
  write(encoder, encoder_config("bert", "BertModel"));
  const std::string out = folder_ / "vectors.npy";
  run({"embed", encoder, "--output", out, "--batch", "2"}, "the sky\nwhat colour has the grass ?\nit is\n");
  Engine engine;
  const EngineScope scope(engine);
  models::SentenceEncoder library = models::SentenceEncoder::load(encoder);
  const std::vector<std::string> texts{"the sky", "what colour has the grass ?", "it is"};
  const HostArray vectors = library.encode(texts);
  const Array read = std::get<Array>(io::value_of(io::read_tensor_npy(out)));
  EXPECT_EQ(read.shape(), (Shape{3, 16}));
  EXPECT_LT(difference(read, array(vectors.as<float>(), vectors.shape)), 1e-6);
  // A text by itself, without padding.
  const Array alone = models::sentence_vectors(library.model(), {.x = ids_of({16, 17})});
  EXPECT_LT(difference(alone, array(vectors.as<float>().subspan(32), {1, 16})), 1e-5);
  // In bf16: other bytes, near by.
  run({"embed", encoder, "--output", out, "--batch", "2", "--dtype", "bf16"},
      "the sky\nwhat colour has the grass ?\nit is\n");
  const Array narrow = std::get<Array>(io::value_of(io::read_tensor_npy(out)));
  EXPECT_GT(difference(narrow, array(vectors.as<float>(), vectors.shape)), 1e-5);
  EXPECT_LT(difference(narrow, array(vectors.as<float>(), vectors.shape)), 0.05);
  EXPECT_THAT(run({"embed", encoder, "--dtype", "f64"}, "the sky\n", 2).err, HasSubstr("--dtype"));
  EXPECT_THAT(run({"estimate", "mlp", "--dtype", "bf16"}, "", 2).err, HasSubstr("mlp has no --dtype"));
  const std::string lines = run({"embed", encoder, "--pooling", "first"}, "the sky\n").out;
  EXPECT_EQ(std::count(lines.begin(), lines.end(), ' '), 15);
}

}  // namespace
}  // namespace samebytes::testing

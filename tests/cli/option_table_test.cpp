// The option table: properties that every row has, whatever rows there are. A new row is tested by being there.
#include "cli/option_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/verbs.h"
#include "samebytes/error.h"
#include "support/files.h"
#include "support/process.h"

namespace samebytes::testing {
namespace {

using namespace samebytes::cli;
using ::testing::HasSubstr;

// Values that the row takes, and that are not what it has without being given.
std::vector<std::string> samples_of(const OptionRow& row) {
  std::vector<std::string> texts = row.choices;
  for (const char* text : {"1", "2", "0.5", "3GB", "epoch", "block", "some"}) texts.emplace_back(text);
  std::erase_if(texts, [&](const std::string& text) { return !row.fault(text).empty() || text == row.default_text; });
  return texts;
}

// Words that are enough for the verb, the option among them.
std::vector<std::string> words_with(const VerbRow& verb, const OptionRow* row, const std::string& value) {
  std::vector<std::string> words = {verb.name};
  const auto add = [&](const OptionRow& option, const std::string& text) {
    if (!option.is_positional()) words.push_back(option.flag);
    if (option.kind != ValueKind::flag) words.push_back(text);
  };
  for (const OptionRow& other : option_table())
    if (other.verbs.has(verb.verb) && other.is_required && &other != row) add(other, samples_of(other).front());
  if (row == nullptr) return words;
  if (!row->needs.empty()) {
    const OptionRow* const needed = find_row(verb.verb, row->needs);
    if (needed != nullptr) add(*needed, samples_of(*needed).front());
  }
  add(*row, value);
  return words;
}

std::vector<std::string> words_with(const VerbRow& verb, const OptionRow& row) {
  return words_with(verb, &row, row.kind == ValueKind::flag ? "" : samples_of(row).front());
}

Parsed parse(const std::vector<std::string>& words) {
  std::vector<const char*> argv = {"samebytes"};
  for (const auto& word : words) argv.push_back(word.c_str());
  return parse_options(static_cast<int>(argv.size()), argv.data());
}

bool has_word(const std::string& text, const std::string& word) {
  return std::regex_search(text, std::regex("(^|[^-\\w])" + word + "($|[^-\\w])"));
}

TEST(OptionTable, every_row_is_whole) {
  for (const OptionRow& row : option_table()) {
    EXPECT_NE(row.help, "") << row.flag;
    EXPECT_FALSE(row.verbs.is_empty()) << row.flag;
    EXPECT_NE(std::find(std::begin(group::all), std::end(group::all), row.group), std::end(group::all)) << row.flag;
    EXPECT_TRUE(std::regex_match(row.name(), std::regex("[a-z][a-z-]*"))) << row.flag;
    EXPECT_EQ(row.value.empty(), row.kind == ValueKind::flag) << row.flag << ": only a flag goes without a value";
    EXPECT_FALSE(samples_of(row).empty()) << row.flag << " takes no value";
    if (!row.default_text.empty() && row.default_text != "\n" && row.help.find("default:") == std::string::npos)
      ADD_FAILURE() << row.flag << " hides its default";
  }
}

TEST(OptionTable, a_verb_has_each_flag_once_and_what_it_refers_to) {
  for (const VerbRow& verb : verb_table()) {
    std::set<std::string> flags;
    for (const OptionRow& row : option_table()) {
      if (!row.verbs.has(verb.verb)) continue;
      EXPECT_TRUE(flags.insert(row.flag).second) << verb.name << " has " << row.flag << " twice";
      for (const auto& other : {row.needs, row.excludes})
        EXPECT_TRUE(other.empty() || find_row(verb.verb, other) != nullptr) << row.flag << " names " << other;
    }
  }
}

TEST(OptionTable, help_shows_a_flag_for_exactly_the_verbs_that_take_it) {
  std::set<std::string> flags;
  for (const OptionRow& row : option_table())
    if (!row.is_positional()) flags.insert(row.flag);
  for (const VerbRow& verb : verb_table()) {
    const std::string help = parse({verb.name, "--help"}).text;
    for (const std::string& flag : flags) {
      const bool is_shown = std::regex_search(help, std::regex("\n  " + flag + "[ \n]"));
      EXPECT_EQ(is_shown, find_row(verb.verb, flag) != nullptr) << verb.name << " " << flag;
    }
  }
}

TEST(OptionTable, a_verb_takes_its_options_and_refuses_all_others) {
  for (const VerbRow& verb : verb_table())
    for (const OptionRow& row : option_table()) {
      if (row.is_positional()) continue;
      const Parsed parsed = parse(words_with(verb, row));
      const bool is_taken = row.verbs.has(verb.verb);
      if (!is_taken && find_row(verb.verb, row.flag) != nullptr) continue;  // another row of this flag
      EXPECT_EQ(parsed.status, is_taken ? 0 : 2) << verb.name << " " << row.flag << ": " << parsed.text;
    }
}

TEST(OptionTable, a_path_that_cannot_be_written_is_refused_before_anything_runs) {
  int seen = 0;
  for (const VerbRow& verb : verb_table())
    for (const OptionRow& row : option_table()) {
      if (!row.verbs.has(verb.verb)) continue;
      const bool writes = row.help.starts_with("write") || row.help.starts_with("draw") || row.help.starts_with("plot");
      EXPECT_EQ(row.writes != Writes::nothing, writes && row.takes_file() && row.flag != "--checkpoint-every")
          << verb.name << " " << row.flag;
      if (row.writes == Writes::nothing) continue;
      const std::string path = row.writes == Writes::file ? "/proc/none/x" : "/dev/null/x";
      const Parsed parsed = parse(words_with(verb, &row, path));
      ASSERT_TRUE(parsed.options) << parsed.text;
      EXPECT_THROW(check_outputs(*parsed.options), Error) << verb.name << " " << row.flag;
      ++seen;
    }
  EXPECT_GT(seen, 10);
  const auto result = run_command({"profile", "digits", "--html", "/proc/none/x.html"});
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("--html /proc/none/x.html: there is no folder /proc/none"));
}

TEST(OptionTable, an_alias_is_its_option_on_the_command_line_and_in_a_run_file) {
  const TemporaryFolder folder;
  std::set<std::string> seen;
  for (const VerbRow& verb : verb_table())
    for (const OptionRow& row : option_table())
      for (const std::string& alias : row.also) {
        if (!row.verbs.has(verb.verb)) continue;
        EXPECT_EQ(find_row(verb.verb, alias), &row) << alias;
        EXPECT_THAT(parse({verb.name, "--help"}).text, HasSubstr(alias));
        seen.insert(alias);
        auto words = words_with(verb, row);
        if (!kWorkloadVerbs.has(verb.verb)) {  // no run file
          std::replace(words.begin(), words.end(), row.flag, alias);
          const Parsed parsed = parse(words);
          ASSERT_TRUE(parsed.options) << parsed.text;
          EXPECT_NE(value_of(row, *parsed.options), value_of(row, {})) << verb.name << " " << alias;
          continue;
        }
        if (!find_row(verb.verb, "workload")->is_required) words.insert(words.begin() + 1, "digits");
        words.emplace_back("--print-config");
        const std::string printed = parse(words).text;
        std::replace(words.begin(), words.end(), row.flag, alias);
        EXPECT_EQ(parse(words).text, printed) << verb.name << " " << alias;
        put(folder / "run.yaml",
            std::regex_replace(printed, std::regex("\n" + row.name() + ":"), "\n" + alias.substr(2) + ":"));
        EXPECT_EQ(parse({verb.name, folder / "run.yaml", "--print-config"}).text, printed) << alias;
      }
  for (const char* usual : {"--lr", "--learning-rate", "--batch-size", "--num-workers"})
    EXPECT_EQ(seen.count(usual), 1U);
  EXPECT_EQ(parse({"train", "digits", "--batch_size=8"}).options->batch, 8) << "an underscore is a dash";
}

TEST(OptionTable, a_value_that_the_check_refuses_is_wrong_usage) {
  for (const VerbRow& verb : verb_table())
    for (const OptionRow& row : option_table()) {
      if (!row.verbs.has(verb.verb) || row.is_positional() || row.fault("?").empty()) continue;
      const Parsed parsed = parse(words_with(verb, &row, "?"));
      EXPECT_EQ(parsed.status, 2) << verb.name << " " << row.flag;
      EXPECT_THAT(parsed.text, HasSubstr(row.flag)) << parsed.text;
    }
}

TEST(OptionTable, an_option_that_needs_another_says_so_without_it) {
  int seen = 0;
  for (const VerbRow& verb : verb_table())
    for (const OptionRow& row : option_table()) {
      if (!row.verbs.has(verb.verb) || row.needs.empty()) continue;
      OptionRow alone = row;
      alone.needs.clear();
      EXPECT_THAT(parse(words_with(verb, alone)).text, HasSubstr(row.flag + " needs " + row.needs));
      ++seen;
    }
  EXPECT_GT(seen, 0);
}

TEST(OptionTable, every_option_of_a_run_file_comes_back_from_print_config) {
  const TemporaryFolder folder;
  for (const VerbRow& verb : verb_table())
    for (const OptionRow& row : option_table()) {
      if (!row.verbs.has(verb.verb) || !kWorkloadVerbs.has(verb.verb) || row.is_positional() || !row.in_run_file)
        continue;
      auto words = words_with(verb, row);
      if (!find_row(verb.verb, "workload")->is_required) words.insert(words.begin() + 1, "digits");
      words.emplace_back("--print-config");
      const Parsed printed = parse(words);
      ASSERT_EQ(printed.status, 0) << verb.name << " " << row.flag << printed.text;
      EXPECT_THAT(printed.text, HasSubstr("\n" + row.name() + ": ")) << verb.name;
      put(folder / "run.yaml", printed.text);
      EXPECT_EQ(parse({verb.name, folder / "run.yaml", "--print-config"}).text, printed.text) << row.flag;
      if (row.is_required) continue;
      words = words_with(verb, nullptr, "");
      words.emplace_back("--print-config");
      EXPECT_THAT(parse(words).text, HasSubstr("\n# " + row.name() + ": ")) << "as a comment where it is not given";
    }
}

TEST(OptionTable, a_run_that_goes_on_agrees_on_exactly_the_rows_that_say_so) {
  const VerbRow& train = row_of(Verb::train);
  const auto values = [](const std::vector<std::string>& words) {
    const Parsed parsed = parse(words);
    std::map<std::string, std::string> result;
    if (!parsed.options) ADD_FAILURE() << parsed.text;
    if (parsed.options)
      for (const auto& [flag, value] : values_to_agree_on(*parsed.options)) result[flag] = value;
    return result;
  };
  for (const OptionRow& row : option_table()) {
    if (!row.verbs.has(Verb::train) || row.is_positional() || !row.in_run_file) continue;
    auto usual = values(words_with(train, nullptr, "")), other = values(words_with(train, row));
    if (const OptionRow* needed = find_row(Verb::train, row.needs); !row.needs.empty() && needed != nullptr)
      other.erase(needed->flag), usual.erase(needed->flag);
    EXPECT_EQ(usual != other, row.resume != Resume::may_differ) << row.flag;
    EXPECT_EQ(usual.count(row.flag) > 0, row.resume == Resume::must_agree) << row.flag;
    usual.erase(row.flag);
    other.erase(row.flag);
    EXPECT_EQ(usual, other) << row.flag << " changes the value of another option";
  }
}

TEST(OptionTable, a_log_has_exactly_the_rows_that_say_so) {
  const VerbRow& train = row_of(Verb::train);
  const auto usual = values_to_log(*parse(words_with(train, nullptr, "")).options);
  for (const OptionRow& row : option_table()) {
    if (!row.verbs.has(Verb::train) || row.is_positional() || !row.in_run_file) continue;
    const auto logged = values_to_log(*parse(words_with(train, row)).options);
    EXPECT_EQ(usual.contains(row.log_name()), row.log == Log::always) << row.flag;
    EXPECT_EQ(logged.contains(row.log_name()), row.log != Log::never) << row.flag;
    if (row.log == Log::never) continue;
    const nlohmann::ordered_json none;
    EXPECT_NE(logged.value(row.log_name(), none), usual.value(row.log_name(), none)) << row.flag;
  }
}

TEST(OptionTable, a_rehearsal_goes_without_exactly_the_rows_that_say_so) {
  const VerbRow& train = row_of(Verb::train);
  for (const OptionRow& row : option_table()) {
    if (!row.verbs.has(Verb::train) || row.is_positional() || !row.in_run_file) continue;
    const Options given = *parse(words_with(train, row)).options;
    EXPECT_NE(value_of(row, given), value_of(row, {})) << row.flag;
    EXPECT_EQ(value_of(row, without_files(given)), value_of(row, row.in_rehearsal ? given : Options{})) << row.flag;
  }
}

TEST(OptionTable, completion_and_manual_have_every_verb_option_and_choice) {
  std::string page = run_command({"man"}).out;
  page = std::regex_replace(page, std::regex("\\\\(?=-)|\\\\f[BIR]"), "");
  std::vector<std::string> texts = {page};
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const auto result = run_command({"completion", shell});
    EXPECT_EQ(result.status, 0) << result.err;
    texts.push_back(result.out);
  }
  for (const VerbRow& verb : verb_table())
    for (const std::string& text : texts) EXPECT_TRUE(has_word(text, verb.name)) << verb.name;
  for (const OptionRow& row : option_table()) {
    if (row.is_positional()) continue;
    for (const std::string& text : texts)
      EXPECT_TRUE(has_word(text, row.flag) || text.find(" -l " + row.name() + " ") != std::string::npos)
          << row.flag << " in " << text.substr(0, 50);
    for (const std::string& alias : row.also)
      for (const std::string& text : texts)
        EXPECT_TRUE(has_word(text, alias) || text.find(" -l " + alias.substr(2) + " ") != std::string::npos) << alias;
    for (const std::string& choice : row.choices)
      for (const std::string& text : texts) EXPECT_TRUE(has_word(text, choice)) << row.flag << " " << choice;
  }
}

// What bash itself offers after these words.
std::string offered_by_bash(const std::vector<std::string>& words) {
  const TemporaryFolder folder;
  std::string line, script = run_command({"completion", "bash"}).out;
  for (const auto& word : words) line += "'" + word + "' ";
  script += "COMP_WORDS=(samebytes " + line + ")\nCOMP_CWORD=" + std::to_string(words.size()) +
            "\n_samebytes\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n";
  put(folder / "try.bash", script);
  const Outcome outcome = run_program({"/bin/bash", folder / "try.bash"});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  return outcome.output;
}

TEST(OptionTable, bash_completes_verbs_options_and_values) {
  if (access("/bin/bash", X_OK) != 0) GTEST_SKIP() << "there is no bash";
  EXPECT_EQ(offered_by_bash({"tr"}), "train\n");
  EXPECT_EQ(offered_by_bash({"train", "--check"}), "--checkpoint\n--checkpoint-every\n--check-nan\n");
  EXPECT_EQ(offered_by_bash({"train", "digits", "--precision", "b"}), "bf16\n");
  EXPECT_THAT(offered_by_bash({"bench", "resn"}), HasSubstr("resnet20\n"));
  EXPECT_EQ(offered_by_bash({"completion", ""}), "bash\nzsh\nfish\n--help\n");
}

}  // namespace
}  // namespace samebytes::testing

// README and documents are true: their commands, files and headers exist, and the example is the one that is built.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/places.h"
#include "support/process.h"
#include "support/source_tree.h"

namespace samebytes::testing {
namespace {

// The texts of the fenced blocks of one language.
std::vector<std::string> blocks_of(const std::string& markdown, const std::string& language) {
  std::vector<std::string> blocks;
  const std::string fence = "```" + language + "\n";
  for (std::size_t at = markdown.find(fence); at != std::string::npos; at = markdown.find(fence, at)) {
    at += fence.size();
    const std::size_t end = markdown.find("```", at);
    blocks.push_back(markdown.substr(at, end - at));
    at = end;
  }
  return blocks;
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// README.md, CONTRIBUTING.md and docs/.
auto all_pages() {
  auto pages = source_files({"docs"}, {".md"});
  for (const char* name : {"README.md", "CONTRIBUTING.md"}) pages.push_back({name, read_text(name)});
  return pages;
}

// Every line of every sh block.
std::vector<std::string> shell_lines() {
  std::vector<std::string> lines;
  for (const auto& page : all_pages()) {
    for (const auto& block : blocks_of(page.text, "sh")) {
      for (const auto& line : lines_of(block)) lines.push_back(line);
    }
  }
  return lines;
}

TEST(Readme, links_lead_to_files) {
  static const std::regex link("\\]\\(([^)#: ]+)\\)");
  for (const auto& page : all_pages()) {
    const std::string folder =
        page.path.find('/') == std::string::npos ? "" : page.path.substr(0, page.path.rfind('/') + 1);
    for (auto it = std::sregex_iterator(page.text.begin(), page.text.end(), link); it != std::sregex_iterator(); ++it) {
      EXPECT_TRUE(exists(folder + (*it)[1].str())) << page.path << " links to " << (*it)[1];
    }
  }
}

TEST(Readme, scripts_exist_and_may_be_run) {
  for (const auto& line : shell_lines()) {
    for (const auto& word : words_of(line)) {
      if (!word.ends_with(".sh")) continue;
      EXPECT_TRUE(exists(word)) << line;
      EXPECT_EQ(access((source_folder() + "/" + word).c_str(), X_OK), 0) << word;
    }
  }
}

// A line "build/samebytes train cnn --data data/mnist" needs the subcommand `train`, whose help names `--data`.
TEST(Readme, commands_and_their_options_exist) {
  int seen = 0;
  for (const auto& line : shell_lines()) {
    const auto words = words_of(line);
    const auto command = std::find(words.begin(), words.end(), "build/samebytes");
    if (command == words.end() || command + 1 == words.end()) continue;
    ++seen;
    const Outcome help = run_program({built_program("samebytes"), *(command + 1), "--help"});
    EXPECT_EQ(help.status, 0) << line << "\n" << help.output;
    for (auto word = command + 2; word != words.end(); ++word) {
      if (word->starts_with("--")) {
        EXPECT_NE(help.output.find(*word), std::string::npos) << line << ": " << *word;
      }
    }
  }
  EXPECT_GE(seen, 4) << "README.md shows the command";
}

TEST(Readme, the_example_is_the_program_that_is_built) {
  const auto blocks = blocks_of(read_text("README.md"), "cpp");
  ASSERT_FALSE(blocks.empty());
  std::string program = read_text("examples/04_mnist_cnn.cpp");
  program = program.substr(std::min(program.find("#include"), program.size()));  // without its head comment
  EXPECT_EQ(blocks.front(), program);
  EXPECT_LE(lines_of(program).size(), 40u);
}

TEST(Readme, is_read_in_five_minutes) { EXPECT_LE(lines_of(read_text("README.md")).size(), 150u); }

TEST(Readme, the_table_of_headers_names_every_one) {
  const std::string readme = read_text("docs/headers.md");
  for (const auto& header : source_files({"include/samebytes"}, {".h"})) {
    const std::string name = header.path.substr(std::string("include/samebytes/").size());
    EXPECT_NE(readme.find("`" + name + "`"), std::string::npos) << "no line about " << name;
  }
}

// What a public header includes, itself and through others.
void add_included(const std::string& name, std::set<std::string>& all) {
  static const std::regex include("#include \"(samebytes/[^\"]+)\"");
  if (!all.insert(name).second) return;
  const std::string text = read_text("include/" + name);
  for (auto it = std::sregex_iterator(text.begin(), text.end(), include); it != std::sregex_iterator(); ++it)
    add_included((*it)[1], all);
}

TEST(Readme, one_include_gives_every_public_header_but_those_of_interop) {
  std::set<std::string> included;
  add_included("samebytes/samebytes.h", included);
  for (const auto& header : source_files({"include/samebytes"}, {".h"})) {
    const std::string name = header.path.substr(std::string("include/").size());
    EXPECT_EQ(included.contains(name), !name.starts_with("samebytes/interop/")) << name;
  }
}

TEST(Readme, the_index_of_decisions_names_every_page) {
  const std::string contents = read_text("docs/decisions/README.md");
  for (const auto& page : source_files({"docs/decisions"}, {".md"}))
    if (const std::string name = page.path.substr(page.path.rfind('/') + 1); name != "README.md") {
      EXPECT_NE(contents.find("(" + name + ")"), std::string::npos) << name;
    }
}

}  // namespace
}  // namespace samebytes::testing

// The guide is true: each chapter is a program, and it prints what the page shows.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/process.h"
#include "support/source_tree.h"

namespace samebytes::testing {
namespace {

// The fenced blocks marked text, one after the other.
std::string shown_output(const std::string& page) {
  std::string output;
  bool is_output = false;
  for (const std::string& line : lines_of(page)) {
    if (line.rfind("```", 0) == 0)
      is_output = line == "```text";
    else if (is_output)
      output += line + "\n";
  }
  return output;
}

TEST(Guide, each_chapter_prints_what_it_shows) {
  const std::filesystem::path folder = built_program("guide");
  if (!std::filesystem::is_directory(folder)) GTEST_SKIP() << "built without examples";
  int chapters = 0;
  for (const auto& page : source_files({"docs/guide"}, {".md"})) {
    const std::string name = std::filesystem::path(page.path).stem().string();
    if (name == "README") continue;
    const Outcome outcome = run_program({"/bin/sh", "-c", (folder / name).string() + " 2>/dev/null"});
    EXPECT_EQ(outcome.status, 0) << name << ": " << outcome.output;
    EXPECT_EQ(outcome.output, shown_output(page.text)) << page.path;
    ++chapters;
  }
  EXPECT_EQ(chapters, 8);
}

TEST(Guide, its_first_page_leads_to_each_chapter) {
  const std::string contents = read_text("docs/guide/README.md");
  for (const auto& page : source_files({"docs/guide"}, {".md"}))
    if (const std::string name = std::filesystem::path(page.path).filename().string(); name != "README.md") {
      EXPECT_NE(contents.find("(" + name + ")"), std::string::npos) << name;
    }
}

}  // namespace
}  // namespace samebytes::testing

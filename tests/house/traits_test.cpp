// Nothing outside an op's own file names it: autograd and the planner go by what ops say of themselves (OpTraits), and
// the cast rule of mixed precision stands in the op's file.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "support/source_tree.h"

namespace samebytes::testing {
namespace {

std::vector<std::string> matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), regex); it != std::sregex_iterator(); ++it)
    found.push_back((*it)[1].str());
  return found;
}

std::string without_strings(const std::string& text) {
  return std::regex_replace(text, std::regex("\"([^\"\\\\\n]|\\\\.)*\""), "\"\"");
}

// The classes of ops, those that derive from an op included.
std::set<std::string> op_classes() {
  std::string text;
  for (const SourceFile& file : source_files({"engine/ops", "engine/distributed"}, {".cpp", ".h"}))
    text += without_comments(file.text);
  std::set<std::string> classes;
  for (std::size_t before = std::string::npos; before != classes.size();) {
    before = classes.size();
    std::string bases = "Op";
    for (const std::string& name : classes) bases += "|" + name;
    const std::string pattern =
        "class (\\w+) (?:final )?: public (?:detail::)?(?:" + bases + ")(?:, public (?:detail::)?Written)? \\{";
    for (const std::string& name : matches(text, pattern.c_str())) classes.insert(name);
  }
  return classes;
}

TEST(TraitsTest, the_graph_and_the_planner_name_no_op) {
  const std::set<std::string> classes = op_classes();
  EXPECT_GT(classes.size(), 60u);
  EXPECT_TRUE(classes.count("Update") && classes.count("Pointwise") && classes.count("TrustLamb"));
  std::vector<std::string> faults;
  for (const SourceFile& file : source_files({"engine/graph", "engine/plan"}, {".cpp", ".h"})) {
    const std::string text = without_comments(file.text), code = without_strings(text);
    for (const std::string& header : matches(text, "#include \"(ops/[^\"]+)\""))
      if (header != "ops/host.h") faults.push_back(file.path + " includes " + header);
    for (const std::string& word : matches(code, "\\b([A-Z]\\w+)\\b"))
      if (classes.count(word)) faults.push_back(file.path + " names the op " + word);
    for (const std::string& type : matches(code, "(?:dynamic_cast|dynamic_pointer_cast)<([^>]+)>"))
      if (type.find("Planner") == std::string::npos) faults.push_back(file.path + " casts to " + type);
    for (const std::string& call : matches(text, "(name\\(\\) [!=]= \"[^\"]*\")"))
      faults.push_back(file.path + " compares " + call);
  }
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

TEST(TraitsTest, autocast_has_no_list_of_names) {
  std::set<std::string> rows;
  for (const SourceFile& file : source_files({"engine/ops"}, {".cpp"}))
    for (const std::string& name : matches(without_comments(file.text), "\\{\"([a-z0-9_]+)\", CastRule::\\w+\\}"))
      rows.insert(name);
  EXPECT_GT(rows.size(), 50u);
  for (const std::string& word : matches(without_comments(read_text("engine/graph/autocast.cpp")), "\"([a-z0-9_]+)\""))
    EXPECT_EQ(rows.count(word), 0u) << "engine/graph/autocast.cpp names " << word;
}

}  // namespace
}  // namespace samebytes::testing

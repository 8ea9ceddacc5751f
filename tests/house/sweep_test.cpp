// benchmarks/sweep_ops forgets no op: each one that the public headers declare has a row there, and each row its
// counterpart in PyTorch.
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>

#include "support/source_tree.h"

namespace samebytes::testing {
namespace {

std::set<std::string> matches(const std::string& text, const std::string& expression) {
  const std::regex pattern(expression);
  std::set<std::string> names;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), pattern); it != std::sregex_iterator(); ++it)
    names.insert((*it)[1]);
  return names;
}

// Functions at the start of a line that give an array, several, or a result of several.
std::set<std::string> declared_ops() {
  std::set<std::string> names;
  for (const auto& file : source_files({"include/samebytes/ops"}, {".h"}))
    names.merge(matches(file.text, R"((?:^|\n)(?:inline )?(?:Array|std::vector<Array>|\w+Result) (\w+|operator.)\()"));
  return names;
}

// Of "pad/reflect" the op is pad, of "operator//scalar" operator/.
std::set<std::string> row_names() {
  std::set<std::string> names;
  for (const auto& file : source_files({"benchmarks/sweep_ops"}, {".cpp"}))
    names.merge(matches(file.text, R"re("(operator.|[a-z][a-z0-9_]+)(?:/[a-z0-9_]*)?")re"));
  return names;
}

TEST(Sweep, has_a_row_for_every_public_op) {
  const std::set<std::string> ops = declared_ops(), rows = row_names();
  EXPECT_GE(ops.size(), 130u);
  for (const std::string& op : ops) EXPECT_TRUE(rows.contains(op)) << op << " has no row in benchmarks/sweep_ops";
}

TEST(Sweep, has_every_public_op_in_pytorch_too) {
  const std::string peer = read_text("benchmarks/peers/torch_ops.py");
  ASSERT_FALSE(peer.empty());
  for (const std::string& op : declared_ops()) {
    const bool has_row =
        peer.find("\"" + op + "\"") != std::string::npos || peer.find("\"" + op + "/") != std::string::npos;
    EXPECT_TRUE(has_row) << op << " has no row in benchmarks/peers/torch_ops.py";
  }
}

}  // namespace
}  // namespace samebytes::testing

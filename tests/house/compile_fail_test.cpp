// What must not compile, does not: each mistake stands in a program that compiles without it, and the compiler names
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "support/places.h"
#include "support/process.h"

namespace samebytes::testing {
namespace {

using ::testing::ContainsRegex;

// A function body around `line`, checked without code being made.
Outcome compiled(const std::string& line) {
  const std::string path = temporary_path("compile_fail.cpp");
  std::ofstream(path) << "#include \"samebytes/nn.h\"\n"
                         "#include \"samebytes/ops.h\"\n"
                         "#include \"samebytes/optim.h\"\n"
                         "using namespace samebytes;\n"
                         "void use(Array a, Array b, nn::Linear layer, nn::Sequential net) {\n"
                         "  (void)a, (void)b, (void)layer, (void)net;\n"
                      << line << "\n}\n";
  const Outcome outcome =
      run_program({cxx_compiler(), "-std=c++20", "-fsyntax-only", "-I", source_folder() + "/include", path});
  std::filesystem::remove(path);
  return outcome;
}

// `mistake` is refused with words that match `why`; `right`, what to write instead, is not.
void expect_refused(const std::string& mistake, const std::string& why, const std::string& right) {
  const Outcome refused = compiled(mistake);
  EXPECT_NE(refused.status, 0) << mistake;
  EXPECT_THAT(refused.output, ContainsRegex(why)) << mistake;
  const Outcome taken = compiled(right);
  EXPECT_EQ(taken.status, 0) << right << "\n" << taken.output;
}

TEST(CompileFail, an_array_is_no_condition) {
  const std::string why =
      "could not convert|no match for|not contextually convertible|invalid argument type|invalid "
      "operands";
  expect_refused("if (equal(a, b)) {}", why, "if (all(equal(a, b)).value()) {}");
  expect_refused("while (!a) {}", why, "while (!a.defined()) {}");
  expect_refused("bool both = a.defined() && b; (void)both;", why,
                 "bool both = a.defined() && b.defined(); (void)both;");
  expect_refused("(void)(a ? 1 : 2);", why, "(void)(a.defined() ? 1 : 2);");
  expect_refused("(void)static_cast<bool>(a);", "invalid .?static_cast|cannot convert|no matching|not allowed",
                 "(void)static_cast<bool>(all(a).value());");
}

}  // namespace
}  // namespace samebytes::testing

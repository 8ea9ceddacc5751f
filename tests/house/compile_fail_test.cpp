// What must not compile, does not: each mistake stands in a program that compiles without it, and the compiler names
// it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "support/places.h"
#include "support/process.h"

namespace samebytes::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

struct Mistake {
  std::string wrong;  // one line
  std::string right;  // what to write instead
};

constexpr const char* kHead =
    "#include \"samebytes/nn.h\"\n"
    "#include \"samebytes/ops.h\"\n"
    "#include \"samebytes/optim.h\"\n"
    "using namespace samebytes;\n"
    "void use(Array a, Array b, nn::Linear layer, nn::Sequential net) {\n"
    "(void)a, (void)b, (void)layer, (void)net;\n";
constexpr int kHeadLines = 6;

// A program with each line in a block of its own, checked without code being made.
Outcome compiled(const std::vector<std::string>& lines) {
  const std::string path = temporary_path("compile_fail.cpp");
  std::string text = kHead;
  for (const std::string& line : lines) text += "{ " + line + " }\n";
  std::ofstream(path) << text << "}\n";
  const Outcome outcome =
      run_program({cxx_compiler(), "-std=c++20", "-fsyntax-only", "-I", source_folder() + "/include", path});
  std::filesystem::remove(path);
  return outcome;
}

// The compiler has something against each mistake, at its line, in words that match `why`; against nothing of what is
// right.
void expect_refused(const std::string& why, const std::vector<Mistake>& mistakes) {
  std::vector<std::string> wrong, right;
  for (const Mistake& mistake : mistakes) {
    wrong.push_back(mistake.wrong);
    right.push_back(mistake.right);
  }
  const Outcome refused = compiled(wrong);
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.output, ContainsRegex(why));
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    const std::string place = "compile_fail.cpp:" + std::to_string(kHeadLines + 1 + static_cast<int>(i)) + ":";
    EXPECT_THAT(refused.output, HasSubstr(place)) << "nothing is said against " << wrong[i];
  }
  const Outcome taken = compiled(right);
  EXPECT_EQ(taken.status, 0) << taken.output;
}

TEST(CompileFail, opencl_without_exceptions_beside_the_interop) {
  const std::string path = temporary_path("without_exceptions.cpp");
  const auto compiled_after = [&](const std::string& before) {
    std::ofstream(path) << "#define CL_HPP_TARGET_OPENCL_VERSION 300\n#define CL_HPP_MINIMUM_OPENCL_VERSION 110\n"
                        << before << "#include <CL/opencl.hpp>\n#include \"samebytes/interop/opencl.h\"\n";
    return run_program({cxx_compiler(), "-std=c++20", "-fsyntax-only", "-I", source_folder() + "/include", path});
  };
  const Outcome refused = compiled_after(""), taken = compiled_after("#define CL_HPP_ENABLE_EXCEPTIONS\n");
  std::filesystem::remove(path);
  EXPECT_NE(refused.status, 0);
  EXPECT_THAT(refused.output, HasSubstr("define CL_HPP_ENABLE_EXCEPTIONS before <CL/opencl.hpp>"));
  EXPECT_EQ(taken.status, 0) << taken.output;
}

TEST(CompileFail, an_array_is_no_condition) {
  expect_refused("could not convert|not contextually convertible",
                 {{"if (equal(a, b)) {}", "if (all(equal(a, b)).value()) {}"},
                  {"if (a == b) {}", "if (all(a == b).value()) {}"},
                  {"if (a < 1 && b > 0) {}", "if (all((a < 1) & (b > 0)).value()) {}"},
                  {"while (!a) {}", "while (!a.defined()) {}"},
                  {"bool both = a.defined() && b; (void)both;", "bool both = a.defined() && b.defined(); (void)both;"},
                  {"(void)(a ? 1 : 2);", "(void)(a.defined() ? 1 : 2);"},
                  {"(void)static_cast<bool>(a);", "(void)static_cast<bool>(all(a).value());"}});
}

TEST(CompileFail, an_assignment_to_what_an_op_returns) {
  expect_refused("discards qualifiers|no viable overloaded",
                 {{"slice(a, 0, 0, 2) = zeros({2});", "a = zeros({2});"},
                  {"slice(a, 0, 0, 2) = b;", "a = b;"},
                  {"split(a, 2)[0] = b;", "auto parts = split(a, 2); parts[0] = b;"},
                  {"gradients(sum(a), {&a, 1})[0] = b;", "auto parts = gradients(sum(a), {&a, 1}); parts[0] = b;"}});
}

TEST(CompileFail, an_assignment_to_an_entry_of_a_modules_lists) {
  expect_refused("discards qualifiers|no viable overloaded",
                 {{"net.parameters()[0] = a;", "assign(net.parameters()[0], a);"},
                  {"net.parameters().front() = a;", "auto all = net.parameters(); all.front() = a;"},
                  {"net.state()[0].array = a;", "assign(net.state()[0].array, a);"},
                  {"net.named_parameters()[0].array = a;", "optim::Adam adam(net.parameters());"},
                  {"layer.weight() = a;", "assign(layer.weight(), a);"}});
}

// One at a time: a compiler complains about the one place in the container once.
TEST(CompileFail, a_layer_that_would_be_in_two_places) {
  const std::string why = "a layer moves into a container";
  expect_refused(why,
                 {{"nn::Sequential two(layer, nn::Relu());", "nn::Sequential two(std::move(layer), nn::Relu());"}});
  expect_refused(why, {{"net.add(layer);", "net.add(nn::clone(layer));"}});
  expect_refused(why, {{"nn::Residual two(layer);", "nn::Residual two(nn::tied(layer));"}});
}

TEST(CompileFail, a_module_that_names_a_cell_which_a_copy_would_share) {
  const std::string head =
      "struct Own : nn::Module { Array forward(const Array& x) override { return x * w; } "
      "void visit(nn::Visitor& v) override { v.parameter(\"w\", w); } ";
  const std::string tail = "}; Own own; (void)own;";
  expect_refused("cannot convert|invalid initialization|no viable|no matching|no known conversion",
                 {{head + "Array w;" + tail, head + "nn::Parameter w;" + tail}});
}

}  // namespace
}  // namespace samebytes::testing

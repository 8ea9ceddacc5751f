// Expressions of pointwise ops as trees.
#include "plan/expression.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "samebytes/error.h"

namespace samebytes::detail {
namespace {

// The tree with a pair of parentheses around each operation.
std::string written(const Expression& at) {
  const auto part = [&](std::size_t i) { return written(at.parts[i]); };
  switch (at.kind) {
    case Expression::Kind::operand: return "$" + std::to_string(at.index);
    case Expression::Kind::scalar: return "#" + std::to_string(at.index);
    case Expression::Kind::place: return "@" + std::to_string(at.index);
    case Expression::Kind::number:
    case Expression::Kind::whole: return at.word;
    case Expression::Kind::zero: return "0";
    case Expression::Kind::cast: return "all(" + part(0) + ")";
    case Expression::Kind::negate: return "(-" + part(0) + ")";
    case Expression::Kind::binary: return "(" + part(0) + at.word + part(1) + ")";
    case Expression::Kind::call: break;
  }
  std::string text = at.word;
  for (std::size_t i = 0; i < at.parts.size(); ++i) text += (i == 0 ? "(" : ",") + part(i);
  return text + ")";
}

TEST(Expression, has_the_precedence_of_c) {
  EXPECT_EQ(written(parse_expression("$0 - $1 - $2 * #0 / $3")), "(($0-$1)-(($2*#0)/$3))");
  EXPECT_EQ(written(parse_expression("-$0 * ($1 + REAL_C(1.5e-3))")), "((-$0)*($1+1.5e-3))");
  EXPECT_EQ(written(parse_expression("$0 % -(SB_TYPE)(12)")), "($0%(-all(12)))");
  EXPECT_EQ(written(parse_expression("$0 + #1 <= SB_ZERO")), "(($0+#1)<=0)");
  EXPECT_EQ(written(parse_expression("SB_WHERE(SB_TRUTH($0 < #0), (SB_TYPE)(#0), f(PLACE_OF_1, -$0))")),
            "SB_WHERE(SB_TRUTH(($0<#0)),all(#0),f(@1,(-$0)))");
}

TEST(Expression, a_text_that_is_none_names_the_place) {
  for (const char* text : {"$0 +", "$0 $1", "($0", "f($0", "$x", "", "f()"})
    EXPECT_THROW(parse_expression(text), Error) << text;
  try {
    parse_expression("$0 * (#0 + )");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("\"$0 * (#0 + )\": expected an operand or a function at \")\""));
  }
}

TEST(Expression, divisions_and_functions_cost_much) {
  for (const char* text : {"$0 / $1", "sb_exp($0)", "$0 + sqrt($1)"}) EXPECT_TRUE(is_costly(parse_expression(text)));
  for (const char* text : {"$0", "SB_WHERE(SB_TRUTH($0 < #0), fabs($0), FMA($0, $1, #0))"})
    EXPECT_FALSE(is_costly(parse_expression(text)));
}

}  // namespace
}  // namespace samebytes::detail

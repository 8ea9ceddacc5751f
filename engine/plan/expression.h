// The expression of a pointwise op (ops/pointwise.h) as a tree, which the writer of kernels and the compiler for the
// host both read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/op.h"

namespace samebytes::detail {

struct Expression {
  enum class Kind : std::uint8_t {
    operand,  // $index
    scalar,   // #index
    place,    // PLACE_OF_index
    number,   // REAL_C(word)
    whole,    // word, digits alone
    zero,     // SB_ZERO
    cast,     // (SB_TYPE)part: a number or scalar in all lanes
    negate,   // -part
    binary,   // parts[0] word parts[1], word is one of + - * / % == != < <= > >=
    call,     // word(parts...)
  };
  Kind kind;
  std::size_t index = 0;
  std::string word = {};
  std::vector<Expression> parts = {};

  bool is_call(std::string_view name) const { return kind == Kind::call && word == name; }
};

// Comparisons of sums of products, as in C. Throws Error where the text is none.
Expression parse_expression(std::string_view text);

// That of the op, which has one: parsed once in a process for each text. May be called from several threads.
const Expression& expression_of(const Op& op);

// Whether the value takes a division or a function that is more than a few operations.
bool is_costly(const Expression& expression);

}  // namespace samebytes::detail

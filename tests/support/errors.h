// Errors with their exact message: EXPECT_ERROR((sum(a, {2})), ArgumentError, "sum: axis 2 is out of range for src f32
// [2, 3]").
#pragma once

#include <gtest/gtest.h>

#include "samebytes/error.h"

// A statement with braces goes into parentheses of its own.
#define EXPECT_ERROR(statement, Type, message)                                       \
  do {                                                                               \
    try {                                                                            \
      static_cast<void>(statement);                                                  \
      ADD_FAILURE() << #statement << " threw nothing, wanted: " << message;          \
    } catch (const ::samebytes::Type& error) {                                       \
      EXPECT_STREQ(error.what(), message);                                           \
    } catch (const std::exception& error) {                                          \
      ADD_FAILURE() << #statement << " threw another type, saying " << error.what(); \
    }                                                                                \
  } while (false)

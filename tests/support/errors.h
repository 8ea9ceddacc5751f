// Errors with their exact message: EXPECT_ERROR((sum(a, {2})), ArgumentError, "sum: axis 2 is out of range for src f32
// [2, 3]"); message_of<ArgumentError>([&] { sum(a, {2}); }) where only a part of it is known.
#pragma once

#include <gtest/gtest.h>

#include <string>

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

namespace samebytes {

// What fn's error of type E says; a failure of the test if none or another one comes.
template <class E, class F>
std::string message_of(F&& fn) {
  try {
    fn();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "got another exception: " << error.what();
    return {};
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

}  // namespace samebytes

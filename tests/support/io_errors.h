// Damaged files: an IoError about a file at an offset, whose message has certain parts.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <initializer_list>
#include <string>

#include "samebytes/error.h"

namespace samebytes::testing {

inline void expect_io_error(const std::function<void()>& act, const std::string& path, std::int64_t offset,
                            std::initializer_list<const char*> parts) {
  try {
    act();
    ADD_FAILURE() << "got no error for " << path;
  } catch (const IoError& error) {
    EXPECT_EQ(error.path(), path) << error.what();
    EXPECT_EQ(error.offset(), offset) << error.what();
    for (const char* part : parts)
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << part << " is not in: " << error.what();
  }
}

}  // namespace samebytes::testing

// The one place where the library's few messages go: a sink that the user sets, or nowhere.
#pragma once

#include <string_view>

namespace samebytes::detail {

void log_message(std::string_view level, std::string_view message);  // "info" or "warning"; thread-safe

}  // namespace samebytes::detail

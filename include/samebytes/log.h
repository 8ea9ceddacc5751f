// Logging for code built on the library: messages go to the sink of set_log_sink() (engine.h), or nowhere.
#pragma once

#include <string_view>

namespace samebytes {

// level: "info" or "warning". Thread-safe.
void log_message(std::string_view level, std::string_view message);

}  // namespace samebytes

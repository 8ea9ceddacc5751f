#include <mutex>

#include "samebytes/engine.h"
#include "samebytes/log.h"

namespace samebytes {

namespace {
std::mutex sink_mutex;
LogSink sink;  // guarded by sink_mutex
}  // namespace

void set_log_sink(LogSink new_sink) {
  const std::lock_guard lock(sink_mutex);
  sink = std::move(new_sink);
}

void log_message(std::string_view level, std::string_view message) {
  const std::lock_guard lock(sink_mutex);
  if (sink) sink(level, message);
}

}  // namespace samebytes

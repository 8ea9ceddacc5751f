// samebytes memory: a snapshot as text, as a picture or as JSON.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "cli/session.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/io/files.h"
#include "samebytes/memory_diff.h"

namespace samebytes::cli {
namespace {

constexpr int kDefaultColumns = 100, kLeastColumns = 60, kMostColumns = 160;

int terminal_columns() {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kDefaultColumns;
  return std::clamp<int>(size.ws_col, kLeastColumns, kMostColumns);
}

}  // namespace

int run_memory(const Options& options) {
  const MemorySnapshot snapshot = load_memory_snapshot(options.memory.file);
  if (!options.memory.snapshot.empty()) {
    const MemoryDifference difference = compare_memory(snapshot, load_memory_snapshot(options.memory.snapshot));
    if (options.json)
      fmt::print("{}\n", memory_json(difference));
    else
      fmt::print("{}", memory_text(difference, {.columns = terminal_columns(), .top = options.memory.top}));
    return kDone;
  }
  if (!options.memory.svg.empty()) io::write_file(options.memory.svg, memory_svg(snapshot));
  if (options.json)
    fmt::print("{}\n", memory_json(snapshot));
  else
    fmt::print("{}", memory_text(snapshot, {.columns = terminal_columns(), .top = options.memory.top}));
  return kDone;
}

}  // namespace samebytes::cli

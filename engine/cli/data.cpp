// samebytes data: well-known data sets, where to get them, and a checked copy in a folder.
#include <fmt/format.h>

#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/data/fetch.h"
#include "samebytes/error.h"

namespace samebytes::cli {
namespace {

std::string folder_of(const DataOptions& asked) { return asked.to.empty() ? "data/" + asked.name : asked.to; }

void print_places(const data::KnownSet& set, const DataOptions& asked) {
  fmt::print("{}: {}\nfiles: {} (plain or .gz)\n", set.name, set.about, list_text(set.files));
  fmt::print("fetch and check them, or copy them from a folder or an archive that you have:\n");
  for (const std::string& place : set.places) fmt::print("  samebytes data {} --from {}\n", set.name, place);
  fmt::print("  samebytes data {} --from FOLDER\nThey go to {} (--to DIR).\n", set.name, folder_of(asked));
}

}  // namespace

int run_data(const Options& options) {
  const DataOptions& asked = options.data_set;
  if (asked.name.empty()) {
    TextTable table("ll");
    for (const data::KnownSet& set : data::known_sets())
      table.add({set.name, set.about + (set.readers.empty() ? "" : "; for " + list_text(set.readers))});
    fmt::print("{}`samebytes data NAME` says where to get one.\n", table.to_text());
    return kDone;
  }
  try {
    const data::KnownSet& set = data::known_set(asked.name);
    if (asked.from.empty()) {
      print_places(set, asked);
      return kDone;
    }
    const data::FetchedSet made = data::fetch(asked.name, asked.from, folder_of(asked));
    if (made.test_samples > 0)
      fmt::print("{}: {} and {} samples, read and found whole\n", made.path,
                 count_text(static_cast<double>(made.training_samples)),
                 count_text(static_cast<double>(made.test_samples)));
    else
      fmt::print("{}: {} bytes\n", made.path, count_text(static_cast<double>(made.training_samples)));
    for (const std::string& reader : set.readers) fmt::print("  samebytes train {} --data {}\n", reader, made.path);
  } catch (const ArgumentError& error) {
    throw UsageError(error.what());
  }
  return kDone;
}

}  // namespace samebytes::cli

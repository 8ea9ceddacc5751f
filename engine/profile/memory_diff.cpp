#include "samebytes/memory_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "profile/memory_words.h"

namespace samebytes {
namespace {

using detail::in_layer;
using detail::megabytes;

std::int64_t less(std::size_t after, std::size_t before) {
  return static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before);
}

std::string with_sign(std::int64_t bytes) {
  if (bytes == 0) return "0";
  return (bytes > 0 ? "+" : "-") + megabytes(static_cast<std::size_t>(bytes > 0 ? bytes : -bytes));
}

template <class Key>
std::vector<MemoryChange> sorted(std::map<Key, MemoryChange>& changes) {
  std::vector<MemoryChange> list;
  for (auto& [key, change] : changes)
    if (change.bytes != 0 || change.count != 0) list.push_back(std::move(change));
  std::stable_sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return list;
}

std::vector<MemoryChange> changes_of(const std::vector<MemoryArray>& before, const std::vector<MemoryArray>& after) {
  std::map<std::tuple<MemoryCategory, std::string, std::string>, MemoryChange> changes;
  const auto add = [&changes](const std::vector<MemoryArray>& list, std::int64_t sign) {
    for (const MemoryArray& array : list) {
      MemoryChange& change = changes[{array.category, array.name, array.layer}];
      change.name = array.name;
      change.layer = array.layer;
      change.category = array.category;
      change.count += sign;
      change.bytes += sign * static_cast<std::int64_t>(array.bytes);
    }
  };
  add(after, 1);
  add(before, -1);
  return sorted(changes);
}

std::vector<MemoryChange> changes_of(const std::vector<MemoryLayer>& before, const std::vector<MemoryLayer>& after) {
  std::map<std::string, MemoryChange> changes;
  const auto add = [&changes](const std::vector<MemoryLayer>& list, std::int64_t sign) {
    for (const MemoryLayer& layer : list) {
      changes[layer.name].layer = layer.name;
      changes[layer.name].bytes += sign * static_cast<std::int64_t>(layer.total());
    }
  };
  add(after, 1);
  add(before, -1);
  return sorted(changes);
}

// The first `top` of what grew, then the first `top` of what shrank, the most of it first.
template <class Line>
std::string listed(const std::vector<MemoryChange>& changes, int top, Line line) {
  std::vector<const MemoryChange*> grown, shrunk;
  for (const MemoryChange& change : changes) (change.bytes >= 0 ? grown : shrunk).push_back(&change);
  std::reverse(shrunk.begin(), shrunk.end());
  std::string text;
  for (const auto* list : {&grown, &shrunk}) {
    const std::size_t shown = std::min(list->size(), static_cast<std::size_t>(std::max(0, top)));
    std::int64_t rest = 0;
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (i < shown)
        text += line(*(*list)[i]);
      else
        rest += (*list)[i]->bytes;
    }
    if (list->size() > shown) text += fmt::format("  {:>11}  {} more\n", with_sign(rest), list->size() - shown);
  }
  return text;
}

}  // namespace

MemoryDifference compare_memory(const MemorySnapshot& before, const MemorySnapshot& after) {
  return {.before = before.report,
          .after = after.report,
          .process_before = before.process_bytes,
          .process_after = after.process_bytes,
          .arrays = changes_of(before.arrays, after.arrays),
          .layers = changes_of(before.layers, after.layers)};
}

std::string memory_text(const MemoryDifference& d, const MemoryTextOptions& options) {
  std::string text = fmt::format("  {:<14}{:>12}{:>12}{:>13}\n", "", "before", "after", "change");
  const auto row = [&text](const std::string& name, std::size_t before, std::size_t after) {
    if (before + after == 0) return;
    text += fmt::format("  {:<14}{:>12}{:>12}{:>13}\n", name, megabytes(before), megabytes(after),
                        with_sign(less(after, before)));
  };
  for (std::size_t c = 0; c < kMemoryCategories; ++c)
    row(name_of(static_cast<MemoryCategory>(c)), d.before.live_by_category.bytes[c], d.after.live_by_category.bytes[c]);
  row("all", d.before.live_by_category.total(), d.after.live_by_category.total());
  row("cached", d.before.cached_bytes, d.after.cached_bytes);
  row("adopted", d.before.adopted_bytes, d.after.adopted_bytes);
  row("peak", d.before.peak_bytes, d.after.peak_bytes);
  row("resident", d.process_before, d.process_after);
  if (d.arrays.empty()) {
    text += "\n  the same arrays are in use\n";
  } else {
    text += "\n  arrays in use\n";
    text += listed(d.arrays, options.top, [](const MemoryChange& change) {
      return fmt::format("  {:>11}  {:>8}  {:<11}  {}\n", with_sign(change.bytes),
                         change.count == 0 ? "" : fmt::format("{:+} x", change.count), name_of(change.category),
                         in_layer(change.name, change.layer));
    });
  }
  if (!d.layers.empty()) {
    text += "\n  layers, in the step\n";
    text += listed(d.layers, options.top, [](const MemoryChange& change) {
      return fmt::format("  {:>11}  {}\n", with_sign(change.bytes),
                         change.layer.empty() ? "(of no layer)" : change.layer);
    });
  }
  std::int64_t values = 0;
  for (const MemoryChange& change : d.arrays)
    if (change.category == MemoryCategory::other && change.count > 0) values += change.count;
  if (values > 0)
    text += fmt::format(
        "\n{} more values are held: where their count grows with the steps, somebody keeps arrays (losses, outputs)\n"
        "beyond their step; value() gives the number and lets go of the array\n",
        values);
  return text;
}

}  // namespace samebytes

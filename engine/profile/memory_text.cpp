// A memory snapshot as text for a terminal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "profile/memory_words.h"
#include "samebytes/memory_snapshot.h"

namespace samebytes {
namespace {

using detail::in_layer;
using detail::megabytes;
using detail::shortened;

constexpr char kLetters[kMemoryCategories + 1] = "pgoailx";  // one for each category, in a bar
constexpr int kLabelColumns = 16;                            // before a bar
constexpr int kLeastBar = 20;

// `bytes` of each category as letters, of `columns` for `most`; rounding never makes the bar longer than its sum.
std::string bar(const MemoryByCategory& bytes, std::size_t most, int columns) {
  std::string text;
  double sum = 0;
  for (std::size_t c = 0; c < kMemoryCategories; ++c) {
    sum += static_cast<double>(bytes.bytes[c]);
    const auto end = static_cast<std::size_t>(std::lround(sum / static_cast<double>(most) * columns));
    if (end > text.size()) text.append(end - text.size(), kLetters[c]);
  }
  return text;
}

class Text {
 public:
  Text(const MemorySnapshot& snapshot, const MemoryTextOptions& options) : s_(snapshot), o_(options) {}

  std::string write() {
    const MemoryReport& r = s_.report;
    text_ = fmt::format("{}\npeak {} at {}; now {} live, {} cached, {} adopted; limit {}\n", s_.device,
                        megabytes(r.peak_bytes), in_layer(r.peak_cause, r.peak_layer), megabytes(r.live_bytes),
                        megabytes(r.cached_bytes), megabytes(r.adopted_bytes), megabytes(r.limit_bytes));
    if (s_.process_bytes)
      text_ += fmt::format("the process has {} resident, at most {} so far\n", megabytes(s_.process_bytes),
                           megabytes(s_.process_peak_bytes));
    categories();
    if (!s_.plans.empty() && !s_.plans.front().launches.empty()) timeline(s_.plans.front());
    if (!s_.layers.empty()) layers();
    if (!s_.arrays.empty()) arrays();
    if (!s_.plans.empty()) temporaries(s_.plans.front());
    if (!s_.events.empty()) history();
    return std::move(text_);
  }

 private:
  void categories() {
    text_ += fmt::format("\n  {:<14}{:>12}{:>12}{:>14}\n", "category", "now", "at the peak", "in the step");
    const MemoryReport& r = s_.report;
    for (std::size_t c = 0; c < kMemoryCategories; ++c) {
      if (r.live_by_category.bytes[c] + r.peak_by_category.bytes[c] + s_.step.bytes[c] == 0) continue;
      text_ += fmt::format("{} {:<14}{:>12}{:>12}{:>14}\n", kLetters[c], name_of(static_cast<MemoryCategory>(c)),
                           megabytes(r.live_by_category.bytes[c]), megabytes(r.peak_by_category.bytes[c]),
                           megabytes(s_.step.bytes[c]));
    }
    text_ += fmt::format("  {:<14}{:>12}{:>12}{:>14}\n", "all", megabytes(r.live_by_category.total()),
                         megabytes(r.peak_by_category.total()), megabytes(s_.step.total()));
  }

  // The launches of the step in `rows` parts; each shows its largest launch.
  void timeline(const MemoryPlan& plan) {
    const auto count = std::ssize(plan.launches);
    const std::int64_t rows = std::clamp<std::int64_t>(o_.rows, 1, count);
    const int peak = plan.peak_launch();
    MemoryByCategory base = s_.step;
    base[MemoryCategory::activations] = base[MemoryCategory::gradients] = 0;
    // What lies beside the arena even where its gradients are alone: small flat gradients have storages of their own.
    const MemoryLaunch& top = plan.launches[static_cast<std::size_t>(peak)];
    base[MemoryCategory::gradients] =
        s_.step[MemoryCategory::gradients] - std::min(s_.step[MemoryCategory::gradients], top.gradients);
    const auto at = [&](std::int64_t i) {
      MemoryByCategory bytes = base;
      bytes[MemoryCategory::activations] += plan.launches[static_cast<std::size_t>(i)].activations;
      bytes[MemoryCategory::gradients] += plan.launches[static_cast<std::size_t>(i)].gradients;
      return bytes;
    };
    const std::size_t most = std::max<std::size_t>(1, at(peak).total());
    const int columns = std::max(kLeastBar, o_.columns - kLabelColumns - 2);
    text_ += fmt::format("\ntimeline of the step, {} launches; a row is {:.1f} of them, a letter {}\n", count,
                         static_cast<double>(count) / static_cast<double>(rows),
                         megabytes(most / static_cast<std::size_t>(columns)));
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t begin = row * count / rows, end = (row + 1) * count / rows;
      std::int64_t largest = begin;
      for (std::int64_t i = begin; i < end; ++i)
        if (at(i).total() > at(largest).total()) largest = i;
      const bool is_peak = begin <= peak && peak < end;
      const MemoryByCategory bytes = at(is_peak ? peak : largest);
      text_ += fmt::format("{}{:>5} {:>9} {}\n", is_peak ? '>' : ' ', begin, megabytes(bytes.total()),
                           bar(bytes, most, columns));
    }
    text_ += fmt::format("> peak: launch {}, {}{}, {}\n", peak, in_layer(top.op, top.layer),
                         top.is_gradient ? " of the reverse pass" : "", megabytes(most));
  }

  template <class List, class Line>
  void list(const std::string& title, const List& entries, Line line) {
    text_ += title;
    const std::size_t shown = std::min(entries.size(), static_cast<std::size_t>(std::max(0, o_.top)));
    std::size_t rest = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      std::size_t bytes = 0;
      const std::string one = line(entries[i], &bytes);
      if (i < shown)
        text_ += one;
      else
        rest += bytes;
    }
    if (entries.size() > shown) text_ += fmt::format("  {} more, {}\n", entries.size() - shown, megabytes(rest));
  }

  void layers() {
    list(fmt::format("\n  {:<34}{:>11}{:>11}{:>11}{:>12}\n", "layer", "parameters", "gradients", "optimizer",
                     "activations"),
         s_.layers, [](const MemoryLayer& layer, std::size_t* bytes) {
           *bytes = layer.total();
           return fmt::format("  {:<34}{:>11}{:>11}{:>11}{:>12}\n",
                              layer.name.empty() ? "(of no layer)" : shortened(layer.name, 33),
                              megabytes(layer.parameters), megabytes(layer.gradients), megabytes(layer.optimizer),
                              megabytes(layer.activations));
         });
  }

  void arrays() {
    list("\n  largest arrays\n", s_.arrays, [](const MemoryArray& array, std::size_t* bytes) {
      *bytes = array.bytes;
      return fmt::format("  {:>9}  {:<11}  {}\n", megabytes(array.bytes), name_of(array.category),
                         in_layer(array.name, array.layer));
    });
  }

  void temporaries(const MemoryPlan& plan) {
    std::vector<const MemoryTemporary*> alive;
    const int peak = plan.peak_launch();
    for (const MemoryTemporary& t : plan.temporaries)
      if (t.first <= peak && peak <= t.last) alive.push_back(&t);
    std::stable_sort(alive.begin(), alive.end(), [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
    if (alive.empty()) return;
    list("\n  largest temporaries at the peak\n", alive, [](const MemoryTemporary* t, std::size_t* bytes) {
      *bytes = t->bytes;
      return fmt::format("  {:>9}  {:<11}  {}, launches {} to {}\n", megabytes(t->bytes), name_of(t->category),
                         in_layer(t->op, t->layer), t->first, t->last);
    });
  }

  void history() {
    std::int64_t now = 0, most = 0;
    const MemoryEvent* at = nullptr;
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> kept;  // by who took it: count, bytes
    for (const MemoryEvent& event : s_.events) {
      auto& [count, bytes] = kept[event.what];
      count += event.bytes > 0 ? 1 : -1;
      bytes += event.bytes;
      now += event.bytes;
      if (now <= most) continue;
      most = now;
      at = &event;
    }
    text_ += fmt::format("\nhistory: {} storages taken or given back in {:.3f} s{}", s_.events.size(),
                         s_.events.back().seconds,
                         s_.events_dropped ? fmt::format(", {} before them dropped", s_.events_dropped) : "");
    text_ += at ? fmt::format("; {} more than at its beginning after {:.3f} s, for {}\n",
                              megabytes(static_cast<std::size_t>(most)), at->seconds, at->what)
                : std::string("\n");
    std::vector<std::pair<std::string, std::pair<std::int64_t, std::int64_t>>> rest;
    for (const auto& one : kept)
      if (one.second.second > 0) rest.push_back(one);
    std::stable_sort(rest.begin(), rest.end(),
                     [](const auto& a, const auto& b) { return a.second.second > b.second.second; });
    if (rest.empty()) return;
    list("  taken since it began and not given back\n", rest, [](const auto& one, std::size_t* bytes) {
      *bytes = static_cast<std::size_t>(one.second.second);
      return fmt::format("  {:>9}  {:>5} x {}\n", megabytes(*bytes), one.second.first, one.first);
    });
  }

  const MemorySnapshot& s_;
  const MemoryTextOptions o_;
  std::string text_;
};

}  // namespace

int MemoryPlan::peak_launch() const {
  const auto most = std::max_element(launches.begin(), launches.end(), [](const auto& a, const auto& b) {
    return a.activations + a.gradients < b.activations + b.gradients;
  });
  return most == launches.end() ? -1 : static_cast<int>(most - launches.begin());
}

std::string memory_text(const MemorySnapshot& snapshot, const MemoryTextOptions& options) {
  return Text(snapshot, options).write();
}

}  // namespace samebytes

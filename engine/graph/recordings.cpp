#include "graph/recordings.h"

#include <algorithm>
#include <set>
#include <utility>

#include "samebytes/error.h"

namespace samebytes::detail {
namespace {

constexpr std::size_t kMostKinds = 8;  // sizes of a batch, say, that take turns
constexpr int kMostTries = 4;

}  // namespace

Array KeptValues::find(const Key128& key) {
  const auto found = values_.find(key);
  NodePtr node = found == values_.end() ? nullptr : found->second.lock();
  return node ? Array(std::move(node)) : Array();
}

void KeptValues::add(const Key128& key, const Array& value) {
  std::erase_if(values_, [](const auto& entry) { return entry.second.expired(); });
  values_[key] = value.node();
}

SettledRecording::SettledRecording(Recording graph, std::span<const Array> inputs, std::size_t most_kept)
    : context_(inputs[0].node()->context), whole_(std::move(graph)), split_(whole_.split(inputs)) {
  if (split_ && split_->bytes > most_kept) split_.reset();
}

bool SettledRecording::is_current() const {
  const std::span<const NodePtr> leaves = split_->constants.leaves();
  if (versions_.size() != leaves.size()) return false;
  for (std::size_t i = 0; i < leaves.size(); ++i)
    if (leaves[i]->base().version.load() != versions_[i]) return false;
  return true;
}

bool SettledRecording::settle(KeptValues& values) {
  const Recording& constants = split_->constants;
  kept_.clear();
  const std::vector<Key128> keys = constants.keys();
  std::vector<std::uint32_t> versions;
  for (const NodePtr& leaf : constants.leaves()) versions.push_back(leaf->base().version.load());
  std::vector<Array> found, made;
  {
    std::vector<Array> built = constants.build({}).value();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      Array kept = values.find(keys[i]);
      if (!kept.defined()) {
        kept = built[i];
        kept.node()->category = Category::parameter;
        made.push_back(kept);
      }
      found.push_back(std::move(kept));
    }
  }
  eval(made);
  // A view could not be an input of the rest.
  if (std::any_of(made.begin(), made.end(), [](const Array& array) { return array.node()->is_view; })) return false;
  for (std::size_t i = 0; i < keys.size(); ++i) values.add(keys[i], found[i]);
  kept_ = std::move(found);
  versions_ = std::move(versions);
  return true;
}

std::optional<std::vector<Array>> SettledRecording::build(std::span<const Array> inputs, KeptValues& values) {
  const std::lock_guard lock(context_->mutex);
  if (!split_) return whole_.build(inputs);
  bool is_settled = is_current();
  if (!is_settled) {
    try {
      is_settled = settle(values);
    } catch (const OutOfMemory&) {
      kept_.clear();
    }
  }
  if (!is_settled) {
    split_.reset();
    return whole_.build(inputs);
  }
  std::vector<Array> all(inputs.begin(), inputs.end());
  all.insert(all.end(), kept_.begin(), kept_.end());
  return split_->rest.build(all);
}

std::vector<Array> SettledRecording::kept() const {
  const std::lock_guard lock(context_->mutex);
  return kept_;
}

std::optional<Recordings::Kind> Recordings::kind_of(std::span<const Array> inputs, std::vector<NodePtr> weights) {
  Kind kind;
  kind.surroundings = Surroundings::now();
  if (!kind.surroundings.is_plain || inputs.empty()) return {};
  for (const Array& input : inputs) {
    if (!input.defined()) return {};
    if (kind.engine == nullptr) kind.engine = input.node()->context.get();
    if (kind.engine != input.node()->context.get()) return {};
    kind.shapes.push_back(input.shape());
    kind.dtypes.push_back(input.dtype());
    if (std::find(weights.begin(), weights.end(), input.node()) != weights.end()) return {};
  }
  kind.weights = std::move(weights);
  return kind;
}

std::vector<Array> Recordings::call(const Kind& kind, std::span<const Array> inputs, const Run& run) {
  const Found found = find(kind);
  if (found.graph)
    if (auto built = found.graph->build(inputs, values_)) return std::move(*built);
  const Moment begin = Moment::now();
  const std::atomic<std::uint64_t>& draws = inputs[0].node()->context->random_counter;
  const std::uint64_t drawn = draws.load();
  std::vector<Array> results = run();
  if (!found.is_asked || results.empty() || draws.load() != drawn) return results;
  if (auto graph = Recording::of(begin, inputs, results))
    keep(kind, std::make_shared<SettledRecording>(std::move(*graph), inputs, most_kept_));
  return results;
}

Recordings::Found Recordings::find(const Kind& kind) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [&](const Entry& entry) { return entry.kind.weights != kind.weights; });
  auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.kind == kind; });
  if (found == entries_.end()) {
    if (entries_.size() == kMostKinds)
      entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                      [](const Entry& a, const Entry& b) { return a.used < b.used; }));
    found = entries_.insert(entries_.end(), Entry{kind, nullptr, 0, 0});
  }
  found->used = ++uses_;
  if (found->graph) return {found->graph, false};
  found->runs = std::min(found->runs + 1, kMostTries + 2);
  return {nullptr, found->runs > 1 && found->runs < kMostTries + 2};
}

void Recordings::keep(const Kind& kind, const Graph& graph) {
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_)
    if (entry.kind == kind) entry.graph = graph;
}

Recordings::Kept Recordings::kept() const {
  const std::lock_guard lock(mutex_);
  Kept kept;
  std::set<const Node*> seen;
  for (const Entry& entry : entries_) {
    if (!entry.graph) continue;
    ++kept.graphs;
    for (const Array& array : entry.graph->kept()) {
      if (!seen.insert(array.node().get()).second) continue;
      ++kept.arrays;
      kept.bytes += static_cast<std::size_t>(array.size()) * bytes_of(array.dtype());
    }
  }
  return kept;
}

void Recordings::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

}  // namespace samebytes::detail

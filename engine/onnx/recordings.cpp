#include "onnx/recordings.h"

#include <algorithm>
#include <utility>

#include "graph/context.h"
#include "onnx/traced.h"

namespace samebytes::onnx {
namespace {

constexpr std::size_t kMostKinds = 8;  // sizes of a batch, say, that take turns
constexpr int kMostTries = 4;

}  // namespace

Model::Recorded::Recorded() : graphs(std::make_shared<Recordings>()) {}
Model::Recorded::Recorded(const Recorded&) : Recorded() {}
Model::Recorded& Model::Recorded::operator=(const Recorded& other) {
  if (this != &other) graphs = std::make_shared<Recordings>();
  return *this;
}

std::optional<Model::Recordings::Kind> Model::Recordings::kind_of(const std::map<std::string, Value>& inputs,
                                                                  const std::vector<Weight>& weights) {
  Kind kind;
  kind.surroundings = detail::Surroundings::now();
  if (!kind.surroundings.is_plain || is_tracing() || inputs.empty()) return {};
  for (const auto& [name, value] : inputs) {
    const Array* const array = std::get_if<Array>(&value);
    if (array == nullptr || !array->defined() || !is_floating(array->dtype())) return {};
    if (kind.engine == nullptr) kind.engine = array->node()->context.get();
    if (kind.engine != array->node()->context.get()) return {};
    kind.names.push_back(name);
    kind.shapes.push_back(array->shape());
    kind.dtypes.push_back(array->dtype());
  }
  for (const Weight& weight : weights) {
    kind.weights.push_back(weight.cell.node());
    for (const auto& [name, value] : inputs)
      if (std::get<Array>(value).node() == kind.weights.back()) return {};
  }
  return kind;
}

Model::Recordings::Found Model::Recordings::find(const Kind& kind) {
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

void Model::Recordings::keep(const Kind& kind, std::optional<detail::Recording> graph) {
  if (!graph) return;
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_)
    if (entry.kind == kind) entry.graph = std::make_shared<const detail::Recording>(std::move(*graph));
}

}  // namespace samebytes::onnx

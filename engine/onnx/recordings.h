// The graphs that a model's runs built, by what they depend on besides values. The second run of one kind is recorded,
// because the first may evaluate what later ones find evaluated; from the third on the nodes of the file are not read.
// Where nothing could be recorded, because another thread evaluated it meanwhile, say, some more runs try.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "graph/recording.h"
#include "samebytes/onnx.h"

namespace samebytes::onnx {

class Model::Recordings {
 public:
  // What a run depends on besides the values of its inputs and of the weights.
  struct Kind {
    detail::Surroundings surroundings;
    const void* engine = nullptr;
    std::vector<std::string> names;  // of the inputs
    std::vector<Shape> shapes;
    std::vector<Dtype> dtypes;
    std::vector<detail::NodePtr> weights;
    bool operator==(const Kind&) const = default;
  };
  using Graph = std::shared_ptr<const detail::Recording>;

  // The kind of a run in evaluation mode whose inputs are all arrays; nullopt for others.
  static std::optional<Kind> kind_of(const std::map<std::string, Value>& inputs, const std::vector<Weight>& weights);

  struct Found {
    Graph graph;            // null: run the nodes
    bool is_asked = false;  // ... and hand the result to keep()
  };
  Found find(const Kind& kind);
  void keep(const Kind& kind, std::optional<detail::Recording> graph);  // nullopt: it could not be recorded

 private:
  struct Entry {
    Kind kind;
    Graph graph;
    int runs = 0;  // that read the nodes
    std::uint64_t used = 0;
  };
  std::mutex mutex_;  // several threads may use a model in evaluation mode
  std::vector<Entry> entries_;
  std::uint64_t uses_ = 0;
};

}  // namespace samebytes::onnx

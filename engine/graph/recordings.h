// The graphs that repeated calls of one network built, by what they depend on besides values. The second call of one
// kind is recorded, because the first may evaluate what later ones find evaluated; from the third on the code is not
// run. Where nothing could be recorded, because another thread evaluated it meanwhile, say, some more calls try.
// What follows from weights alone, such as norms folded into filters, is computed once and kept until one of these
// weights is overwritten: graphs of other batch sizes share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/hash.h"
#include "graph/context.h"
#include "graph/recording.h"

namespace samebytes::detail {

// Values by what they are made of (Recording::keys), while somebody has them. Under the context's lock.
class KeptValues {
 public:
  Array find(const Key128& key);  // an empty handle: nobody has it
  void add(const Key128& key, const Array& value);

 private:
  std::unordered_map<Key128, std::weak_ptr<Node>, Key128Hash> values_;
};

// A recording whose constants are kept.
class SettledRecording {
 public:
  // At most so many bytes of constants are kept, else none. Requires: an input.
  SettledRecording(Recording graph, std::span<const Array> inputs, std::size_t most_kept);
  // As Recording::build(). Computes the constants first if their leaves were overwritten since. Where memory does not
  // suffice for them, they are part of the graph from then on.
  std::optional<std::vector<Array>> build(std::span<const Array> inputs, KeptValues& values);
  std::vector<Array> kept() const;

 private:
  bool is_current() const;
  bool settle(KeptValues& values);  // false: the constants cannot be kept
  const ContextPtr context_;        // its lock guards what follows
  Recording whole_;
  std::optional<SplitRecording> split_;
  std::vector<Array> kept_;
  std::vector<std::uint32_t> versions_;  // of the constants' leaves when they were computed
};

class Recordings {
 public:
  explicit Recordings(std::size_t most_kept) : most_kept_(most_kept) {}

  // What a call depends on besides the values of its inputs and of the weights.
  struct Kind {
    Surroundings surroundings;
    const void* engine = nullptr;
    std::vector<std::string> names;  // of the inputs, where they have any
    std::vector<Shape> shapes;
    std::vector<Dtype> dtypes;
    std::vector<NodePtr> weights;
    std::vector<std::shared_ptr<const void>> others;  // objects that decide what the code builds
    bool operator==(const Kind&) const = default;
  };
  // The kind of a call without gradients, casts and the like; nullopt for others, and where an input is a weight.
  static std::optional<Kind> kind_of(std::span<const Array> inputs, std::vector<NodePtr> weights);

  // What `run` returns, or what it built before over these inputs. An empty result of `run` is not recorded.
  using Run = std::function<std::vector<Array>()>;
  std::vector<Array> call(const Kind& kind, std::span<const Array> inputs, const Run& run);

  struct Kept {
    std::size_t graphs = 0, arrays = 0, bytes = 0;
  };
  Kept kept() const;
  void clear();  // records and computes anew

 private:
  using Graph = std::shared_ptr<SettledRecording>;
  struct Entry {
    Kind kind;
    Graph graph;
    int runs = 0;  // of the code
    std::uint64_t used = 0;
  };
  struct Found {
    Graph graph;            // null: run the code
    bool is_asked = false;  // ... and hand the result to keep()
  };
  Found find(const Kind& kind);
  void keep(const Kind& kind, const Graph& graph);

  const std::size_t most_kept_;  // bytes of constants of a graph
  mutable std::mutex mutex_;     // several threads may call a network in evaluation mode
  std::vector<Entry> entries_;
  std::uint64_t uses_ = 0;
  KeptValues values_;
};

}  // namespace samebytes::detail

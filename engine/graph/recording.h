// A graph without its values: what arrays are made of, kept to be built again over other inputs without the code that
// built it. A node costs a tenth of a microsecond then, where a reader of files spends several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/hash.h"
#include "graph/node.h"
#include "samebytes/array.h"

namespace samebytes::detail {

// What is not in the graph and decides what code builds. Two equal ones on one thread, and inputs of the same shapes
// and dtypes, give the same graph, unless the code looks at values.
struct Surroundings {
  int device = 0;
  bool is_plain = false;  // no gradients, no casts, no checkpoint, no batch norm of somebody else's
  static Surroundings now();
  bool operator==(const Surroundings&) const = default;
};

// A moment on this thread.
struct Moment {
  std::uint64_t next_node = 0;   // the id that the next node gets
  std::uint64_t host_reads = 0;  // how often this thread has looked at values of arrays
  static Moment now();
};

std::uint64_t next_node_id();
std::uint64_t host_reads();  // of this thread

struct SplitRecording;

class Recording {
 public:
  // What `results` are made of, down to `inputs` and to arrays that had their values, which it keeps alive, where code
  // that began at `begin` built it. Returns nullopt where that code has looked at values; where some of the graph was
  // evaluated since, as another thread may do, writes a cell or carries state; and where an input comes twice or is a
  // view, whose place in its storage would be recorded.
  static std::optional<Recording> of(const Moment& begin, std::span<const Array> inputs,
                                     std::span<const Array> results);

  // New arrays: the graph over these inputs, and over the values that the other leaves have now. Requires: as many
  // inputs, of the same engine, shapes and dtypes. Returns nullopt where one is a view.
  std::optional<std::vector<Array>> build(std::span<const Array> inputs) const;

  // The same graph in two parts, once its ops have taken what they would rather multiply by (Op::settled): what follows
  // from the leaves alone, and the rest. `inputs` are some that build() takes. Returns nullopt where build() would, and
  // where nothing follows from leaves alone.
  std::optional<SplitRecording> split(std::span<const Array> inputs) const;

  std::span<const NodePtr> leaves() const { return leaves_; }  // null in the places of inputs
  // A key for each result: what it is made of, by which ops, and the version of the leaves' bytes. Equal keys, equal
  // values. Requires: no inputs, the context's lock.
  std::vector<Key128> keys() const;

 private:
  friend class Splitter;
  struct Step {
    std::unique_ptr<Node> form;  // without inputs
    std::vector<int> inputs;     // of steps; below 0: ~ of a place in `outside`
  };
  std::vector<Step> steps_;      // in the order in which they were built
  std::vector<NodePtr> leaves_;  // with their values; null in the places of inputs
  std::vector<int> results_;     // as the inputs of a step
  std::size_t inputs_ = 0;       // the first places of leaves_

  using Prepare = std::function<NodePtr(const NodePtr& built, std::span<const bool> is_constant)>;
  std::optional<std::vector<Array>> build(std::span<const Array> inputs, const Prepare& prepare) const;
};

struct SplitRecording {
  Recording constants;  // has no inputs; its results are the last inputs of the rest
  Recording rest;
  std::size_t bytes = 0;  // of all the constants
};

}  // namespace samebytes::detail

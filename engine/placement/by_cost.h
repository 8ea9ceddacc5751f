// Work that nobody placed is left where its bytes are. It would run on the first device of the engine; where its inputs
// lie in another context, and bringing them costs more than running there and bringing the result, it runs there.
#pragma once

#include <string>
#include <vector>

#include "graph/graph_list.h"
#include "placement/crossings.h"
#include "placement/fallback.h"

namespace samebytes::detail {

// Sets the devices of nodes for one plan; the destructor sets them back, so that the next graph of this structure is
// the same to the plan cache. Work in a DeviceScope of another context than the first stays where it was placed, and
// so does what `moves` has placed because of a refusal.
class PlacementByCost {
 public:
  PlacementByCost(GraphList& list, Context& context, const Crossings& crossings, const Moves& moves);
  ~PlacementByCost();
  PlacementByCost(const PlacementByCost&) = delete;
  const std::vector<std::string>& reasons() const { return reasons_; }

 private:
  struct Before {
    Node* node;
    int device;
  };
  std::vector<Before> before_;
  std::vector<std::string> reasons_;
};

}  // namespace samebytes::detail

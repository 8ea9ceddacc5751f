// Where the parameters lie in each arena of an optimizer, as the kernels of Lars and Lamb are told.
#pragma once

#include <memory>
#include <vector>

#include "ops/trust.h"
#include "samebytes/optim/optimizer.h"

namespace samebytes::optim {

// Of this rank's share, where the optimizer is sharded.
inline std::shared_ptr<const std::vector<detail::TrustSegments>> segments_of_arenas(const Optimizer& optimizer) {
  auto segments = std::make_shared<std::vector<detail::TrustSegments>>();
  for (std::size_t i = 0; i < optimizer.arenas().size(); ++i) {
    const ParameterArena& arena = optimizer.arenas()[i];
    std::vector<std::int64_t> sizes;
    for (const Array& parameter : arena.parameters()) sizes.push_back(parameter.size());
    const auto [begin, end] = optimizer.share(i);
    segments->emplace_back(arena.offsets(), sizes, arena.size(), begin, end);
  }
  return segments;
}

}  // namespace samebytes::optim

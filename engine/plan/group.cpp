#include "plan/group.h"

#include <algorithm>

#include "plan/rematerialise.h"

namespace samebytes::detail {

const GradientRelease* Grouping::release_of_pack(int place) const {
  for (const GradientRelease& release : releases)
    if (release.pack == place) return &release;
  return nullptr;
}

const GradientRelease* Grouping::release_of_group(int group) const {
  for (const GradientRelease& release : releases)
    if (release.group == group) return &release;
  return nullptr;
}

Grouping group_nodes(const GraphList& list, double most_cost, bool fused) {
  Grouping result;
  result.epilogues = append_epilogues(list, fused);
  result.fusion = fuse(list, result.epilogues, fused);
  result.loss_gradients = pair_loss_gradients(list, result.fusion, fused);
  if (!fused) return result;
  rematerialise(list, result.fusion, {.most_cost = most_cost, .releases = release_gradients(list, result.fusion)});
  result.releases = release_gradients(list, result.fusion);  // recomputed values have other readers now
  return result;
}

std::string describe(const Grouping& grouping) {
  const auto appended = std::count_if(grouping.epilogues.of.begin(), grouping.epilogues.of.end(),
                                      [](const AppendedEpilogue& e) { return e.result >= 0; });
  const auto paired = std::count_if(grouping.loss_gradients.gradient.begin(), grouping.loss_gradients.gradient.end(),
                                    [](int gradient) { return gradient >= 0; });
  return std::to_string(grouping.fusion.members.size()) + " pointwise groups, " +
         std::to_string(grouping.fusion.nodes_fused + grouping.epilogues.nodes_fused) +
         " nodes without a launch of their own, " + std::to_string(appended) + " epilogues, " + std::to_string(paired) +
         " losses with their gradient, " + std::to_string(grouping.fusion.again.size()) + " values computed again, " +
         std::to_string(grouping.releases.size()) + " gradients released piece by piece";
}

}  // namespace samebytes::detail

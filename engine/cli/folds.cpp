#include "cli/folds.h"

#include <nlohmann/json.hpp>

namespace samebytes::cli {

void FoldRun::end(const Summary& summary) {
  ++fold;
  steps += summary.steps;
  if (summary.test_area_under_curve) areas.push_back(*summary.test_area_under_curve);
}

std::string FoldRun::to_text() const {
  return nlohmann::ordered_json{{"fold", fold}, {"steps", steps}, {"areas", areas}}.dump();
}

FoldRun FoldRun::from_text(const std::string& text) {
  const auto json = nlohmann::ordered_json::parse(text);
  return {json["fold"].get<int>(), json["steps"].get<std::int64_t>(), json["areas"].get<std::vector<double>>()};
}

}  // namespace samebytes::cli

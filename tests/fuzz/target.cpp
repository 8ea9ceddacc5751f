#include "fuzz/target.h"

#include <algorithm>

namespace samebytes::fuzz {

std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

double growth_of(const Target& target, std::string_view file) {
  constexpr double kDeflate = 1032;
  // A text of numbers grows while it is unpacked and again while it is read.
  return file.starts_with("\x1f\x8b") ? std::max(target.growth, 4 * kDeflate) : target.growth;
}

Added::Added(Target target) {
  const auto place =
      std::find_if(targets().begin(), targets().end(), [&](const Target& t) { return t.name > target.name; });
  targets().insert(place, std::move(target));
}

}  // namespace samebytes::fuzz

// The roofline plot (S. Williams, A. Waterman, D. Patterson, "Roofline: an insightful visual performance model", 2009):
// arithmetic a byte against speed, both logarithmic, under the measured bounds of a device.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "samebytes/peak.h"

namespace samebytes::detail {

struct RooflinePoint {
  double flops = 0, bytes = 0, seconds = 0;  // a point that lacks one of them is left out
  double radius = 6;
  std::string color = {};
  std::string tip = {};    // shown where the mouse rests
  std::string label = {};  // written beside it
};

// Empty where the peak is not known. `about` is written under the axis.
std::string roofline_svg(const DevicePeak& peak, const std::vector<RooflinePoint>& points, std::string_view about);

}  // namespace samebytes::detail

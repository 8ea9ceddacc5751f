// Reductions over any axes in double, element by element.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samebytes/shape.h"

namespace samebytes::reference {

enum class Reduce { sum, mean, max, min };

// src of `shape` reduced over `axes` (none: all of them), in the order of the kept axes. NaN wins in max and min.
std::vector<double> reduce(std::span<const double> src, const Shape& shape, const std::vector<int>& axes, Reduce what);

// The index along `axis` of the first largest element, NaN the largest.
std::vector<double> argmax(std::span<const double> src, const Shape& shape, int axis);

}  // namespace samebytes::reference

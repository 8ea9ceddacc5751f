// The problems that choices are measured on: shapes of the workloads, and odd ones that are only checked.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "runtime/tunables.h"
#include "samebytes/array.h"

namespace samebytes::detail {

struct Problem {
  std::string group;             // gemm, conv, clblast
  std::string family = {};       // the kernel file whose tiles matter: gemm, conv, conv_filter
  std::string shape_class = {};  // of the launch
  std::string kernel = {};       // for people
  std::string shape = {};        // for people
  std::vector<Shape> inputs = {};
  std::int64_t sum_length = 1;  // for the tolerance
  bool is_timed = true;
  bool is_rapid = false;  // part of the rapid mode
  std::function<Array(std::span<const Array>)> make = {};

  // Whether a choice can change how this problem runs.
  bool depends_on(const Tunable& tunable) const;
};

const std::vector<Problem>& tuning_problems();

}  // namespace samebytes::detail

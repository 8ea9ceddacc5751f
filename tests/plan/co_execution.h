// What is evaluated with and without the host's part, and the same bytes either way; numbers to do it with.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "graph/context.h"
#include "runtime/runtime.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"

namespace samebytes::testing {

using Bytes = std::vector<std::vector<std::byte>>;

inline std::vector<std::byte> bytes_of_array(const Array& a) {
  const auto copy = [](const auto& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  switch (a.dtype()) {
    case Dtype::f64: return copy(a.to_vector<double>());
    case Dtype::f16:
    case Dtype::bf16: return copy(astype(a, f32).to_vector<float>());
    case Dtype::i32: return copy(a.to_vector<std::int32_t>());
    case Dtype::i64: return copy(a.to_vector<std::int64_t>());
    case Dtype::u8:
    case Dtype::bool_: return copy(a.to_vector<std::uint8_t>());
    default: return copy(a.to_vector<float>());
  }
}

inline Bytes evaluated(const std::vector<Array>& arrays) {
  eval(arrays);
  Bytes bytes;
  for (const Array& a : arrays) bytes.push_back(bytes_of_array(a));
  return bytes;
}

// Whether kernels' bytes are the host's, and the queue runs its functions.
inline bool runs_on_host(const Engine& engine) { return engine.context()->runtime->device().runs_host_functions(); }

class CoExecutionTest : public OnDevice {
 protected:
  // What `make` makes, on engines with and without the host's part; both begin with the same numbers.
  template <class Make>
  void expect_same_bytes(const Make& make, std::uint64_t least_moved, EngineOptions options = {}) {
    Bytes off, always;
    options.seed = 11;
    {
      options.host_execution = HostExecution::off;
      const auto engine = make_engine(GetParam(), options);
      const EngineScope use(*engine);
      off = evaluated(make());
      EXPECT_EQ(engine->plans().launches_on_host, 0u);
      check_guards(*engine);
    }
    options.host_execution = HostExecution::always;
    const auto engine = make_engine(GetParam(), options);
    const EngineScope use(*engine);
    always = evaluated(make());
    ASSERT_EQ(always.size(), off.size());
    for (std::size_t i = 0; i < off.size(); ++i) EXPECT_EQ(always[i], off[i]) << "result " << i;
    if (runs_on_host(*engine)) {
      EXPECT_GE(engine->plans().launches_on_host, least_moved);
    } else {
      EXPECT_EQ(engine->plans().launches_on_host, 0u);
    }
    check_guards(*engine);
  }
  bool is_cpu() { return engine().device().personality == Personality::cpu; }
};
// Numbers of both signs with zeros of both signs, infinities and very small ones among them.
inline Array special(const Shape& shape, Dtype dtype, double most = std::numeric_limits<double>::infinity()) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kSome[] = {0.0, -0.0, 1.5, -2.25, kInfinity, -kInfinity, 1e-41, -3e-39, 7.0, 1e30};
  std::vector<double> values(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] =
        std::clamp(i % 3 == 1 ? kSome[i / 3 % std::size(kSome)] : std::fmod(static_cast<double>(i) * 0.37, 5.0) - 2.5,
                   -most, most);
  if (dtype == f64) return array(values, shape);
  return array(std::vector<float>(values.begin(), values.end()), shape);
}

inline Array whole(const Shape& shape) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(shape.size()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i * 2654435761u);
  return array(values, shape);
}

}  // namespace samebytes::testing

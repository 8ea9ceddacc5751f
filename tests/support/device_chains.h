// Values that go from device to device in chains of different lengths: a launch that does not wait for what it reads,
// or overwrites what another device still reads, gives other numbers.
#pragma once

#include <vector>

#include "samebytes/samebytes.h"

namespace samebytes::testing {

// The last value of each of `rounds` chains over the first `devices` of the current engine; all are [width, width].
inline std::vector<std::vector<float>> device_chains(int devices, std::int64_t width, int rounds) {
  std::vector<std::vector<float>> results;
  const Array w = uniform({width, width});
  w.eval();
  for (int round = 0; round < rounds; ++round) {
    std::vector<Array> values;
    for (int i = 0; i < 4; ++i) values.push_back(uniform({width, width}));
    for (int i = 0; i < 24; ++i) {
      const DeviceScope on((i * 5 + i / 3) % devices);
      const Array &a = values[static_cast<std::size_t>(i)], &b = values[static_cast<std::size_t>(i / 2)];
      values.push_back(i % 3 ? tanh(matmul(a, w) * 0.01 + b) : softmax(a + transpose(b)) * 2.0);
    }
    results.push_back(values.back().to_vector<float>());
  }
  return results;
}

}  // namespace samebytes::testing

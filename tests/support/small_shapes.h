// Fixture for launches that a simulator of devices checks for overruns, races and unset values: every kernel family
// once forward and once backward, on odd shapes of at most 10^5 flop a launch. Values are tested by each op's own
// tests. A family's fixture is named SmallShapes<Family>Test: .ci/run selects On/SmallShapes*.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/gradcheck.h"

namespace samebytes::testing {

class SmallShapes : public OnDevice {
 protected:
  // Runs f and its gradients on values between 0.1 and 0.9; all must be finite.
  static void run(const ArrayFunction& f, const std::vector<Shape>& shapes) {
    std::vector<Array> inputs;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      inputs.push_back(real_array(random_values(shapes[i].size(), i + 1, 0.1, 0.9), shapes[i], f32));
    const Array y = f(inputs);
    const std::vector<Array> dx = gradients(sum(y * y), inputs);
    std::vector<Array> all{y};
    all.insert(all.end(), dx.begin(), dx.end());
    eval(all);
    for (const Array& array : all)
      for (const float value : array.to_vector<float>()) ASSERT_TRUE(std::isfinite(value));
  }
};

}  // namespace samebytes::testing

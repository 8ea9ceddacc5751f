// The plan of a step as text: which launches run in which order, on which device, what they wait for, which bytes cross
// from one OpenCL context to another, and why work that could have gone elsewhere is where it is.
#pragma once

#include <string>

namespace samebytes {

class Engine;

struct ExplainOptions {
  int most_launches = 0;  // lines; the rest is one line more; 0: all
};

// Of the plan with the most launches that the engine has made and still keeps, which is that of a training step where
// there was one. A line of text where there is no plan.
std::string explain(const Engine& engine, const ExplainOptions& options = {});

}  // namespace samebytes

// The plan of a step as text: the launches in order, the device of each, what they wait for, which bytes move between
// OpenCL contexts, and why work was not placed on another device.
#pragma once

#include <cstdint>
#include <string>

namespace samebytes {

class Engine;

// all: the plan, then what each pass of the planner did, then why work was placed where it is.
enum class ExplainPart : std::uint8_t { all, plan, passes };

struct ExplainOptions {
  int most_launches = 0;  // lines; one further line sums the rest; 0: all
  ExplainPart part = ExplainPart::all;
};

// Explains the plan with the most launches among those that the engine keeps: that of a training step if there was one.
// Without a plan, returns a line that says so.
std::string explain(const Engine& engine, const ExplainOptions& options = {});

}  // namespace samebytes

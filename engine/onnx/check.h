// What is checked of a graph before anything runs.
#pragma once

#include <map>
#include <string>

#include "onnx/proto.h"

namespace samebytes::onnx {

using Functions = std::map<std::string, const ::onnx::FunctionProto*>;  // by key_of()

constexpr int kDeepestNesting = 32;  // functions and subgraphs inside each other
constexpr int kNewestOpset = 28, kOldestOpset = 7;

std::string key_of(const std::string& domain, const std::string& op);
bool is_standard(const std::string& domain);
// The operator's name in the registry.
std::string registered_as(const std::string& domain, const std::string& op);
// On one line of a message: control characters become question marks, and what is long is cut.
std::string printable(const std::string& name);
bool has_control(const std::string& name);
// "Conv 'features.0'", without control characters and not longer than a line.
std::string shown(const ::onnx::NodeProto& node);

// Throws ArgumentError unless every value is made once and before it is read, nothing is nested too deep, no name has a
// control character, and every operator is known; one message lists all nodes whose operators are not.
void check(const ::onnx::GraphProto& graph, const Functions& functions);

}  // namespace samebytes::onnx

#include "onnx/traced.h"

#include <algorithm>
#include <set>
#include <vector>

#include "graph/node.h"
#include "onnx/call.h"
#include "samebytes/error.h"

namespace samebytes::onnx {
namespace {

thread_local std::span<const Array> traced;

}  // namespace

StaysOnDevice::StaysOnDevice(std::span<const Array> inputs) : before_(traced) { traced = inputs; }
StaysOnDevice::~StaysOnDevice() { traced = before_; }

bool is_tracing() { return !traced.empty(); }

bool stays_on_device(const Call& call) {
  return is_tracing() && std::any_of(call.in.begin(), call.in.end(), [](const Item& item) {
           return item.defined() && !item.host && !is_floating(item.type);
         });
}

void check_readable(const Array& array) {
  if (traced.empty()) return;
  std::vector<const detail::Node*> stack{array.node().get()};
  std::set<const detail::Node*> seen;
  while (!stack.empty()) {
    const detail::Node* node = stack.back();
    stack.pop_back();
    if (!seen.insert(node).second) continue;
    if (std::any_of(traced.begin(), traced.end(), [&](const Array& input) { return input.node().get() == node; }))
      throw ArgumentError(
          "its host computes with values that an input of the trace makes, which a file cannot say; what is written "
          "must keep integers on the device");
    for (const auto& edge : node->tape_inputs()) stack.push_back(edge.node.get());
  }
}

}  // namespace samebytes::onnx

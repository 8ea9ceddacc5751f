#include "samebytes/nn/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "nn/grouped.h"
#include "nn/trace.h"
#include "samebytes/autograd.h"
#include "samebytes/nn/inference.h"

namespace samebytes::nn {
namespace {

// Number of values in a module's own parameters, and whether it has children.
class Own final : public Visitor {
 public:
  explicit Own(Module& module) { module.visit(*this); }
  void parameter(std::string_view, const Parameter& cell, Layout) override { count += cell.size(); }
  void buffer(std::string_view, const Buffer&) override {}
  void child(std::string_view, Module&) override { has_children = true; }
  std::int64_t count = 0;
  bool has_children = false;
};

struct Row {
  std::string name, layer, shape, count;
};

std::vector<Array> zeros_of(const std::vector<InputShape>& inputs) {
  std::vector<Array> arrays;
  arrays.reserve(inputs.size());
  for (const InputShape& input : inputs) arrays.push_back(zeros(input.shape, input.dtype));
  return arrays;
}

}  // namespace

std::string summary(Module& module, const Shape& input, Dtype dtype) {
  return summary(module, std::vector<InputShape>{{.shape = input, .dtype = dtype}});
}

void warm(Module& module, const std::vector<InputShape>& inputs) {
  const NoGrad no_grad;
  const std::vector<Array> arrays = zeros_of(inputs);
  eval(arrays);  // leaves, as the inputs of a call are: the plan has no part that fills them
  const int calls = dynamic_cast<const FrozenModule*>(&module) != nullptr ? FrozenModule::kCallsToRecord + 1 : 1;
  for (int call = 0; call < calls; ++call) module(arrays).wait();
}

std::string summary(Module& module, const std::vector<InputShape>& inputs) {
  Trace trace;
  {
    const NoGrad no_grad;
    module(zeros_of(inputs));
  }
  std::unordered_map<const Module*, Module::NamedModule> names;
  for (const auto& entry : module.modules()) names.emplace(entry.module, entry);

  std::vector<Row> rows{{"", "layer", "output", "parameters"}};
  std::unordered_set<const Module*> counted;
  for (const auto& call : trace.calls()) {
    const auto found = names.find(call.module);
    if (found == names.end()) continue;  // called, but not named in visit()
    const Own own(*found->second.module);
    if (own.has_children && own.count == 0) continue;
    const bool again = !counted.insert(call.module).second;
    rows.push_back({found->second.name, found->second.module->describe(), call.result.to_string(),
                    own.count == 0 ? ""
                    : again        ? "(shared)"
                                   : grouped(own.count)});
  }

  std::size_t widths[4] = {};
  for (const Row& row : rows) {
    widths[0] = std::max(widths[0], row.name.size());
    widths[1] = std::max(widths[1], row.layer.size());
    widths[2] = std::max(widths[2], row.shape.size());
    widths[3] = std::max(widths[3], row.count.size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>{}}", row.name, widths[0], row.layer, widths[1],
                                   row.shape, widths[2], row.count, widths[3]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }

  std::int64_t trainable = 0;
  for (const Array& parameter : module.parameters()) trainable += parameter.size();
  const std::int64_t all = module.parameter_count();
  text += inputs.size() == 1 ? "input " : "inputs ";
  for (std::size_t i = 0; i < inputs.size(); ++i) text += inputs[i].shape.to_string() + ", ";
  text += grouped(all) + " parameters";
  if (trainable != all) text += ", " + grouped(trainable) + " of them trainable";
  return text + "\n";
}

}  // namespace samebytes::nn

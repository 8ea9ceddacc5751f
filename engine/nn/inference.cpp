#include "samebytes/nn/inference.h"

#include <utility>
#include <vector>

#include "graph/recordings.h"
#include "nn/trace.h"
#include "samebytes/autograd.h"
#include "samebytes/figures.h"

namespace samebytes::nn {
namespace {

// What a module's graph depends on: its cells, int8 forms of weights, and whether all of it is in evaluation mode.
class Dependencies final : public Visitor {
 public:
  explicit Dependencies(Module& module) { child("", module); }
  void parameter(std::string_view, const Parameter& cell, Layout) override { add(cell); }
  void buffer(std::string_view, const Buffer& cell) override { add(cell); }
  void child(std::string_view, Module& module) override {
    is_training = is_training || module.is_training();
    module.visit(*this);
  }

  std::vector<detail::NodePtr> cells;
  std::vector<std::shared_ptr<const void>> others;
  bool is_training = false;

 private:
  void add(const Parameter& cell) {
    cells.push_back(cell.node());
    if (cell.quantized()) others.push_back(cell.quantized());
  }
};

}  // namespace

FrozenModule::FrozenModule(Module& module, const FreezeOptions& options)
    : module_(&module), graphs_(std::make_shared<detail::Recordings>(options.most_kept_bytes)) {
  train(false);
}

Array FrozenModule::forward_all(std::span<const Array> inputs) {
  Dependencies on(*module_);
  if (on.is_training || Trace::current()) return module_->forward_all(inputs);
  const NoGrad no_grad;
  auto kind = detail::Recordings::kind_of(inputs, std::move(on.cells));
  if (!kind) return module_->forward_all(inputs);
  kind->others = std::move(on.others);
  const auto run = [&] { return std::vector<Array>{module_->forward_all(inputs)}; };
  return graphs_->call(*kind, inputs, run)[0];
}

FreezeReport FrozenModule::report() const {
  const detail::Recordings::Kept kept = graphs_->kept();
  return {kept.graphs, kept.arrays, kept.bytes};
}

void FrozenModule::reset() { graphs_->clear(); }

std::string FreezeReport::to_text() const {
  const auto counted = [](std::size_t n, const char* what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  };
  return counted(graphs, "graph") + ", " + counted(kept, "value") + " (" + bytes_text(kept_bytes) +
         ") beside the weights";
}

FrozenModule freeze_for_inference(Module& module, const FreezeOptions& options) {
  return FrozenModule(module, options);
}

}  // namespace samebytes::nn

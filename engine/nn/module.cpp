// Traversals of modules: state, parameters, modes.
#include "samebytes/nn/module.h"

#include <algorithm>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "nn/quantized.h"
#include "nn/trace.h"
#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/nn/lora.h"
#include "samebytes/ops.h"

namespace samebytes::nn {
namespace {

std::string joined(const std::string& path, std::string_view name) {
  if (name.empty()) return path;
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

// Collects the state of a module and of all below it. `channels_` follows the images, so that the first linear weight
// after a Flatten gets the number of channels of its columns.
class Collector final : public Visitor {
 public:
  explicit Collector(Module& module) { enter("", module); }

  void parameter(std::string_view name, const Parameter& cell, Layout layout) override {
    NamedArray entry{.name = joined(path_, name),
                     .array = cell,
                     .layout = layout,
                     .is_frozen = module_->is_frozen() || module_->freezes(name),
                     .is_adapter = is_adapter_};
    if (layout == Layout::linear) {
      entry.flattened_channels = std::exchange(flattened_, 0);
      channels_ = 0;
    }
    state_.push_back(std::move(entry));
  }
  void buffer(std::string_view name, const Buffer& cell) override {
    state_.push_back(
        {.name = joined(path_, name), .array = cell, .is_buffer = true, .is_frozen = module_->is_frozen()});
  }
  void child(std::string_view name, Module& module) override { enter(joined(path_, name), module); }
  // The columns of an adapter's first matrix are those of the weight.
  void projection(std::string_view name, const Array& weight, Adapter& adapter) override {
    if (!adapter) return;
    const auto found = std::find_if(state_.rbegin(), state_.rend(),
                                    [&](const NamedArray& entry) { return entry.array.node() == weight.node(); });
    if (found != state_.rend()) flattened_ = found->flattened_channels;
    is_adapter_ = true;
    Visitor::projection(name, weight, adapter);
    is_adapter_ = false;
  }
  void channels(std::int64_t count) override { channels_ = count; }
  void flatten(std::int64_t channels) override { flattened_ = channels > 0 ? channels : channels_; }

  std::vector<NamedArray> take() { return std::move(state_); }

 private:
  void enter(std::string path, Module& module) {
    std::swap(path, path_);
    const Module* const outer = std::exchange(module_, &module);  // freeze() has set the children, too
    module.visit(*this);
    module_ = outer;
    std::swap(path, path_);
  }

  std::vector<NamedArray> state_;
  std::string path_;
  const Module* module_ = nullptr;
  bool is_adapter_ = false;
  std::int64_t channels_ = 0;
  std::int64_t flattened_ = 0;
};

// Visits this module and all below it.
class Walker final : public Visitor {
 public:
  using Function = std::function<void(const std::string& path, Module& module)>;
  explicit Walker(Function function) : function_(std::move(function)) {}
  void walk(std::string path, Module& module) {
    function_(path, module);
    std::swap(path, path_);
    module.visit(*this);
    std::swap(path, path_);
  }
  void parameter(std::string_view, const Parameter&, Layout) override {}
  void buffer(std::string_view, const Buffer&) override {}
  void child(std::string_view name, Module& module) override { walk(joined(path_, name), module); }

 private:
  Function function_;
  std::string path_;
};

// Throws if two Parameters below a module share a cell.
void require_untied(const Module& module) {
  class Ties final : public Visitor {
   public:
    void parameter(std::string_view name, const Parameter& cell, Layout) override { note(name, cell); }
    void buffer(std::string_view name, const Buffer& cell) override { note(name, cell); }
    void child(std::string_view name, Module& child) override { enter(joined(path_, name), child); }
    void enter(std::string path, Module& child) {
      std::swap(path, path_);
      child.visit(*this);
      std::swap(path, path_);
    }
    std::string first, second;  // names of a tied pair; empty if there is none

   private:
    struct Seen {
      const Parameter* owner;
      std::string name;
    };
    void note(std::string_view name, const Parameter& cell) {
      if (!cell.defined()) return;
      const auto [at, is_new] = seen_.try_emplace(cell.node().get(), Seen{&cell, joined(path_, name)});
      if (is_new || at->second.owner == &cell || !first.empty()) return;
      first = at->second.name;
      second = joined(path_, name);
    }
    std::string path_;
    std::unordered_map<const void*, Seen> seen_;
  } ties;
  ties.enter("", const_cast<Module&>(module));  // visit() changes nothing here
  if (!ties.first.empty())
    throw ArgumentError("copy of " + module.describe() + ": " + ties.first + " and " + ties.second +
                        " are one parameter, which a plain copy would make two; use nn::clone(), which keeps them one");
}

// Number of values in the parameters that `counts` selects; shared ones count once.
template <class Counts>
std::int64_t count_numbers(const Module& module, Counts counts) {
  std::int64_t n = 0;
  std::unordered_set<const void*> seen;
  for (const NamedArray& entry : module.state())
    if (!entry.is_buffer && counts(entry) && seen.insert(entry.array.node().get()).second) n += entry.array.size();
  return n;
}

}  // namespace

struct Copies::State {
  Kind kind;
  State* outer;
  std::unordered_map<const void*, Array> cells;                     // the copy of each, by its node
  std::unordered_map<const Lora*, std::shared_ptr<Lora>> adapters;  // likewise
};

thread_local Copies::State* Copies::current = nullptr;

Copies::Copies(Kind kind) : state_(std::make_unique<State>(State{kind, current, {}, {}})) { current = state_.get(); }
Copies::~Copies() { current = state_->outer; }

Parameter::Parameter(const Parameter& other) : Array(other) {
  Copies::State* const scope = Copies::current;
  if (!other.defined()) return;
  if (scope && scope->kind == Copies::Kind::shared) {
    quantized_ = other.quantized_;
    return;
  }
  const auto made = [&other] { return is_cell(other) ? clone_cell(other) : copy(other).eval(); };
  if (scope) {
    Array& known = scope->cells[other.node().get()];
    if (!known.defined()) known = made();
    Array::operator=(known);
  } else {
    Array::operator=(made());
  }
  if (other.quantized_) quantized_ = other.quantized_->of_copy(other, *this);
}

Parameter& Parameter::operator=(const Parameter& other) & {
  if (this != &other) *this = Parameter(other);
  return *this;
}

Adapter::Adapter(const Adapter& other) : shared_ptr(other) {
  Copies::State* const scope = Copies::current;
  if (!other || (scope && scope->kind == Copies::Kind::shared)) return;
  if (!scope) {
    shared_ptr::operator=(std::make_shared<Lora>(*other));
    return;
  }
  std::shared_ptr<Lora>& known = scope->adapters[other.get()];
  if (!known) known = std::make_shared<Lora>(*other);
  shared_ptr::operator=(known);
}

Adapter& Adapter::operator=(const Adapter& other) & {
  if (this != &other) *this = Adapter(other);
  return *this;
}

Module::Module(const Module& other) {
  take_modes(other);
  if (!Copies::current) require_untied(other);
}

Module::Module(Module&& other) noexcept { take_modes(other); }

Module& Module::operator=(Module&& other) noexcept {
  take_modes(other);
  return *this;
}

void Module::take_modes(const Module& other) {
  training_ = other.training_;
  frozen_ = other.frozen_;
  frozen_parameters_ = other.frozen_parameters_;
  checkpointing_ = other.checkpointing_;
  layer_ = other.layer_.load();
  named_as_root_ = nullptr;
  root_ = nullptr;
}

Module& Module::operator=(const Module& other) {
  if (this == &other) return *this;
  if (!Copies::current) require_untied(other);
  take_modes(other);
  return *this;
}

void Visitor::projection(std::string_view name, const Array& /*weight*/, Adapter& adapter) {
  if (adapter) child(name, *adapter);
}

void Module::name_layers() {
  static std::mutex mutex;  // threads that call one module for the first time name it once
  const std::lock_guard lock(mutex);
  if (named_as_root_ == this) return;
  Walker([this](const std::string& path, Module& module) {
    if (!path.empty()) module.layer_ = Label(path + " " + module.kind());
    module.root_ = this;
  }).walk("", *this);
  named_as_root_ = this;
}

void Module::require_named_by(Module& root) {
  bool is_named = false;
  Walker([&](const std::string&, Module& module) { is_named = is_named || &module == this; }).walk("", root);
  if (is_named) {
    root_ = &root;
    return;
  }
  if (!is_grad_enabled() || !root.is_training() || parameters().empty()) return;
  throw ArgumentError(root.describe() + ": calls " + describe() +
                      ", which no visit() names, so it would never train; add visitor.child(\"name\", member) to the "
                      "visit() of its owner, or freeze() it if it must not train");
}

Array Module::forward(const Array& /*x*/) {
  throw ArgumentError(describe() + ": takes several inputs, got 1; call it with all of them: net(a, b)");
}

Array Module::forward_all(std::span<const Array> inputs) {
  if (inputs.size() == 1) return forward(inputs[0]);
  throw ArgumentError(describe() + ": takes one input, got " + std::to_string(inputs.size()) +
                      "; a module with several inputs overrides forward_all()");
}

Array Module::operator()(const Input& x) {
  return call([&] { return forward(x); });
}

Array Module::operator()(const Inputs& inputs) { return call_all(inputs); }

Array Module::call_all(std::span<const Array> inputs) {
  return call([&] { return forward_all(inputs); });
}

Array Module::call(const std::function<Array()>& body) {
  static thread_local Module* root = nullptr;  // the outermost module whose forward() this thread is in
  if (!root) {
    if (named_as_root_ != this) name_layers();
  } else if (root_ != root) {
    require_named_by(*root);
  }
  struct Level {
    explicit Level(Module& module) : is_outermost(!root) {
      if (is_outermost) root = &module;
    }
    ~Level() {
      if (is_outermost) root = nullptr;
    }
    const bool is_outermost;
  } const level(*this);
  const ProfileScope scope(layer_.load());
  Array y = body();
  if (Trace* trace = Trace::current()) trace->record(*this, y.shape());
  return y;
}

const std::vector<NamedArray> Module::state() const {
  // visit() passes children as non-const for visitors that change them; collecting changes nothing.
  return Collector(const_cast<Module&>(*this)).take();
}

const std::vector<NamedArray> Module::named_parameters() const {
  std::vector<NamedArray> result = state();
  std::erase_if(result, [](const NamedArray& entry) { return entry.is_buffer; });
  return result;
}

const std::vector<NamedArray> Module::named_buffers() const {
  std::vector<NamedArray> result = state();
  std::erase_if(result, [](const NamedArray& entry) { return !entry.is_buffer; });
  return result;
}

const std::vector<Array> Module::parameters() const {
  std::vector<Array> result;
  std::unordered_set<const void*> seen;
  for (const NamedArray& entry : state())
    if (!entry.is_buffer && !entry.is_frozen && seen.insert(entry.array.node().get()).second)
      result.push_back(entry.array);
  return result;
}

std::int64_t Module::parameter_count() const {
  return count_numbers(*this, [](const NamedArray&) { return true; });
}

std::int64_t Module::trainable_parameter_count() const {
  return count_numbers(*this, [](const NamedArray& entry) { return !entry.is_frozen; });
}

std::vector<Module::NamedModule> Module::modules() {
  std::vector<NamedModule> result;
  Walker([&](const std::string& path, Module& module) { result.push_back({path, &module}); }).walk("", *this);
  return result;
}

void Module::train(bool on) {
  Walker([on](const std::string&, Module& module) { module.training_ = on; }).walk("", *this);
}

void Module::gradient_checkpointing(const Checkpointing& how) {
  // Stops at stacks, so that stacks inside their blocks stay unchanged.
  class Divider final : public Visitor {
   public:
    explicit Divider(const Checkpointing& how) : how_(how) {}
    void parameter(std::string_view, const Parameter&, Layout) override {}
    void buffer(std::string_view, const Buffer&) override {}
    void child(std::string_view, Module& module) override { enter(module); }
    void enter(Module& module) {
      if (!module.is_stack()) return module.visit(*this);
      module.checkpointing_ = how_;
      found_ = true;
    }
    bool found() const { return found_; }

   private:
    Checkpointing how_;
    bool found_ = false;
  } divider(how);
  divider.enter(*this);
  if (!divider.found())
    throw ArgumentError("gradient_checkpointing: " + describe() + " has no stack of blocks that could be divided");
}

void Module::run_blocks(std::size_t count, const std::function<void(std::size_t)>& block) const {
  const std::size_t length =
      is_checkpointed() ? static_cast<std::size_t>(checkpointing_.length(static_cast<std::int64_t>(count))) : 0;
  for (std::size_t i = 0; i < count;) {
    if (length == 0) {
      block(i++);
      continue;
    }
    const CheckpointScope segment;
    for (const std::size_t end = std::min(count, i + length); i < end; ++i) block(i);
  }
}

bool Module::is_training() const { return training_ && !Trace::current(); }

void Module::freeze(bool on) {
  Walker([on](const std::string&, Module& module) {
    module.frozen_ = on;
    if (!on) module.frozen_parameters_.clear();
  }).walk("", *this);
}

}  // namespace samebytes::nn

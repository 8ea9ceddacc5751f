#include "graph/context.h"

#include "graph/node.h"
#include "graph/op.h"
#include "samebytes/autograd.h"
#include "samebytes/error.h"

namespace samebytes {

namespace detail {

thread_local bool grad_enabled = true;
thread_local bool keeps_statistics = false;
thread_local const BatchNormFunction* batch_norm_function = nullptr;
thread_local Label current_layer;
thread_local bool is_in_reverse_pass = false;
thread_local int scope_device = 0;

void Context::check_alive(const char* what) const {
  process.check(what, "this engine was made");
  if (!alive.load(std::memory_order_acquire))
    throw ArgumentError(std::string(what) +
                        ": the engine of this array is gone; keep the engine alive as long as its arrays are used");
}

void Context::forget_finished() {
  const auto is_finished = [](const std::weak_ptr<Node>& weak) {
    const NodePtr node = weak.lock();
    return !node || node->has_value;
  };
  std::erase_if(waiting, is_finished);
  std::erase_if(small, is_finished);
}

Context::Context() = default;
Context::~Context() {
  if (process.is_here()) return;
  // Their destructors would wait for threads that exist only in the parent.
  static_cast<void>(evaluator.release());
  static_cast<void>(runtime.release());
}

ContextPtr current_context() { return Engine::current().context(); }
int current_device() { return scope_device; }
void set_current_device(int device) { scope_device = device; }

}  // namespace detail

NoGrad::NoGrad() : previous_(detail::grad_enabled) { detail::grad_enabled = false; }
NoGrad::~NoGrad() { detail::grad_enabled = previous_; }
bool is_grad_enabled() { return detail::grad_enabled; }

KeepStatistics::KeepStatistics() : previous_(detail::keeps_statistics) { detail::keeps_statistics = true; }
KeepStatistics::~KeepStatistics() { detail::keeps_statistics = previous_; }

BatchNormScope::BatchNormScope(BatchNormFunction function)
    : function_(std::move(function)), previous_(detail::batch_norm_function) {
  detail::batch_norm_function = &function_;
}
BatchNormScope::~BatchNormScope() { detail::batch_norm_function = previous_; }

DeviceScope::DeviceScope(int device) : previous_(detail::scope_device) {
  const int count = Engine::current().device_count();
  if (device < 0 || device >= count)
    throw ArgumentError("DeviceScope: the engine has " + std::to_string(count) + " device(s), device " +
                        std::to_string(device) + " was asked for");
  detail::scope_device = device;
}
DeviceScope::~DeviceScope() { detail::scope_device = previous_; }

RandomKey next_random_key(RandomDomain domain) {
  const auto context = detail::current_context();
  return {context->options.seed, context->random_counter.fetch_add(1), domain};
}

}  // namespace samebytes

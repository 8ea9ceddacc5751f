#include "graph/autocast.h"

#include <tuple>

#include "graph/context.h"
#include "graph/op.h"
#include "graph/working_copy.h"
#include "runtime/kernels.h"
#include "samebytes/autograd.h"
#include "samebytes/ops.h"

namespace samebytes {

namespace {

std::shared_ptr<const AutocastPolicy> policy_of_engine() {
  static const auto built_in = std::make_shared<const AutocastPolicy>();
  const detail::ContextPtr context = detail::current_context();
  const std::lock_guard lock(context->mutex);
  return context->autocast ? context->autocast : built_in;
}

constexpr std::size_t kMostKept = 1024;  // remembered cast nodes; beyond that, drop those that no longer exist

}  // namespace

struct Autocast::State {
  // Node, dtype, and whether gradients were enabled when the cast was made.
  using Key = std::tuple<std::uint64_t, Dtype, bool>;
  struct Kept {
    std::weak_ptr<detail::Node> cast;
    Array held;                 // of a cell that needs no gradient
    std::uint32_t version = 0;  // of the cell
  };

  bool enabled = true;
  Dtype dtype = bf16;
  std::shared_ptr<const AutocastPolicy> policy;
  std::map<Key, Kept> kept;
  std::int64_t casts = 0;

  Array cast(const Array& a, Dtype to);
};

namespace detail {
namespace {

// The rules of the op files, which register themselves before main() or when a library is loaded.
std::map<std::string, CastRule, std::less<>>& built_in_rules() {
  static std::map<std::string, CastRule, std::less<>> rules;
  return rules;
}

thread_local Autocast::State* open_scope = nullptr;

}  // namespace

bool casts_here() { return open_scope != nullptr && open_scope->enabled; }

NoCasts::NoCasts() : outer_(open_scope) { open_scope = nullptr; }
NoCasts::~NoCasts() { open_scope = outer_; }

CastRow::CastRow(const char* function, CastRule rule) : function_(function), rule_(rule) {
  built_in_rules().emplace(function, rule);
}

Casts::Casts(const CastRow& row) {
  Autocast::State* scope = open_scope;
  if (scope == nullptr || !scope->enabled) return;
  const auto& rules = scope->policy->table();
  const auto found = rules.find(row.function());
  rule_ = found == rules.end() ? row.rule() : found->second;  // a row may have registered after the policy was made
  if (rule_ == CastRule::as_given) return;
  state_ = scope;
  open_scope = nullptr;
}

Casts::~Casts() {
  if (state_ != nullptr) open_scope = state_;
}

Array Casts::operator()(const Array& a) const {
  if (!a.defined() || (a.dtype() != f32 && !detail::is_16_bit(a.dtype()))) return a;
  if (rule_ == CastRule::lower) return state_->cast(a, state_->dtype);
  return rule_ == CastRule::keep_f32 ? state_->cast(a, f32) : a;
}

std::vector<Array> Casts::operator()(std::span<const Array> arrays) const {
  std::vector<Array> result(arrays.begin(), arrays.end());
  if (rule_ != CastRule::widest) {
    for (Array& a : result) a = (*this)(a);
    return result;
  }
  std::optional<Dtype> widest;
  for (const Array& a : result) {
    if (!a.defined() || !is_floating(a.dtype())) return result;
    if (!widest || *widest == a.dtype())
      widest = a.dtype();
    else
      widest = *widest == f64 || a.dtype() == f64 ? f64 : f32;
  }
  for (Array& a : result)
    if (a.dtype() != *widest) a = state_->cast(a, *widest);
  return result;
}

}  // namespace detail

Array Autocast::State::cast(const Array& a, Dtype to) {
  if (a.dtype() == to) return a;
  const detail::Node& node = *a.node();
  if (Array copy = detail::current_working_copy(a, to); copy.defined()) return copy;
  const std::uint32_t version = node.base().version.load();
  Kept& place = kept[{node.id, to, is_grad_enabled()}];
  if (detail::NodePtr made = place.cast.lock(); made && place.version == version) return Array(std::move(made));
  Array made = astype(a, to);
  ++casts;
  place = {made.node(), node.cell && !is_grad_enabled() ? made : Array(), version};
  if (kept.size() > kMostKept) std::erase_if(kept, [](const auto& entry) { return entry.second.cast.expired(); });
  return made;
}

Autocast::Autocast(const AutocastOptions& options) : state_(std::make_unique<State>()), outer_(detail::open_scope) {
  if (!detail::is_16_bit(options.dtype))
    throw ArgumentError("Autocast: the dtype must be f16 or bf16, got " + std::string(name_of(options.dtype)));
  state_->enabled = options.enabled;
  state_->dtype = options.dtype;
  state_->policy = options.policy ? std::make_shared<const AutocastPolicy>(*options.policy) : policy_of_engine();
  detail::open_scope = state_.get();
}

Autocast::~Autocast() { detail::open_scope = outer_; }

std::int64_t Autocast::casts() const { return state_->casts; }

std::optional<Dtype> autocast_dtype() {
  const Autocast::State* scope = detail::open_scope;
  return scope != nullptr && scope->enabled ? std::optional(scope->dtype) : std::nullopt;
}

std::string_view name_of(CastRule rule) {
  switch (rule) {
    case CastRule::lower: return "lower";
    case CastRule::keep_f32: return "keep_f32";
    case CastRule::widest: return "widest";
    case CastRule::as_given: return "as_given";
  }
  return "";
}

AutocastPolicy::AutocastPolicy() : rules_(detail::built_in_rules()) {}

namespace {

[[noreturn]] void throw_unknown(std::string_view op, const std::map<std::string, CastRule, std::less<>>& rules) {
  std::string names;
  for (const auto& [name, rule] : rules) names += (names.empty() ? "" : ", ") + name;
  throw ArgumentError("AutocastPolicy: there is no rule for " + std::string(op) + "; there are rules for " + names);
}

}  // namespace

CastRule AutocastPolicy::rule(std::string_view op) const {
  const auto found = rules_.find(op);
  if (found == rules_.end()) throw_unknown(op, rules_);
  return found->second;
}

AutocastPolicy& AutocastPolicy::set(std::string_view op, CastRule rule) {
  const auto found = rules_.find(op);
  if (found == rules_.end()) throw_unknown(op, rules_);
  found->second = rule;
  return *this;
}

AutocastPolicy autocast_policy() { return *policy_of_engine(); }

void set_autocast_policy(const AutocastPolicy& policy) {
  const detail::ContextPtr context = detail::current_context();
  const std::lock_guard lock(context->mutex);
  context->autocast = std::make_shared<const AutocastPolicy>(policy);
}

}  // namespace samebytes

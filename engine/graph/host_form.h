// Host form: what the host does instead of one launch, over the same bytes and with the same result, bit by bit. Ops
// give one to launches that may be small (KernelCall::on_host); the planner moves whole runs of such launches where
// that is faster (plan/host_cost.h).
#pragma once

#include <functional>

namespace samebytes::detail {

// How much of it there is, in the units of HostCosts.
struct HostWork {
  double steps = 1;     // passes over a few values, each with its own beginning
  double values = 0;    // values made or combined
  double products = 0;  // multiply-adds of a matrix product
};

// arrays: one pointer for each array argument of the launch, in their order, null where it is absent; scalars: its
// changing scalars, in their order, whole numbers by their bits (std::bit_cast). Must not throw, allocate or wait.
using HostFunction = std::function<void(void* const* arrays, const double* scalars)>;

struct HostForm {
  HostFunction run;
  HostWork work;
};

}  // namespace samebytes::detail

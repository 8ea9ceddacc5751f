// Host form: computes on the host what one launch computes, on the same bytes and with the same result, bit by bit. Ops
// provide one for launches that may be small (KernelCall::on_host); the planner moves whole runs of such launches to
// the host if that is faster (plan/host_cost.h).
#pragma once

#include <functional>

namespace samebytes::detail {

// The amount of work, in the units of HostCosts.
struct HostWork {
  double steps = 1;     // passes over a few values, each with a fixed start-up cost
  double values = 0;    // values made or combined
  double products = 0;  // multiply-adds of a matrix product
};

// arrays: one pointer for each array argument of the launch, in order, null if absent; scalars: its changing scalars,
// in order, integers as their bits (std::bit_cast). Must not throw, allocate or wait.
using HostFunction = std::function<void(void* const* arrays, const double* scalars)>;

struct HostForm {
  HostFunction run;
  HostWork work;
};

}  // namespace samebytes::detail

// Host form: computes on the host what one launch computes, on the same bytes and with the same result, bit by bit. Ops
// provide one for launches that may be small (KernelCall::on_host); the planner moves whole runs of such launches to
// the host if that is faster (plan/host_cost.h).
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

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

// The same of the units [begin, end) of a launch. Units write different bytes and read none that others write, so that
// several threads may do them, in any order.
using HostUnits = std::function<void(void* const* arrays, const double* scalars, std::int64_t begin, std::int64_t end)>;

struct HostForm {
  HostForm(HostFunction all, const HostWork& amount) : run(std::move(all)), work(amount) {}
  HostForm(std::int64_t count, HostUnits some, const HostWork& amount)
      : run([some, count](void* const* arrays, const double* scalars) { some(arrays, scalars, 0, count); }),
        work(amount),
        units(count),
        run_units(std::move(some)) {}

  HostFunction run;
  HostWork work;
  std::int64_t units = 1;
  HostUnits run_units;  // null: the launch is one unit
};

}  // namespace samebytes::detail

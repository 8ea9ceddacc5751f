// The host form of a generated pointwise kernel, made from the same expressions.
#pragma once

#include <memory>
#include <span>

#include "graph/host_form.h"
#include "plan/pointwise_kernel.h"

namespace samebytes::detail {

// Null if the host cannot promise the same bytes (the driver's functions such as exp, 16-bit values) or if there are
// too many elements. members and outputs are those that write_pointwise_kernel got to make `kernel`; both are empty for
// a copy or fill.
std::shared_ptr<const HostForm> host_form_of(const PointwiseKernel& kernel, std::span<const Node* const> members,
                                             const Device& device);

}  // namespace samebytes::detail

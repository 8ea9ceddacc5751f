// What the files on oneDNN share: one engine and stream, arrays in our layout, and a primitive with its arguments.
#pragma once

#ifdef SAMEBYTES_HAS_ONEDNN
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "native/peer.h"

namespace samebytes::benchmarks::onednn {

using dnnl::memory;
using Arguments = std::unordered_map<int, memory>;

dnnl::engine& cpu();
dnnl::stream& stream();

memory::desc plain(const memory::dims& dims, memory::format_tag tag);
memory::desc any(const memory::dims& dims);
// A copy of `values`, which are dense as `ours` says, laid out as `wanted`.
memory placed(const std::vector<float>& values, const memory::desc& ours, const memory::desc& wanted);
memory uninitialised(const memory::desc& desc);
void run(const dnnl::primitive& primitive, const Arguments& arguments);
// A peer whose result is the argument `dst`, brought into the layout `ours` for the comparison only.
Peer peer(dnnl::primitive primitive, Arguments arguments, int dst, const memory::desc& ours);

}  // namespace samebytes::benchmarks::onednn
#endif

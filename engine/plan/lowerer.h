// Lowerer: the state of the pass lower() (lower.h). lower.cpp handles groups and packs, lower_op.cpp ops with their own
// launches, launch_writer.cpp the arguments of a launch.
#pragma once

#include <utility>
#include <vector>

#include "plan/lower.h"
#include "plan/pointwise_kernel.h"

namespace samebytes::detail {

// A buffer and the element at which a value begins in it.
using BufferPlace = std::pair<int, std::int64_t>;
Extent extent_of(const Node& n);  // the elements of its base that a node shows

// The part of a group that runs on a segment of a flat gradient.
struct Window {
  const Node* pack = nullptr;
  int buffer = -1;         // of the segment
  std::int64_t begin = 0;  // elements
};

// Adds launches to a Lowered, and arguments to its last launch.
class LaunchWriter {
 public:
  LaunchWriter(PlacedValues placed, Runtime& runtime) : runtime_(runtime) { lowered_.placed = std::move(placed); }
  Lowered take() { return std::move(lowered_); }
  Lowered& lowered() { return lowered_; }

  PlanBuffer& buffer(int index) { return lowered_.placed.buffers[static_cast<std::size_t>(index)]; }
  int buffer_of(const Node& n) const { return lowered_.placed.buffer_of[static_cast<std::size_t>(n.place)]; }
  BufferPlace source(const Node& n) const { return {buffer_of(n), n.is_view ? n.offset : 0}; }
  int add_buffer(const Shape& shape, Dtype dtype, const Node& n);  // a temporary

  int launch_count() const { return static_cast<int>(lowered_.launches.size()); }
  PlanLaunch& add_launch(const Node& n, std::string what, const std::string& kernel);
  void add_array(const BufferPlace& at, bool writes, Extent extent = kWhole);
  void add_operand(Operand operand, const BufferPlace& at, bool writes, Extent extent);  // of a call
  void add_constant(KernelArgument::Kind kind, std::int64_t integer, double real,
                    std::vector<unsigned char> bytes = {});
  void add_scalar(PlanArgument::Kind kind, int place, int scalar);

 private:
  int next_index() const;
  void touch(int buffer);
  PlanLaunch& last() { return lowered_.launches.back(); }
  std::vector<PlanArgument>& arguments() { return last().kernel()->arguments; }

  Runtime& runtime_;
  Lowered lowered_;
};

class Lowerer {
 public:
  Lowerer(const GraphList& list, const Grouping& grouping, PlacedValues placed, Context& context, KernelMaker& kernels)
      : list_(list),
        grouping_(grouping),
        context_(context),
        kernels_(kernels),
        writer_(std::move(placed), *context.runtime),
        relayouts_(list.nodes.size(), -1) {}
  Lowered run();

 private:
  int count() const { return static_cast<int>(list_.nodes.size()); }
  const Node& node(int place) const { return *list_.nodes[static_cast<std::size_t>(place)]; }
  Device& device_of(const Node& n) { return context_.runtime->device(n.device); }

  // lower.cpp
  void lower_node(int place);
  void lower_group(const std::vector<int>& places, const Window& window = {}, std::int64_t elements = 0);
  void lower_again(const FuseResult::Again& again);
  void lower_segment(const GradientRelease& release, std::size_t segment);
  void lower_parts(const Node& pack, int whole, const GradientSegment& range);
  struct Written {  // what a generated kernel computes
    const Node& node;
    std::string what;
    std::span<const Node* const> members = {};
    BufferPlace dst = {-1, 0};  // of a kernel without outputs
    Window window = {};
  };
  void add_pointwise(const PointwiseKernel& kernel, const Written& written);
  int relayout(const Node& view);

  // lower_op.cpp
  struct OpBuffers {
    std::vector<BufferPlace> src;
    std::vector<Extent> extents;  // same order
    std::vector<Shape> shapes;    // of the op's own results
    std::vector<Dtype> dtypes;    // same order
    std::vector<int> dst, temps;
    int gradient = -1;  // place of the node whose results the launch also makes
    BufferPlace resolve(Operand operand) const;
    Extent extent_in(Operand operand) const;
  };
  void lower_op(int place);
  OpBuffers buffers_of(int place);
  void set_extras(Launch& run, int place, const OpBuffers& at);
  void note_in_place(const Node& n, Launch& run, const OpBuffers& at);
  void note_gradient_in_place(const Node& loss, Launch& run, const OpBuffers& at);
  void add_record(const Node& n, LaunchRecord& record, const OpBuffers& at);
  void add_call(LaunchRecord& record, const OpBuffers& at);
  void add_arguments(const Node& n, const LaunchRecord& record, const OpBuffers& at);

  const GraphList& list_;
  const Grouping& grouping_;
  Context& context_;
  KernelMaker& kernels_;
  LaunchWriter writer_;
  std::vector<int> relayouts_;  // by place of a view: the buffer of its dense copy
};

}  // namespace samebytes::detail

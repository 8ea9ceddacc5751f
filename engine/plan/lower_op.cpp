#include <algorithm>

#include "graph/op.h"
#include "plan/host_kernel.h"
#include "plan/launch_info.h"
#include "plan/lowerer.h"

namespace samebytes::detail {
namespace {

// Elements that the launch works on: as many as its largest array has, if it does not say.
std::int64_t most_values(const Launch& run, std::span<const Shape> results, const LaunchRecord& record) {
  if (record.worked_on > 0) return record.worked_on;
  std::int64_t most = 0;
  for (const KernelArgument& argument : record.arguments) {
    const auto index = static_cast<std::size_t>(argument.operand.index);
    if (argument.kind != KernelArgument::Kind::array) continue;
    if (argument.operand.kind == Operand::Kind::src && argument.operand.index < run.src_count())
      most = std::max(most, run.src_shape(argument.operand.index).size());
    if (argument.operand.kind == Operand::Kind::dst && index < results.size())
      most = std::max(most, results[index].size());
    if (argument.operand.kind == Operand::Kind::temp) {
      const Launch::Temp& temp = run.temps()[index];
      most = std::max(most, static_cast<std::int64_t>(temp.bytes / bytes_of(temp.dtype)));
    }
  }
  return most;
}

}  // namespace

void Lowerer::lower_op(int place) {
  const Node& n = node(place);
  OpBuffers at = buffers_of(place);
  Device& device = device_of(n);
  Launch run(n, device, at.shapes, at.dtypes);
  set_extras(run, place, at);
  const bool is_launched =
      kernels_.run({.op = std::string(n.op->name()), .places = {place}, .device = device}, [&] { n.op->launch(run); });
  if (!is_launched) return;
  for (const Launch::Temp& temp : run.temps())
    at.temps.push_back(
        writer_.add_buffer(Shape{static_cast<std::int64_t>(temp.bytes / bytes_of(temp.dtype))}, temp.dtype, n));
  note_gradient_in_place(n, run, at);
  note_in_place(n, run, at);
  Cost cost = cost_of(n);
  if (at.gradient >= 0 && !node(at.gradient).results.empty()) cost.flops += cost_of(node(at.gradient)).flops;
  bool has_main = false;  // an op's second launch sums up the first one's partial results
  for (LaunchRecord& record : run.records()) {
    const bool is_main = !has_main && !record.is_preparation;
    if (!record.on_host)
      record.on_host =
          host_kernel_form(record, device, most_values(run, at.shapes, record), is_main ? cost.flops / 2 : 0);
    add_record(n, record, at);
    if (!is_main) continue;
    has_main = true;
    LaunchInfo& info = *writer_.lowered().launches.back().info;
    info.flops = cost.flops;
    info.bytes = cost.bytes;
  }
}

// The op's inputs and results, followed by the operands of an epilogue and of a gradient.
Lowerer::OpBuffers Lowerer::buffers_of(int place) {
  const Node& n = node(place);
  OpBuffers at;
  const auto add_source = [&](const Node& input) {
    at.src.push_back(writer_.source(input));
    at.extents.push_back(extent_of(input));
  };
  for (std::size_t i = 0; i < n.inputs.size(); ++i) {
    const Node& input = *n.inputs[i].node;
    if (input.is_view && !input.is_dense() && !n.op->traits().takes_strides(static_cast<int>(i))) {
      at.src.emplace_back(relayout(input), 0);
      at.extents.push_back(kWhole);
    } else {
      add_source(input);
    }
  }
  const AppendedEpilogue& epilogue = grouping_.epilogues.of[place];
  if (epilogue.residual >= 0) add_source(node(epilogue.residual));
  if (epilogue.gate >= 0) add_source(node(epilogue.gate));
  const PlacedValues& placed = writer_.lowered().placed;
  if (n.results.empty()) {
    at.shapes.push_back(n.shape);
    at.dtypes.push_back(n.dtype);
    at.dst.push_back(placed.buffer_of[epilogue.result >= 0 ? epilogue.result : place]);
  } else {
    for (const auto& [shape, dtype] : n.results) {
      at.shapes.push_back(shape);
      at.dtypes.push_back(dtype);
    }
    at.dst = placed.results[place];
  }
  at.gradient = grouping_.loss_gradients.gradient[place];
  if (at.gradient >= 0) {
    const Node& gradient = node(at.gradient);
    add_source(*gradient.inputs[0].node);
    if (gradient.results.empty()) at.dst.push_back(writer_.buffer_of(gradient));
    const std::vector<int>& results = placed.results[at.gradient];
    at.dst.insert(at.dst.end(), results.begin(), results.end());
  }
  return at;
}

void Lowerer::set_extras(Launch& run, int place, const OpBuffers& at) {
  const AppendedEpilogue& epilogue = grouping_.epilogues.of[place];
  if (epilogue.result >= 0) {
    const int gate = run.src_count() + (epilogue.residual >= 0 ? 1 : 0);
    run.set_epilogue({epilogue.residual >= 0 ? run.src(run.src_count()) : Launch::none(), epilogue.relu,
                      epilogue.gate >= 0 ? run.src(gate) : Launch::none(), epilogue.hard_swish, epilogue.relu6});
  }
  if (at.gradient >= 0)
    run.set_gradient({run.src(run.src_count()), run.dst(static_cast<int>(at.shapes.size())), &node(at.gradient)});
}

void Lowerer::note_in_place(const Node& n, Launch& run, const OpBuffers& at) {
  for (std::size_t k = 0; k < at.shapes.size(); ++k) {
    const int over = n.op->traits().may_overwrite(static_cast<int>(k));
    if (over < 0 || over >= static_cast<int>(n.inputs.size())) continue;
    const auto [input, offset] = at.src[static_cast<std::size_t>(over)];
    if (input < 0 || at.dst[k] < 0 || offset != 0) continue;
    writer_.lowered().pairs.push_back({writer_.launch_count() + static_cast<int>(run.records().size()) - 1, input,
                                       at.dst[k], !run.records().empty() && run.records().back().host_call != nullptr});
  }
}

// The gradient that a loss makes may overwrite the input that its own op names, if nothing else reads that input.
void Lowerer::note_gradient_in_place(const Node& loss, Launch& run, const OpBuffers& at) {
  if (at.gradient < 0) return;
  const Node& gradient = node(at.gradient);
  const int over = gradient.op->traits().may_overwrite(0);
  if (over < 0) return;
  const Node* const input = gradient.inputs[static_cast<std::size_t>(over)].node.get();
  for (std::size_t i = 0; i < loss.inputs.size(); ++i) {
    const auto [buffer, offset] = at.src[i];
    if (loss.inputs[i].node.get() != input || buffer < 0 || offset != 0) continue;
    if (std::count_if(at.src.begin(), at.src.end(), [b = buffer](const auto& s) { return s.first == b; }) > 1) return;
    for (int k = 0; k < static_cast<int>(run.records().size()); ++k)  // whichever reads it last
      writer_.lowered().pairs.push_back({writer_.launch_count() + k, buffer, writer_.buffer_of(gradient)});
  }
}

void Lowerer::add_record(const Node& n, LaunchRecord& record, const OpBuffers& at) {
  Device& device = device_of(n);
  PlanLaunch& launch = writer_.add_launch(n, record.what,
                                          record.queue_call  ? "library"
                                          : record.host_call ? "host"
                                                             : record.entry);
  if (device.runs_host_functions()) launch.host_form = std::move(record.on_host);
  std::vector<int> places = {n.place};
  if (at.gradient >= 0) places.push_back(at.gradient);
  if (record.queue_call)
    kernels_.is_refused({.op = record.what,
                         .places = places,
                         .device = device,
                         .real = record.real,
                         .geometry = record.geometry,
                         .text = "library"},
                        &launch.kernel_key);
  if (record.queue_call || record.host_call) {
    add_call(record, at);
    return;
  }
  launch.kernel()->real = record.real;
  launch.kernel()->geometry = record.geometry;
  add_arguments(n, record, at);
  writer_.lowered().op_kernels.push_back(
      {writer_.lowered().launches.size() - 1, record.what, record.entry, record.source, std::move(places)});
}

BufferPlace Lowerer::OpBuffers::resolve(Operand operand) const {
  const auto index = static_cast<std::size_t>(operand.index);
  switch (operand.kind) {
    case Operand::Kind::src: return {src[index].first, src[index].second + operand.offset};
    case Operand::Kind::dst: return {dst[index], operand.offset};
    case Operand::Kind::temp: return {temps[index], operand.offset};
    case Operand::Kind::none: break;
  }
  return {-1, 0};
}

Extent Lowerer::OpBuffers::extent_in(Operand operand) const {
  return operand.kind == Operand::Kind::src ? extents[static_cast<std::size_t>(operand.index)] : kWhole;
}

void Lowerer::add_call(LaunchRecord& record, const OpBuffers& at) {
  PlanLaunch& launch = writer_.lowered().launches.back();
  if (record.queue_call)
    launch.work = PlanLibraryCall{std::move(record.queue_call)};
  else
    launch.work = PlanHostCall{std::move(record.host_call), record.waits, std::move(record.when_unfinished)};
  for (const Operand& operand : record.call_reads)
    writer_.add_operand(operand, at.resolve(operand), false, at.extent_in(operand));
  for (const Operand& operand : record.call_writes)
    writer_.add_operand(operand, at.resolve(operand), true, at.extent_in(operand));
}

void Lowerer::add_arguments(const Node& n, const LaunchRecord& record, const OpBuffers& at) {
  for (const KernelArgument& argument : record.arguments) {
    switch (argument.kind) {
      case KernelArgument::Kind::array:
        writer_.add_array(at.resolve(argument.operand), argument.operand.kind != Operand::Kind::src,
                          at.extent_in(argument.operand));
        break;
      case KernelArgument::Kind::dynamic_real:
        writer_.add_scalar(PlanArgument::Kind::scalar_real, n.place, argument.scalar);
        break;
      case KernelArgument::Kind::dynamic_bits:
        writer_.add_scalar(PlanArgument::Kind::scalar_bits, n.place, argument.scalar);
        break;
      default: writer_.add_constant(argument.kind, argument.integer, argument.real, argument.bytes);
    }
  }
}

}  // namespace samebytes::detail

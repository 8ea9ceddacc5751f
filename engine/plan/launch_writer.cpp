#include "plan/launch_info.h"
#include "plan/lowerer.h"

namespace samebytes::detail {

Extent extent_of(const Node& n) {
  if (!n.is_view) return kWhole;
  std::int64_t last = n.offset;
  for (int axis = 0; axis < n.shape.rank(); ++axis) {
    if (n.strides[axis] < 0) return kWhole;
    last += (n.shape[axis] - 1) * n.strides[axis];
  }
  return {n.offset, last + 1};
}

int LaunchWriter::add_buffer(const Shape& shape, Dtype dtype, const Node& n) {
  return lowered_.placed.add(PlanBuffer::Kind::arena, shape, dtype, n.place, n.device, runtime_);
}

PlanLaunch& LaunchWriter::add_launch(const Node& n, std::string what, const std::string& kernel) {
  PlanLaunch& launch = lowered_.launches.emplace_back();
  launch.info = info_of_launch(n, what, kernel);
  launch.what = std::move(what);
  launch.device = n.device;
  launch.node = n.place;
  return launch;
}

void LaunchWriter::add_array(const BufferPlace& at, bool writes, Extent extent) {
  const auto& [index, offset] = at;
  if (index < 0 || buffer(index).kind == PlanBuffer::Kind::empty) {
    arguments().push_back({PlanArgument::Kind::null_array, next_index()});
    return;
  }
  PlanArgument argument{PlanArgument::Kind::array, next_index()};
  argument.buffer = index;
  argument.offset = offset;
  argument.writes = writes;
  arguments().push_back(argument);
  add_operand(Operand{}, at, writes, extent);
}

void LaunchWriter::add_operand(Operand operand, const BufferPlace& at, bool writes, Extent extent) {
  last().operands.push_back({operand, at.first, at.second, writes, extent});
  touch(at.first);
}

void LaunchWriter::add_constant(KernelArgument::Kind kind, std::int64_t integer, double real,
                                std::vector<unsigned char> bytes) {
  const int index = next_index();
  arguments().push_back({PlanArgument::Kind::value, index});
  lowered_.constants.push_back({lowered_.launches.size() - 1, index, kind, integer, real, std::move(bytes)});
}

void LaunchWriter::add_scalar(PlanArgument::Kind kind, int place, int scalar) {
  PlanArgument argument{kind, next_index()};
  argument.node = place;
  argument.scalar = scalar;
  arguments().push_back(argument);
}

int LaunchWriter::next_index() const {
  const std::vector<PlanArgument>& all = lowered_.launches.back().kernel()->arguments;
  if (all.empty()) return 0;
  const PlanArgument& before = all.back();
  const bool pair = before.kind == PlanArgument::Kind::array || before.kind == PlanArgument::Kind::null_array;
  return before.index + (pair ? 2 : 1);
}

void LaunchWriter::touch(int index) {
  if (index < 0) return;
  PlanBuffer& b = buffer(index);
  const int now = launch_count() - 1;
  if (b.first < 0) b.first = now;
  b.last = now;
  b.devices |= std::uint64_t{1} << last().device;
  if (b.kind == PlanBuffer::Kind::part) touch(b.parent);
}

}  // namespace samebytes::detail

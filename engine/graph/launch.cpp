#include "graph/launch.h"

#include <algorithm>
#include <utility>

namespace samebytes::detail {

namespace {
constexpr std::int64_t kLeastElementsPerGroup = 1024;  // a smaller share does not pay for starting a group
}  // namespace

void KernelCall::add(Operand operand) { record_.arguments.push_back({KernelArgument::Kind::array, operand}); }
void KernelCall::add(int v) { record_.arguments.push_back({KernelArgument::Kind::i32, {}, v}); }
void KernelCall::add(std::int64_t v) { record_.arguments.push_back({KernelArgument::Kind::i64, {}, v}); }
void KernelCall::add(double v) { record_.arguments.push_back({KernelArgument::Kind::real, {}, 0, v}); }
void KernelCall::add(DynamicReal v) {
  record_.arguments.push_back({KernelArgument::Kind::dynamic_real, {}, 0, 0, v.index});
}
void KernelCall::add(DynamicBits v) {
  record_.arguments.push_back({KernelArgument::Kind::dynamic_bits, {}, 0, 0, v.index});
}
void KernelCall::add_structure(const void* bytes, std::size_t size) {
  KernelArgument argument{KernelArgument::Kind::structure, {}};
  const auto* first = static_cast<const unsigned char*>(bytes);
  argument.bytes.assign(first, first + size);
  record_.arguments.push_back(std::move(argument));
}

KernelCall& KernelCall::over_rows(std::int64_t rows, int group) {
  record_.geometry = {};
  record_.geometry.groups[0] = static_cast<std::size_t>(rows);
  if (device_.personality() == Personality::gpu) record_.geometry.local[0] = static_cast<std::size_t>(group);
  return *this;
}

Geometry geometry_over_elements(const Device& device, std::int64_t n) {
  Geometry geometry;
  if (device.personality() == Personality::cpu) {
    const std::int64_t most = device.info().cores * kGroupsPerCore;
    const std::int64_t groups =
        std::clamp<std::int64_t>((n + kLeastElementsPerGroup - 1) / kLeastElementsPerGroup, 1, most);
    geometry.groups[0] = static_cast<std::size_t>(groups);
  } else {
    geometry.local[0] = kGpuGroup;
    geometry.groups[0] = static_cast<std::size_t>(std::max<std::int64_t>(1, (n + kGpuGroup - 1) / kGpuGroup));
  }
  return geometry;
}

KernelCall& KernelCall::over_elements(std::int64_t n) {
  record_.geometry = geometry_over_elements(device_, n);
  return *this;
}

KernelCall& KernelCall::over_items(std::int64_t n) {
  record_.geometry = {};
  record_.geometry.groups[0] = static_cast<std::size_t>(n);
  return *this;
}

KernelCall& KernelCall::works_on(std::int64_t elements) {
  record_.worked_on = elements;
  return *this;
}

KernelCall& KernelCall::prepares() {
  record_.is_preparation = true;
  return *this;
}

KernelCall& KernelCall::on_host(const HostWork& work, HostFunction run) {
  record_.on_host = std::make_shared<const HostForm>(std::move(run), work);
  return *this;
}
KernelCall& KernelCall::on_host(const HostWork& work, std::int64_t units, HostUnits run) {
  record_.on_host = std::make_shared<const HostForm>(units, std::move(run), work);
  return *this;
}

KernelCall& KernelCall::over_tiles(std::int64_t x, std::int64_t y, std::int64_t z, int local_x, int local_y) {
  Geometry& g = record_.geometry;
  g = {};
  g.dimensions = z > 1 ? 3 : y > 1 || local_y > 1 ? 2 : 1;
  g.groups[0] = static_cast<std::size_t>(x);
  g.groups[1] = static_cast<std::size_t>(y);
  g.groups[2] = static_cast<std::size_t>(z);
  if (device_.personality() == Personality::gpu) {
    g.local[0] = static_cast<std::size_t>(local_x);
    g.local[1] = static_cast<std::size_t>(local_y);
  }
  return *this;
}

Launch::Launch(const Node& node, Device& device, std::span<const Shape> dst_shapes, std::span<const Dtype> dst_dtypes)
    : node_(node), device_(device), dst_shapes_(dst_shapes), dst_dtypes_(dst_dtypes) {}

Operand Launch::temp(std::int64_t elements, Dtype dtype) {
  temps_.push_back({static_cast<std::size_t>(elements) * bytes_of(dtype), dtype});
  return {Operand::Kind::temp, static_cast<int>(temps_.size()) - 1};
}

const Shape& Launch::src_shape(int i) const { return node_.inputs[static_cast<std::size_t>(i)].node->shape; }
Dtype Launch::src_dtype(int i) const { return node_.inputs[static_cast<std::size_t>(i)].node->dtype; }

Strides Launch::src_strides(int i) const {
  const Node& input = *node_.inputs[static_cast<std::size_t>(i)].node;
  return input.is_view && node_.op->traits().takes_strides(i) ? input.strides : dense_strides(input.shape);
}

std::int64_t Launch::constant(std::string_view stem, std::string_view name, Dtype real) const {
  return device_.kernels().constant(real, stem, name);
}

KernelCall Launch::kernel(std::string entry, Dtype dtype) {
  LaunchRecord& record = records_.emplace_back();
  record.entry = std::move(entry);
  record.what = std::string(node_.op->name());
  record.real = dtype;
  return KernelCall(record, device_);
}

KernelCall Launch::generated(std::string source, std::string entry, Dtype real, std::string what) {
  LaunchRecord& record = records_.emplace_back();
  record.source = std::move(source);
  record.entry = std::move(entry);
  record.what = std::move(what);
  record.real = real;
  return KernelCall(record, device_);
}

void Launch::queue_call(std::string what, std::vector<Operand> reads, std::vector<Operand> writes, QueueCall fn) {
  LaunchRecord& record = records_.emplace_back();
  record.what = std::move(what);
  record.call_reads = std::move(reads);
  record.call_writes = std::move(writes);
  record.queue_call = std::move(fn);
}

void Launch::host_call(std::string what, std::vector<Operand> reads, std::vector<Operand> writes, HostCall fn,
                       bool waits, std::function<void()> when_unfinished) {
  LaunchRecord& record = records_.emplace_back();
  record.what = std::move(what);
  record.call_reads = std::move(reads);
  record.call_writes = std::move(writes);
  record.host_call = std::move(fn);
  record.waits = waits;
  record.when_unfinished = std::move(when_unfinished);
}

}  // namespace samebytes::detail

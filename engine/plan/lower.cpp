#include "plan/lower.h"

#include <algorithm>

#include "graph/op.h"
#include "plan/host_pointwise.h"
#include "plan/launch_info.h"
#include "plan/lowerer.h"

namespace samebytes::detail {
namespace {

constexpr std::size_t kLongestName = 60;  // of a launch of several ops; longer names are cut

bool is_empty(const Node& n) {
  if (n.results.empty()) return n.shape.size() == 0;
  return std::all_of(n.results.begin(), n.results.end(), [](const auto& r) { return r.first.size() == 0; });
}

}  // namespace

Lowered Lowerer::run() {
  auto again = grouping_.fusion.again.begin();
  for (int i = 0; i < count(); ++i) {
    for (; again != grouping_.fusion.again.end() && again->before == i; ++again) lower_again(*again);
    lower_node(i);
    for (const GradientRelease& release : grouping_.releases)
      for (std::size_t s = 0; s < release.segments.size(); ++s)
        if (release.segments[s].after == i) lower_segment(release, s);
  }
  return writer_.take();
}

void Lowerer::lower_node(int place) {
  const Node& n = node(place);
  if (n.has_value || n.is_view || n.output >= 0) return;
  const int group = grouping_.fusion.group[place];
  if (group >= 0) {
    const std::vector<int>& members = grouping_.fusion.members[group];
    if (members.back() == place && !grouping_.release_of_group(group)) lower_group(members);
    return;
  }
  if (const PackLayout* const pack = n.op->traits().pack.get()) {
    if (!grouping_.release_of_pack(place)) lower_parts(n, writer_.buffer_of(n), {0, pack->n, 0, pack->offsets.size()});
    return;
  }
  if (is_empty(n)) return;
  if (n.is_snapshot) {
    add_pointwise(write_copy_kernel(*n.inputs[0].node, device_of(n)),
                  {.node = n, .what = "snapshot", .dst = {writer_.buffer_of(n), 0}});
    return;
  }
  if (grouping_.loss_gradients.made_by[place] >= 0) return;
  const EpilogueResult& epilogues = grouping_.epilogues;
  if (epilogues.producer[place] >= 0)
    lower_op(epilogues.producer[place]);
  else if (epilogues.of[place].result < 0 && !epilogues.absorbed[place])
    lower_op(place);
}

void Lowerer::add_pointwise(const PointwiseKernel& kernel, const Written& written) {
  const Node& n = written.node;
  const Window& window = written.window;
  PlanLaunch& launch = writer_.add_launch(n, written.what, "fused");
  launch.kernel()->real = kernel.real;
  launch.kernel()->geometry = kernel.geometry;
  const Device& device = device_of(n);
  if (device.runs_host_functions()) launch.host_form = host_form_of(kernel, written.members, device);
  std::vector<int> inputs, results;
  std::vector<std::int64_t> offsets;
  for (const PointwiseInput& input : kernel.inputs) {
    auto [buffer, offset] = writer_.source(*input.node);
    if (window.pack == input.node)
      buffer = window.buffer;
    else if (input.node->shape.size() != 1)
      offset += window.begin;
    writer_.add_array({buffer, offset}, false, window.pack ? kWhole : extent_of(*input.node));
    inputs.push_back(buffer);
    offsets.push_back(offset);
  }
  for (const Node* output : kernel.outputs) {
    results.push_back(writer_.buffer_of(*output));
    writer_.add_array({results.back(), window.begin}, true);
  }
  Lowered& lowered = writer_.lowered();
  const auto pairs =
      in_place_pairs(kernel, writer_.launch_count() - 1, inputs, offsets, results, lowered.placed.buffers);
  lowered.pairs.insert(lowered.pairs.end(), pairs.begin(), pairs.end());
  if (kernel.outputs.empty()) writer_.add_array(written.dst, true);
  for (const std::int64_t number : kernel.numbers) writer_.add_constant(KernelArgument::Kind::i64, number, 0);
  for (const auto& [owner, scalar] : kernel.scalars)
    writer_.add_scalar(PlanArgument::Kind::scalar_real, owner->place, scalar);
  const std::vector<int>& group = grouping_.fusion.group;
  std::vector<int> places;
  for (const Node* member : written.members)  // without nodes of other groups, which it recomputes
    if (group[member->place] == group[written.members.back()->place]) places.push_back(member->place);
  if (places.empty()) places.push_back(n.place);
  lowered.generated.push_back({lowered.launches.size() - 1, kernel.body, std::move(places)});
}

void Lowerer::lower_group(const std::vector<int>& places, const Window& window, std::int64_t elements) {
  const FuseResult& fusion = grouping_.fusion;
  std::vector<const Node*> members, outputs;
  std::string what;
  for (const int place : places) {
    members.push_back(&node(place));
    if (fusion.is_output[place] && fusion.group[place] == fusion.group[places.back()]) outputs.push_back(&node(place));
    if (what.size() < kLongestName) what += (what.empty() ? "" : "+") + std::string(node(place).op->name());
  }
  if (outputs.empty()) return;  // all its readers compute it themselves
  add_pointwise(write_pointwise_kernel(members, outputs, device_of(*members[0]), elements),
                {.node = *members[0], .what = std::move(what), .members = members, .window = window});
  for (const Node* member : members) {
    const double part = elements > 0 ? static_cast<double>(elements) / static_cast<double>(member->shape.size()) : 1;
    writer_.lowered().launches.back().info->flops += part * cost_of(*member).flops;
  }
}

// Writes a value a second time; later readers of it or of its views use the new buffer.
void Lowerer::lower_again(const FuseResult::Again& again) {
  const Node& value = node(again.value);
  const int buffer = writer_.add_buffer(value.shape, value.dtype, value);
  std::vector<const Node*> members;
  for (const int place : again.members) members.push_back(&node(place));
  const Node* const outputs[] = {&value};
  const PointwiseKernel kernel = write_pointwise_kernel(members, outputs, device_of(value));
  for (int i = again.value; i < count(); ++i)
    if (&node(i).base() == &value) writer_.lowered().placed.buffer_of[static_cast<std::size_t>(i)] = buffer;
  add_pointwise(kernel, {.node = value, .what = std::string(value.op->name()) + " again", .members = members});
}

void Lowerer::lower_segment(const GradientRelease& release, std::size_t segment) {
  const Node& pack = node(release.pack);
  const GradientSegment& range = release.segments[segment];
  const auto r = static_cast<std::size_t>(&release - grouping_.releases.data());
  const int buffer = writer_.lowered().placed.segments[r][segment];
  lower_parts(pack, buffer, range);
  lower_group(grouping_.fusion.members[release.group], {&pack, buffer, range.begin}, range.end - range.begin);
}

// Copies the parts that the producers of a pack do not write into it themselves.
void Lowerer::lower_parts(const Node& n, int whole, const GradientSegment& range) {
  const std::vector<std::int64_t>& offsets = n.op->traits().pack->offsets;
  const auto write = [&](const PointwiseKernel& kernel, std::int64_t offset, std::int64_t size) {
    const std::int64_t at = offset - range.begin;
    add_pointwise(kernel, {.node = n, .what = "pack", .dst = {whole, at}});
    if (writer_.buffer(whole).by_parts)
      writer_.lowered().pieces.push_back({whole, static_cast<std::size_t>(at) * bytes_of(n.dtype),
                                          static_cast<std::size_t>(size) * bytes_of(n.dtype),
                                          writer_.launch_count() - 1});
  };
  if (writer_.buffer(whole).kind == PlanBuffer::Kind::own || writer_.buffer(whole).by_parts)
    for (const auto& [offset, size] : gaps_of(n))
      if (offset >= range.begin && offset < range.end)
        write(write_zero_kernel(size, n.dtype, device_of(n)), offset, size);
  for (std::size_t i = range.first_part; i < range.end_part; ++i) {
    const Node& part = *n.inputs[i].node;
    const int index = writer_.buffer_of(part);
    const bool in_place = index >= 0 && writer_.buffer(index).kind == PlanBuffer::Kind::part &&
                          writer_.buffer(index).parent == whole &&
                          writer_.buffer(index).offset == offsets[i] - range.begin;
    if (in_place || part.shape.size() == 0) continue;
    write(write_copy_kernel(part, device_of(n)), offsets[i], part.shape.size());
  }
}

// A dense copy of a view, shared by all ops that need it.
int Lowerer::relayout(const Node& view) {
  int& index = relayouts_[static_cast<std::size_t>(view.place)];
  if (index < 0) {
    index = writer_.add_buffer(view.shape, view.dtype, view);
    if (writer_.buffer(index).kind != PlanBuffer::Kind::empty)
      add_pointwise(write_copy_kernel(view, device_of(view)), {.node = view, .what = "relayout", .dst = {index, 0}});
    writer_.lowered().relayout_bytes += writer_.buffer(index).bytes;
  }
  return index;
}

void Lowered::renumber(const std::vector<int>& number) {
  if (number.empty()) return;
  const auto change = [&](auto& launch) {
    if (static_cast<int>(launch) >= 0)
      launch = static_cast<std::remove_reference_t<decltype(launch)>>(number[static_cast<std::size_t>(launch)]);
  };
  for (InPlacePair& pair : pairs) change(pair.launch);
  for (PackPiece& piece : pieces) change(piece.first);
  for (Generated& kernel : generated) change(kernel.launch);
  for (ConstantArgument& constant : constants) change(constant.launch);
}

Lowered lower(const GraphList& list, const Grouping& grouping, PlacedValues placed, Context& context,
              KernelMaker& kernels) {
  return Lowerer(list, grouping, std::move(placed), context, kernels).run();
}

std::string describe(const Lowered& lowered) {
  const auto calls = std::count_if(lowered.launches.begin(), lowered.launches.end(),
                                   [](const PlanLaunch& l) { return l.kernel() == nullptr; });
  return std::to_string(lowered.launches.size()) + " launches: " + std::to_string(lowered.generated.size()) +
         " of written kernels, " + std::to_string(calls) + " calls, the rest of ops; " +
         std::to_string(lowered.relayout_bytes) + " bytes of views made dense, " +
         std::to_string(lowered.pairs.size()) + " results that may lie over an input";
}

}  // namespace samebytes::detail

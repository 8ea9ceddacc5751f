// From a list of nodes to launches: buffers, relayouts, packs, the ops' own records and the generated kernels, then the
// arena. Over 400 lines because these steps fill one plan together and share its state.
#include <algorithm>
#include <map>

#include "core/hash.h"
#include "plan/contexts.h"
#include "plan/epilogue.h"
#include "plan/fallback.h"
#include "plan/finish.h"
#include "plan/fuse.h"
#include "plan/generated.h"
#include "plan/host_pointwise.h"
#include "plan/host_run.h"
#include "plan/in_place.h"
#include "plan/launch_info.h"
#include "plan/loss_gradient.h"
#include "plan/pack_parts.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "plan/pointwise_kernel.h"
#include "plan/release.h"
#include "plan/rematerialise.h"

namespace samebytes::detail {
namespace {

// The part of a group that runs on a segment of a flat gradient.
struct Window {
  const Node* pack = nullptr;
  int buffer = -1;         // of the segment
  std::int64_t begin = 0;  // elements
};

class Maker {
 public:
  Maker(const GraphList& list, Context& context, PersistentStorages& persistent, HostShare& share, KernelMaker& kernels,
        bool fused)
      : list_(list),
        context_(context),
        persistent_(persistent),
        share_(share),
        kernels_(kernels),
        plan_(std::make_unique<Plan>()),
        epilogues_(append_epilogues(list, fused)),
        fusion_(fuse(list, epilogues_, fused)),
        loss_gradients_(pair_loss_gradients(list, fusion_, fused)) {
    if (!fused) return;
    rematerialise(list, fusion_,
                  {.most_cost = context.options.recompute, .releases = release_gradients(list, fusion_)});
    for (GradientRelease& release : release_gradients(list, fusion_)) releases_.push_back({std::move(release), {}});
  }

  std::unique_ptr<Plan> make() {
    const int n = count();
    plan_->buffer_of.assign(n, -1);
    results_.resize(n);
    relayouts_.assign(n, -1);
    for (int i = 0; i < n; ++i) assign_buffers(i);
    for (int i = 0; i < n; ++i)
      if (const auto* pack = pack_of(i)) place_parts(i, *pack);
    note_parts_of_cells();
    auto again = fusion_.again.begin();
    for (int i = 0; i < n; ++i) {
      for (; again != fusion_.again.end() && again->before == i; ++again) lower_again(*again);
      lower(i);
      for (const Released& released : releases_)
        for (std::size_t s = 0; s < released.buffers.size(); ++s)
          if (released.of.segments[s].after == i) lower_segment(released, s);
    }
    kernels_.stop_if_refused();
    for (std::size_t i = 1; i < plan_->launches.size(); ++i)
      plan_->several_devices = plan_->several_devices || plan_->launches[i].device != plan_->launches[0].device;
    renumber(cross_contexts(*plan_, list_, context_));
    lay_out_arena();
    count_bytes(*plan_);
    note_cells(*plan_, list_);
    order_devices(*plan_);
    share_.take_from(*plan_);
    build_generated(*plan_, generated_, *context_.runtime, kernels_);
    kernels_.stop_if_refused();
    bind_values();
    collect_uses(*plan_);
    plan_->nodes_fused = fusion_.nodes_fused + epilogues_.nodes_fused;
    return std::move(plan_);
  }

 private:
  // After launches were added between the others.
  void renumber(const std::vector<int>& number) {
    if (number.empty()) return;
    const auto renumber = [&](auto& launch) {
      if (static_cast<int>(launch) >= 0)
        launch = static_cast<std::remove_reference_t<decltype(launch)>>(number[static_cast<std::size_t>(launch)]);
    };
    for (InPlacePair& pair : pairs_) renumber(pair.launch);
    for (PackPiece& piece : pieces_) renumber(piece.first);
    for (Generated& generated : generated_) renumber(generated.launch);
    for (Value& value : values_) renumber(value.launch);
  }
  int count() const { return static_cast<int>(list_.nodes.size()); }
  const Node& node(int place) const { return *list_.nodes[static_cast<std::size_t>(place)]; }
  Device& device_of(const Node& n) { return context_.runtime->device(n.device); }
  const PackLayout* pack_of(int place) const {
    const Node& n = node(place);
    return n.has_value || !n.op ? nullptr : n.op->traits().pack.get();
  }

  struct Released {
    GradientRelease of;
    std::vector<int> buffers;  // by segment
  };
  Released* released_pack(int place) {
    for (Released& released : releases_)
      if (released.of.pack == place) return &released;
    return nullptr;
  }
  bool is_released(int group) const {
    return std::any_of(releases_.begin(), releases_.end(), [&](const Released& r) { return r.of.group == group; });
  }

  int add_buffer(PlanBuffer::Kind kind, const Shape& shape, Dtype dtype, int place, int device) {
    PlanBuffer buffer;
    buffer.bytes = static_cast<std::size_t>(shape.size()) * bytes_of(dtype);
    buffer.kind = buffer.bytes == 0 ? PlanBuffer::Kind::empty : kind;
    buffer.dtype = dtype;
    buffer.node = place;
    buffer.device = device;
    buffer.space = context_.runtime->device(device).space().index();
    plan_->buffers.push_back(std::move(buffer));
    return static_cast<int>(plan_->buffers.size()) - 1;
  }

  // ---- buffers

  void assign_buffers(int place) {
    const Node& n = node(place);
    if (n.is_view) {
      plan_->buffer_of[place] = plan_->buffer_of[n.base().place];
      return;
    }
    if (n.has_value) {
      plan_->buffer_of[place] = add_buffer(PlanBuffer::Kind::leaf, n.shape, n.dtype, place, n.device);
      if (n.storage) plan_->buffers.back().space = n.storage->space().index();
      return;
    }
    if (n.output >= 0) {  // made with its producer; a wanted one gets storage of its own
      const int producer = n.inputs[0].node->place;
      const int buffer = results_[producer][static_cast<std::size_t>(n.output)];
      if (list_.wanted[place] && plan_->buffers[buffer].kind == PlanBuffer::Kind::arena) {
        plan_->buffers[buffer].kind = PlanBuffer::Kind::own;
        plan_->buffers[buffer].node = place;
      }
      plan_->buffer_of[place] = buffer;
      return;
    }
    if (!n.results.empty()) {
      for (std::size_t k = 0; k < n.results.size(); ++k) {
        const int over = n.op->traits().in_place(static_cast<int>(k));
        const bool keeps = over >= 0 && !n.state_written;
        results_[place].push_back(
            keeps ? overwritten(place, over)
                  : add_buffer(PlanBuffer::Kind::arena, n.results[k].first, n.results[k].second, place, n.device));
      }
      return;
    }
    const int group = fusion_.group[place];
    if (group >= 0 && !fusion_.is_output[place]) return;  // lives in registers
    if (epilogues_.of[place].result >= 0 || (epilogues_.absorbed[place] && epilogues_.producer[place] < 0)) return;
    const int over = n.op->traits().in_place(0);
    if (over >= 0) {
      const int buffer = plan_->buffer_of[place] = overwritten(place, over);
      // What was written over a temporary and has a handle keeps the bytes.
      if (list_.wanted[place] && buffer >= 0 && plan_->buffers[buffer].kind == PlanBuffer::Kind::arena) {
        plan_->buffers[buffer].kind = PlanBuffer::Kind::own;
        plan_->buffers[buffer].node = place;
      }
      return;
    }
    const bool wanted = list_.wanted[place];
    plan_->buffer_of[place] =
        add_buffer(wanted ? PlanBuffer::Kind::own : PlanBuffer::Kind::arena, n.shape, n.dtype, place, n.device);
  }

  // Which cells lie in a flat one that is a leaf, too: the key of the plan says so as well (graph_list.cpp).
  void note_parts_of_cells() {
    for (PlanBuffer& buffer : plan_->buffers) {
      if (buffer.kind != PlanBuffer::Kind::leaf || !node(buffer.node).cell) continue;
      const NodePtr whole = node(buffer.node).cell->whole.lock();
      if (whole && static_cast<std::size_t>(whole->place) < list_.nodes.size() &&
          list_.nodes[static_cast<std::size_t>(whole->place)] == whole)
        buffer.part_of_leaf = plan_->buffer_of[whole->place];
    }
  }

  int overwritten(int place, int input) {
    if (node(node(place).inputs[static_cast<std::size_t>(input)].node->base().place).cell &&
        (plan_->late_cells.empty() || plan_->late_cells.back() != place))
      plan_->late_cells.push_back(place);
    return plan_->buffer_of[node(place).inputs[static_cast<std::size_t>(input)].node->place];
  }

  // The producers of a pack write straight into it where nobody else needs them elsewhere.
  void place_parts(int place, const PackLayout& pack) {
    const Node& n = node(place);
    if (Released* const released = released_pack(place)) {
      plan_->buffers[plan_->buffer_of[place]].kind = PlanBuffer::Kind::empty;  // there are only its segments
      for (const GradientSegment& segment : released->of.segments) {
        const int buffer =
            add_buffer(PlanBuffer::Kind::arena, Shape{segment.end - segment.begin}, n.dtype, place, n.device);
        plan_->buffers[buffer].by_parts = true;
        released->buffers.push_back(buffer);
        place_parts_in(buffer, n, pack, segment);
      }
      return;
    }
    PlanBuffer& whole = plan_->buffers[plan_->buffer_of[place]];
    if (whole.kind == PlanBuffer::Kind::arena) whole.by_parts = lies_in_arena(n);
    if (whole.kind == PlanBuffer::Kind::arena && !whole.by_parts) {
      whole.kind = PlanBuffer::Kind::persistent;
      // Plans share it, packs of one layout in one plan do not.
      Hasher layout;
      layout.add(n.op->fingerprint());
      layout.add(packs_of_layout_[n.op->fingerprint()]++);
      kernels_.run({.op = "pack", .places = {place}, .device = device_of(n), .real = whole.dtype}, [&] {
        whole.storage = persistent_.get(context_, layout.key().a, whole.bytes, whole.dtype, n.device);
      });
    }
    const bool fills_cell =
        n.op->traits().updates_cell && whole.kind == PlanBuffer::Kind::leaf && is_alone_with_cell(n, place);
    if (whole.kind == PlanBuffer::Kind::persistent || whole.by_parts || fills_cell)
      place_parts_in(plan_->buffer_of[place], n, pack, {0, pack.n, 0, pack.offsets.size()});
  }

  // Whether nobody but this node, which fills a cell, has to do with what the cell holds: then parts may be written
  // there before the node's own turn.
  bool is_alone_with_cell(const Node& fills, int place) const {
    const Node& cell = *fills.inputs.back().node;
    if (!cell.cell->members.empty() || cell.cell->whole.lock()) return false;
    for (int i = 0; i < count(); ++i) {
      const Node& n = node(i);
      if (i == place || n.has_value) continue;
      for (const Edge& edge : n.inputs)
        if (&edge.node->base() == &cell) return false;
    }
    return true;
  }

  void place_parts_in(int whole, const Node& n, const PackLayout& pack, const GradientSegment& range) {
    for (std::size_t i = range.first_part; i < range.end_part; ++i) {
      const Node& part = *n.inputs[i].node;
      const Node& base = part.base();
      if (!part.is_dense() || (part.is_view && part.offset != 0) || base.has_value ||
          base.shape.size() != part.shape.size() || base.device != n.device)
        continue;
      const int buffer = plan_->buffer_of[base.place];
      if (buffer < 0 || plan_->buffers[buffer].kind != PlanBuffer::Kind::arena) continue;
      plan_->buffers[buffer].kind = PlanBuffer::Kind::part;
      plan_->buffers[buffer].parent = whole;
      plan_->buffers[buffer].offset = pack.offsets[i] - range.begin;
    }
  }

  // ---- launches

  void lower(int place) {
    const Node& n = node(place);
    if (n.has_value || n.is_view || n.output >= 0) return;
    const int group = fusion_.group[place];
    if (group >= 0) {
      if (fusion_.members[group].back() == place && !is_released(group)) lower_group(fusion_.members[group]);
      return;
    }
    if (const PackLayout* const pack = pack_of(place)) {
      if (!released_pack(place)) lower_parts(n, plan_->buffer_of[place], {0, pack->n, 0, pack->offsets.size()});
      return;
    }
    if (n.results.empty() ? n.shape.size() == 0 : all_empty(n)) return;
    if (n.is_snapshot) {
      add_pointwise(write_copy_kernel(*n.inputs[0].node, device_of(n)), n, "snapshot", {}, plan_->buffer_of[place]);
      return;
    }
    if (loss_gradients_.made_by[place] >= 0) return;
    if (epilogues_.producer[place] >= 0)
      lower_op(epilogues_.producer[place]);
    else if (epilogues_.of[place].result < 0 && !epilogues_.absorbed[place])
      lower_op(place);
  }

  static bool all_empty(const Node& n) {
    return std::all_of(n.results.begin(), n.results.end(), [](const auto& r) { return r.first.size() == 0; });
  }

  // What a pointwise kernel reads: the buffer and where in it the node begins.
  std::pair<int, std::int64_t> source(const Node& n) const {
    return {plan_->buffer_of[n.place], n.is_view ? n.offset : 0};
  }

  PlanLaunch& add_launch(const Node& n, std::string what, const std::string& kernel) {
    PlanLaunch& launch = plan_->launches.emplace_back();
    launch.info = info_of_launch(n, what, kernel);
    launch.what = std::move(what);
    launch.device = n.device;
    launch.node = n.place;
    return launch;
  }

  void touch(int buffer) {
    if (buffer < 0) return;
    PlanBuffer& b = plan_->buffers[buffer];
    const int now = static_cast<int>(plan_->launches.size()) - 1;
    if (b.first < 0) b.first = now;
    b.last = now;
    b.devices |= std::uint64_t{1} << plan_->launches.back().device;
    if (b.kind == PlanBuffer::Kind::part) touch(b.parent);
  }

  using Extent = std::pair<std::int64_t, std::int64_t>;  // elements of a buffer, begin and end; end -1: all of them
  static constexpr Extent kWhole = {0, -1};

  // The elements of its base that a node shows.
  static Extent extent_of(const Node& n) {
    if (!n.is_view) return kWhole;
    std::int64_t last = n.offset;
    for (int axis = 0; axis < n.shape.rank(); ++axis) {
      if (n.strides[axis] < 0) return kWhole;
      last += (n.shape[axis] - 1) * n.strides[axis];
    }
    return {n.offset, last + 1};
  }

  void add_array(PlanLaunch& launch, int buffer, std::int64_t offset, bool writes, Extent extent = kWhole) {
    const int index = next_index(launch);
    if (buffer < 0 || plan_->buffers[buffer].kind == PlanBuffer::Kind::empty) {
      launch.arguments.push_back({PlanArgument::Kind::null_array, index});
      return;
    }
    PlanArgument argument{PlanArgument::Kind::array, index};
    argument.buffer = buffer;
    argument.offset = offset;
    argument.writes = writes;
    launch.arguments.push_back(argument);
    launch.operands.emplace_back(Operand{}, buffer);
    launch.operand_offsets.push_back(offset);
    launch.operand_writes.push_back(writes);
    launch.operand_ranges.push_back(extent);
    touch(buffer);
  }

  static int next_index(const PlanLaunch& launch) {
    if (launch.arguments.empty()) return 0;
    const PlanArgument& last = launch.arguments.back();
    const bool pair = last.kind == PlanArgument::Kind::array || last.kind == PlanArgument::Kind::null_array;
    return last.index + (pair ? 2 : 1);
  }

  // Values that never change are set once when the kernel exists; they are remembered until then.
  struct Value {
    std::size_t launch;
    int index;
    KernelArgument::Kind kind;
    std::int64_t integer;
    double real;
  };
  void add_value(PlanLaunch& launch, KernelArgument::Kind kind, std::int64_t integer, double real) {
    const int index = next_index(launch);
    launch.arguments.push_back({PlanArgument::Kind::value, index});
    values_.push_back({plan_->launches.size() - 1, index, kind, integer, real});
  }
  void add_scalar(PlanLaunch& launch, PlanArgument::Kind kind, int place, int scalar) {
    PlanArgument argument{kind, next_index(launch)};
    argument.node = place;
    argument.scalar = scalar;
    launch.arguments.push_back(argument);
  }

  void add_pointwise(const PointwiseKernel& kernel, const Node& n, std::string what,
                     std::span<const Node* const> members = {}, int dst_buffer = -1, std::int64_t dst_offset = 0,
                     const Window& window = {}) {
    PlanLaunch& launch = add_launch(n, std::move(what), "fused");
    launch.real = kernel.real;
    launch.geometry = kernel.geometry;
    const Device& device = device_of(n);
    if (device.runs_host_functions()) launch.host_form = host_form_of(kernel, members, device.info().has_fma);
    std::vector<int> inputs, results;
    std::vector<std::int64_t> offsets;
    for (const PointwiseInput& input : kernel.inputs) {
      auto [buffer, offset] = source(*input.node);
      if (window.pack == input.node)
        buffer = window.buffer;
      else if (input.node->shape.size() != 1)
        offset += window.begin;
      add_array(launch, buffer, offset, false, window.pack ? kWhole : extent_of(*input.node));
      inputs.push_back(buffer);
      offsets.push_back(offset);
    }
    for (const Node* output : kernel.outputs) {
      results.push_back(plan_->buffer_of[output->place]);
      add_array(launch, results.back(), window.begin, true);
    }
    const auto pairs =
        in_place_pairs(kernel, static_cast<int>(plan_->launches.size()) - 1, inputs, offsets, results, plan_->buffers);
    pairs_.insert(pairs_.end(), pairs.begin(), pairs.end());
    if (kernel.outputs.empty()) add_array(launch, dst_buffer, dst_offset, true);
    for (const std::int64_t number : kernel.numbers) add_value(launch, KernelArgument::Kind::i64, number, 0);
    for (const auto& [owner, scalar] : kernel.scalars)
      add_scalar(launch, PlanArgument::Kind::scalar_real, owner->place, scalar);
    std::vector<int> places;
    for (const Node* member : members)  // without those of other groups, which it computes again
      if (fusion_.group[member->place] == fusion_.group[members.back()->place]) places.push_back(member->place);
    if (places.empty()) places.push_back(n.place);
    generated_.push_back({plan_->launches.size() - 1, kernel.body, std::move(places)});
  }

  void lower_group(const std::vector<int>& places, const Window& window = {}, std::int64_t elements = 0) {
    std::vector<const Node*> members, outputs;
    std::string what;
    for (const int place : places) {
      members.push_back(&node(place));
      if (fusion_.is_output[place] && fusion_.group[place] == fusion_.group[places.back()])
        outputs.push_back(&node(place));
      if (what.size() < 60) what += (what.empty() ? "" : "+") + std::string(node(place).op->name());
    }
    if (outputs.empty()) return;  // all its readers compute it themselves
    add_pointwise(write_pointwise_kernel(members, outputs, device_of(*members[0]), elements), *members[0],
                  std::move(what), members, -1, 0, window);
    for (const Node* member : members) {
      const double part = elements > 0 ? static_cast<double>(elements) / static_cast<double>(member->shape.size()) : 1;
      plan_->launches.back().info->flops += part * cost_of(*member).flops;
    }
  }

  // Writes a value once more; whoever reads it or a view of it from here on reads the new buffer.
  void lower_again(const FuseResult::Again& again) {
    const Node& value = node(again.value);
    const int buffer = add_buffer(PlanBuffer::Kind::arena, value.shape, value.dtype, again.value, value.device);
    std::vector<const Node*> members;
    for (const int place : again.members) members.push_back(&node(place));
    const Node* const outputs[] = {&value};
    const PointwiseKernel kernel = write_pointwise_kernel(members, outputs, device_of(value));
    for (int i = again.value; i < count(); ++i)
      if (&node(i).base() == &value) plan_->buffer_of[i] = buffer;
    add_pointwise(kernel, value, std::string(value.op->name()) + " again", members);
  }

  void lower_segment(const Released& released, std::size_t s) {
    const Node& pack = node(released.of.pack);
    const GradientSegment& segment = released.of.segments[s];
    lower_parts(pack, released.buffers[s], segment);
    lower_group(fusion_.members[released.of.group], {&pack, released.buffers[s], segment.begin},
                segment.end - segment.begin);
  }

  // What the producers of a pack do not write there themselves.
  void lower_parts(const Node& n, int whole, const GradientSegment& range) {
    const auto& offsets = pack_of(n.place)->offsets;
    const auto add_piece = [&](std::int64_t offset, std::int64_t size) {
      if (plan_->buffers[whole].by_parts)
        pieces_.push_back({whole, static_cast<std::size_t>(offset - range.begin) * bytes_of(n.dtype),
                           static_cast<std::size_t>(size) * bytes_of(n.dtype),
                           static_cast<int>(plan_->launches.size()) - 1});
    };
    if (plan_->buffers[whole].kind == PlanBuffer::Kind::own || plan_->buffers[whole].by_parts)
      for (const auto& [offset, size] : gaps_of(n)) {
        if (offset < range.begin || offset >= range.end) continue;
        add_pointwise(write_zero_kernel(size, n.dtype, device_of(n)), n, "pack", {}, whole, offset - range.begin);
        add_piece(offset, size);
      }
    for (std::size_t i = range.first_part; i < range.end_part; ++i) {
      const Node& part = *n.inputs[i].node;
      const int buffer = plan_->buffer_of[part.place];
      const bool in_place = buffer >= 0 && plan_->buffers[buffer].kind == PlanBuffer::Kind::part &&
                            plan_->buffers[buffer].parent == whole &&
                            plan_->buffers[buffer].offset == offsets[i] - range.begin;
      if (in_place || part.shape.size() == 0) continue;
      add_pointwise(write_copy_kernel(part, device_of(n)), n, "pack", {}, whole, offsets[i] - range.begin);
      add_piece(offsets[i], part.shape.size());
    }
  }

  // A dense copy of a view, shared by all ops that need it.
  int relayout(const Node& view) {
    int& buffer = relayouts_[view.place];
    if (buffer < 0) {
      buffer = add_buffer(PlanBuffer::Kind::arena, view.shape, view.dtype, view.place, view.device);
      if (plan_->buffers[buffer].kind != PlanBuffer::Kind::empty)
        add_pointwise(write_copy_kernel(view, device_of(view)), view, "relayout", {}, buffer);
      plan_->relayout_bytes += plan_->buffers[buffer].bytes;
    }
    return buffer;
  }

  void lower_op(int place) {
    const Node& n = node(place);
    std::vector<std::pair<int, std::int64_t>> src;
    std::vector<Extent> extents;  // same order
    const auto add_source = [&](const Node& input) {
      src.push_back(source(input));
      extents.push_back(extent_of(input));
    };
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      const Node& input = *n.inputs[i].node;
      if (input.is_view && !input.is_dense() && !n.op->traits().takes_strides(static_cast<int>(i))) {
        src.emplace_back(relayout(input), 0);
        extents.push_back(kWhole);
      } else {
        add_source(input);
      }
    }
    const AppendedEpilogue& epilogue = epilogues_.of[place];
    if (epilogue.residual >= 0) add_source(node(epilogue.residual));
    if (epilogue.gate >= 0) add_source(node(epilogue.gate));
    std::vector<Shape> shapes;
    std::vector<Dtype> dtypes;
    std::vector<int> dst;
    if (n.results.empty()) {
      shapes.push_back(n.shape);
      dtypes.push_back(n.dtype);
      dst.push_back(plan_->buffer_of[epilogue.result >= 0 ? epilogue.result : place]);
    } else {
      for (const auto& [shape, dtype] : n.results) {
        shapes.push_back(shape);
        dtypes.push_back(dtype);
      }
      dst = results_[place];
    }
    const int gradient = loss_gradients_.gradient[place];
    if (gradient >= 0) {
      add_source(*node(gradient).inputs[0].node);
      if (node(gradient).results.empty()) dst.push_back(plan_->buffer_of[gradient]);
      dst.insert(dst.end(), results_[gradient].begin(), results_[gradient].end());
    }
    Device& device = device_of(n);
    Launch run(n, device, shapes, dtypes);
    if (epilogue.result >= 0) {  // its operands follow the node's own
      const int gate = run.src_count() + (epilogue.residual >= 0 ? 1 : 0);
      run.set_epilogue({epilogue.residual >= 0 ? run.src(run.src_count()) : Launch::none(), epilogue.relu,
                        epilogue.gate >= 0 ? run.src(gate) : Launch::none()});
    }
    if (gradient >= 0)
      run.set_gradient({run.src(run.src_count()), run.dst(static_cast<int>(shapes.size())), &node(gradient)});
    const bool is_launched = kernels_.run({.op = std::string(n.op->name()), .places = {place}, .device = device},
                                          [&] { n.op->launch(run); });
    if (!is_launched) return;
    std::vector<int> temps;
    for (const Launch::Temp& temp : run.temps())
      temps.push_back(add_buffer(PlanBuffer::Kind::arena,
                                 Shape{static_cast<std::int64_t>(temp.bytes / bytes_of(temp.dtype))}, temp.dtype, place,
                                 n.device));
    const auto resolve = [&](Operand operand) -> std::pair<int, std::int64_t> {
      switch (operand.kind) {
        case Operand::Kind::src: {
          const auto& [buffer, offset] = src[static_cast<std::size_t>(operand.index)];
          return {buffer, offset + operand.offset};
        }
        case Operand::Kind::dst: return {dst[static_cast<std::size_t>(operand.index)], operand.offset};
        case Operand::Kind::temp: return {temps[static_cast<std::size_t>(operand.index)], operand.offset};
        case Operand::Kind::none: break;
      }
      return {-1, 0};
    };
    const auto extent_in = [&](Operand operand) {
      return operand.kind == Operand::Kind::src ? extents[static_cast<std::size_t>(operand.index)] : kWhole;
    };
    if (gradient >= 0) place_gradient(gradient, n, src, static_cast<int>(run.records().size()));
    for (std::size_t k = 0; k < shapes.size(); ++k)
      if (const int over = n.op->traits().may_overwrite(static_cast<int>(k));
          over >= 0 && over < static_cast<int>(n.inputs.size()))
        if (const auto [input, offset] = src[static_cast<std::size_t>(over)]; input >= 0 && dst[k] >= 0 && offset == 0)
          pairs_.push_back({static_cast<int>(plan_->launches.size() + run.records().size()) - 1, input, dst[k],
                            !run.records().empty() && run.records().back().host_call != nullptr});
    Cost cost = cost_of(n);
    if (gradient >= 0 && !node(gradient).results.empty()) cost.flops += cost_of(node(gradient)).flops;
    bool has_main = false;  // an op's second launch sums up what the first one left
    for (LaunchRecord& record : run.records()) {
      const std::string kernel = record.queue_call ? "library" : record.host_call ? "host" : record.entry;
      PlanLaunch& launch = add_launch(n, record.what, kernel);
      if (!has_main && !record.is_preparation) {
        has_main = true;
        launch.info->flops = cost.flops;
        launch.info->bytes = cost.bytes;
      }
      launch.real = record.real;
      launch.geometry = record.geometry;
      if (device.runs_host_functions()) launch.host_form = std::move(record.on_host);
      KernelMaker::Wish wish{.op = record.what,
                             .places = {place},
                             .device = device,
                             .real = record.real,
                             .geometry = record.geometry,
                             .text = record.queue_call ? "library" : record.entry + record.source};
      if (gradient >= 0) wish.places.push_back(gradient);
      if (record.queue_call) kernels_.is_refused(wish, &launch.kernel_key);
      if (record.queue_call || record.host_call) {
        launch.queue_call = std::move(record.queue_call);
        launch.host_call = std::move(record.host_call);
        launch.waits = record.waits;
        const auto add_operands = [&](const std::vector<Operand>& operands, bool writes) {
          for (const Operand& operand : operands) {
            const auto [buffer, offset] = resolve(operand);
            launch.operands.emplace_back(operand, buffer);
            launch.operand_offsets.push_back(offset);
            launch.operand_writes.push_back(writes);
            launch.operand_ranges.push_back(extent_in(operand));
            touch(buffer);
          }
        };
        add_operands(record.call_reads, false);
        add_operands(record.call_writes, true);
        continue;
      }
      for (const KernelArgument& argument : record.arguments) {
        switch (argument.kind) {
          case KernelArgument::Kind::array: {
            const auto [buffer, offset] = resolve(argument.operand);
            add_array(launch, buffer, offset, argument.operand.kind != Operand::Kind::src, extent_in(argument.operand));
            break;
          }
          case KernelArgument::Kind::dynamic_real:
            add_scalar(launch, PlanArgument::Kind::scalar_real, place, argument.scalar);
            break;
          case KernelArgument::Kind::dynamic_bits:
            add_scalar(launch, PlanArgument::Kind::scalar_bits, place, argument.scalar);
            break;
          default: add_value(launch, argument.kind, argument.integer, argument.real);
        }
      }
      const auto build = [&] {
        return record.source.empty()
                   ? device.kernels().make_kernel(record.real, record.entry)
                   : device.kernels().make_generated(record.real, record.source, record.entry, record.what);
      };
      launch.kernel = kernels_.make(wish, build, &launch.kernel_key);
    }
  }

  // The gradient that a loss makes may lie over the input that its own op names, if nothing else is read from there.
  void place_gradient(int gradient, const Node& loss, const std::vector<std::pair<int, std::int64_t>>& src,
                      int launches) {
    const int over = node(gradient).op->traits().may_overwrite(0);
    if (over < 0) return;
    const Node* const input = node(gradient).inputs[static_cast<std::size_t>(over)].node.get();
    for (std::size_t i = 0; i < loss.inputs.size(); ++i) {
      const auto [buffer, offset] = src[i];
      if (loss.inputs[i].node.get() != input || buffer < 0 || offset != 0) continue;
      if (std::count_if(src.begin(), src.end(), [b = buffer](const auto& s) { return s.first == b; }) > 1) return;
      for (int k = 0; k < launches; ++k)  // whichever of them reads it last
        pairs_.push_back({static_cast<int>(plan_->launches.size()) + k, buffer, plan_->buffer_of[gradient]});
    }
  }

  // ---- programs, arena, uses

  void bind_values() {
    for (const Value& value : values_) {
      PlanLaunch& launch = plan_->launches[value.launch];
      if (launch.is_on_host) continue;
      switch (value.kind) {
        case KernelArgument::Kind::i32: {
          const std::int32_t v = static_cast<std::int32_t>(value.integer);
          launch.kernel->set_bytes(value.index, &v, sizeof v);
          break;
        }
        case KernelArgument::Kind::i64:
          launch.kernel->set_bytes(value.index, &value.integer, sizeof value.integer);
          break;
        default:
          if (launch.real == Dtype::f64) {
            launch.kernel->set_bytes(value.index, &value.real, sizeof value.real);
          } else {
            const float v = static_cast<float>(value.real);
            launch.kernel->set_bytes(value.index, &v, sizeof v);
          }
      }
    }
    for (PlanLaunch& launch : plan_->launches) {
      for (const PlanArgument& argument : launch.arguments)
        if (argument.kind == PlanArgument::Kind::null_array) {
          const std::int64_t zero = 0;
          launch.kernel->set_null(argument.index);
          launch.kernel->set_bytes(argument.index + 1, &zero, sizeof zero);
        }
      std::erase_if(launch.arguments, [](const PlanArgument& a) {
        return a.kind == PlanArgument::Kind::value || a.kind == PlanArgument::Kind::null_array;
      });
    }
  }

  void lay_out_arena() {
    const std::vector<int> root = share_in_place(plan_->buffers, pairs_);
    for (std::size_t b = 0; b < root.size(); ++b)  // what a part takes over is made in its place
      if (const PlanBuffer& part = plan_->buffers[static_cast<std::size_t>(root[b])];
          part.kind == PlanBuffer::Kind::part && root[b] != static_cast<int>(b)) {
        PlanBuffer& buffer = plan_->buffers[b];
        buffer.kind = PlanBuffer::Kind::part;
        buffer.parent = part.parent;
        buffer.offset = part.offset;
      }
    std::vector<ArenaRequest> requests = requests_of_packs(plan_->buffers, pieces_);
    const std::size_t packed = requests.size();
    std::vector<int> request(plan_->buffers.size(), -1);
    for (std::size_t b = 0; b < plan_->buffers.size(); ++b) {
      const PlanBuffer& buffer = plan_->buffers[b];
      if (buffer.kind != PlanBuffer::Kind::arena || buffer.first < 0 || buffer.by_parts) continue;
      int& mine = request[static_cast<std::size_t>(root[b])];
      if (mine < 0) {
        mine = static_cast<int>(requests.size());
        requests.push_back(
            {.bytes = buffer.bytes, .first = buffer.first, .last = buffer.last, .devices = buffer.devices});
      } else {
        ArenaRequest& shared = requests[static_cast<std::size_t>(mine)];
        shared = {.bytes = std::max(shared.bytes, buffer.bytes),
                  .first = std::min(shared.first, buffer.first),
                  .last = std::max(shared.last, buffer.last),
                  .devices = shared.devices | buffer.devices};
      }
      request[b] = mine;
    }
    // Each context has an arena of its own.
    std::vector<int> space(requests.size());
    for (std::size_t r = 0; r < packed; ++r)
      space[r] = plan_->buffers[static_cast<std::size_t>(requests[r].group)].space;
    for (std::size_t b = 0; b < request.size(); ++b)
      if (request[b] >= 0) space[static_cast<std::size_t>(request[b])] = plan_->buffers[b].space;
    std::vector<ArenaPlace> places(requests.size());
    for (int s = 0; s < context_.runtime->space_count(); ++s) {
      std::vector<ArenaRequest> own;
      std::vector<std::size_t> numbers;
      for (std::size_t r = 0; r < requests.size(); ++r)
        if (space[r] == s) {
          own.push_back(requests[r]);
          numbers.push_back(r);
        }
      const ArenaLayout layout = lay_out(own, context_.runtime->space(s).info().max_allocation_bytes);
      const int before = static_cast<int>(plan_->arena_segments.size());
      for (std::size_t r = 0; r < own.size(); ++r)
        places[numbers[r]] = {before + layout.places[r].segment, layout.places[r].offset};
      for (std::size_t k = 0; k < layout.segments.size(); ++k)
        plan_->arena_segments.push_back({layout.segments[k], s, static_cast<int>(k)});
    }
    for (std::size_t b = 0; b < request.size(); ++b)
      if (request[b] >= 0) plan_->buffers[b].place = places[static_cast<std::size_t>(request[b])];
    for (std::size_t r = 0; r < packed; ++r)
      plan_->buffers[static_cast<std::size_t>(requests[r].group)].place = {places[r].segment,
                                                                           places[r].offset - requests[r].group_offset};
    for (std::size_t r = 0; r < requests.size(); ++r) plan_->temporaries.push_back({requests[r], places[r]});
  }

  const GraphList& list_;
  Context& context_;
  PersistentStorages& persistent_;
  std::map<std::uint64_t, std::uint64_t> packs_of_layout_;  // persistent ones so far, by fingerprint
  HostShare& share_;
  KernelMaker& kernels_;
  std::unique_ptr<Plan> plan_;
  EpilogueResult epilogues_;
  FuseResult fusion_;
  LossGradients loss_gradients_;
  std::vector<std::vector<int>> results_;  // by place: buffers of a node of several results
  std::vector<int> relayouts_;             // by place of a view: the buffer of its dense copy
  std::vector<InPlacePair> pairs_;         // in the order of launches
  std::vector<PackPiece> pieces_;
  std::vector<Released> releases_;
  std::vector<Generated> generated_;
  std::vector<Value> values_;
};

}  // namespace

std::unique_ptr<Plan> make_plan(const GraphList& list, Context& context, PersistentStorages& persistent,
                                HostShare& share, KernelMaker& kernels, bool fused) {
  return Maker(list, context, persistent, share, kernels, fused).make();
}

}  // namespace samebytes::detail

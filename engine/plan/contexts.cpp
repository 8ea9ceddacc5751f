#include "plan/contexts.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "graph/context.h"
#include "graph/graph_list.h"
#include "graph/node.h"

namespace samebytes::detail {
namespace {

constexpr std::size_t kRangeAlignment = 128;  // kernels may rely on it if the original has it

class Crosser {
 public:
  Crosser(Plan& plan, const GraphList& list, Context& context) : plan_(plan), list_(list), runtime_(*context.runtime) {}

  // Returns the new number of each launch, by its old one.
  std::vector<int> run() {
    find_copies();
    return insert();
  }

 private:
  struct Range {
    std::size_t begin = 0, end = 0;  // bytes of the root buffer
  };
  // The range that one context reads of one version of a buffer.
  struct Copy {
    int root = -1, space = 0, reader = 0;  // reader: device of the first launch that reads it
    Range range;
    int after = -1;   // the launch that made the version; -1: it exists before the plan runs
    int readers = 0;  // number of launches
    int last_reader = -1;
    int buffer = -1;  // the copy's buffer, once it exists
  };
  using Key = std::tuple<int, int, int>;  // root, version, space

  int root_of(int buffer) const {
    const PlanBuffer& b = plan_.buffers[static_cast<std::size_t>(buffer)];
    return b.kind == PlanBuffer::Kind::part ? root_of(b.parent) : buffer;
  }
  std::size_t start_of(int buffer) const {  // bytes, within its root
    const PlanBuffer& b = plan_.buffers[static_cast<std::size_t>(buffer)];
    if (b.kind != PlanBuffer::Kind::part) return 0;
    return start_of(b.parent) + static_cast<std::size_t>(b.offset) * bytes_of(b.dtype);
  }
  int space_of(int device) const { return runtime_.device(device).space().index(); }
  bool is_foreign(const PlanLaunch& launch, int buffer) const {
    if (buffer < 0 || plan_.buffers[static_cast<std::size_t>(buffer)].kind == PlanBuffer::Kind::empty) return false;
    return plan_.buffers[static_cast<std::size_t>(root_of(buffer))].space != space_of(launch.device);
  }
  Range range_of(const PlanLaunch& launch, std::size_t operand) const {
    const int buffer = launch.operands[operand].buffer;
    const PlanBuffer& b = plan_.buffers[static_cast<std::size_t>(buffer)];
    const auto& [begin, end] = launch.operands[operand].extent;
    const std::size_t start = start_of(buffer), width = bytes_of(b.dtype);
    if (end < 0) return {start, start + b.bytes};
    return {start + static_cast<std::size_t>(begin) * width,
            std::min(start + static_cast<std::size_t>(end) * width, start + b.bytes)};
  }

  // The same cell may appear as several leaves.
  std::vector<int> same_bytes_as(int root) const {
    std::vector<int> roots{root};
    const auto storage_of = [&](int b) -> const Storage* {
      const PlanBuffer& buffer = plan_.buffers[static_cast<std::size_t>(b)];
      return buffer.kind == PlanBuffer::Kind::leaf ? list_.nodes[static_cast<std::size_t>(buffer.node)]->storage.get()
                                                   : nullptr;
    };
    if (const Storage* storage = storage_of(root))
      for (int b = 0; b < static_cast<int>(plan_.buffers.size()); ++b)
        if (b != root && storage_of(b) == storage) roots.push_back(b);
    return roots;
  }

  struct Version {
    int number = 0, made_by = -1;
  };

  // Visits the launches in running order and calls `use` for each operand that lies in another context.
  template <class Use>
  void walk(Use use) {
    std::map<int, Version> versions;  // by root
    for (int l = 0; l < static_cast<int>(plan_.launches.size()); ++l) {
      PlanLaunch& launch = plan_.launches[static_cast<std::size_t>(l)];
      for (std::size_t o = 0; o < launch.operands.size(); ++o)
        if (is_foreign(launch, launch.operands[o].buffer)) use(l, o, versions[root_of(launch.operands[o].buffer)]);
      for (std::size_t o = 0; o < launch.operands.size(); ++o)
        if (launch.operands[o].writes && launch.operands[o].buffer >= 0)
          for (const int root : same_bytes_as(root_of(launch.operands[o].buffer))) {
            ++versions[root].number;
            versions[root].made_by = l;
          }
    }
  }

  void find_copies() {
    walk([&](int l, std::size_t o, const Version& version) {
      const PlanLaunch& launch = plan_.launches[static_cast<std::size_t>(l)];
      const int root = root_of(launch.operands[o].buffer), space = space_of(launch.device);
      const Range range = range_of(launch, o);
      const auto [it, is_new] = copies_.emplace(Key{root, version.number, space}, Copy{});
      Copy& copy = it->second;
      if (is_new) copy = {root, space, launch.device, range, version.made_by};
      if (copy.last_reader != l) ++copy.readers;
      copy.last_reader = l;
      copy.range.begin = std::min(copy.range.begin, range.begin);
      copy.range.end = std::max(copy.range.end, range.end);
    });
    for (auto& [key, copy] : copies_) copy.range.begin = copy.range.begin / kRangeAlignment * kRangeAlignment;
  }

  PlanLaunch transfer(PlanTransfer carried, const LaunchInfo& like) {
    const std::size_t bytes = carried.bytes;
    PlanLaunch launch;
    launch.what = "transfer";
    launch.device = runtime_.device_count();
    launch.work = carried;
    launch.operands = {{.operand = {}, .buffer = carried.from}, {.operand = {}, .buffer = carried.to, .writes = true}};
    launch.info = std::make_shared<LaunchInfo>();
    launch.info->op = "transfer";
    launch.info->kernel = "transfer";
    launch.info->layer = like.layer;
    launch.info->is_gradient = like.is_gradient;
    launch.info->shape = std::to_string(bytes) + " bytes";
    launch.info->bytes = static_cast<double>(bytes);
    plan_.transfer_bytes += bytes;
    return launch;
  }

  int add_copy(const Copy& copy) {
    PlanBuffer buffer;
    const PlanBuffer& root = plan_.buffers[static_cast<std::size_t>(copy.root)];
    buffer.kind = PlanBuffer::Kind::arena;
    buffer.dtype = root.dtype;
    buffer.bytes = copy.range.end - copy.range.begin;
    buffer.node = root.node;
    buffer.device = copy.reader;
    buffer.space = copy.space;
    plan_.buffers.push_back(std::move(buffer));
    return static_cast<int>(plan_.buffers.size()) - 1;
  }

  void add_reason(const Copy& copy, std::size_t bytes) {
    const PlanBuffer& root = plan_.buffers[static_cast<std::size_t>(copy.root)];
    const Node& node = *list_.nodes[static_cast<std::size_t>(root.node)];
    const std::string maker = copy.after >= 0 ? plan_.launches[static_cast<std::size_t>(copy.after)].info->op + " makes"
                                              : "the step begins with";
    const std::string name = node.cell ? node.cell->name + ", " : "";
    plan_.reasons.push_back(std::to_string(bytes) + " bytes that " + maker + " (" + name +
                            std::string(name_of(root.dtype)) + " " + node.shape.to_string() + ") go to context " +
                            std::to_string(copy.space) + ": " + std::to_string(copy.readers) +
                            (copy.readers == 1 ? " launch reads them there" : " launches read them there"));
  }

  void use_copy(PlanLaunch& launch, std::size_t o, const Copy& copy) {
    const int old = launch.operands[o].buffer;
    const std::size_t width = bytes_of(plan_.buffers[static_cast<std::size_t>(old)].dtype);
    const auto distance = (static_cast<std::int64_t>(start_of(old)) - static_cast<std::int64_t>(copy.range.begin)) /
                          static_cast<std::int64_t>(width);
    if (PlanKernel* const work = launch.kernel())
      for (PlanArgument& argument : work->arguments)
        if (argument.buffer == old && argument.kind == PlanArgument::Kind::array) {
          argument.buffer = copy.buffer;
          argument.offset += distance;
        }
    for (PlanOperand& other : launch.operands)
      if (other.buffer == old) {
        other.buffer = copy.buffer;
        other.offset += distance;
        other.extent = kWhole;
      }
  }

  std::vector<int> insert() {
    // What to do after each old launch; -1 is the start of the plan.
    std::map<int, std::vector<PlanLaunch>> added;
    struct Rewiring {
      int launch;
      std::size_t operand;
      Key key;
    };
    std::vector<Rewiring> rewirings;
    walk([&](int l, std::size_t o, const Version& version) {
      const PlanLaunch& launch = plan_.launches[static_cast<std::size_t>(l)];
      const int root = root_of(launch.operands[o].buffer);
      rewirings.push_back({l, o, {root, version.number, space_of(launch.device)}});
    });
    const auto first_info = [&](int l) -> const LaunchInfo& {
      return *plan_.launches[static_cast<std::size_t>(l)].info;
    };
    const auto node_of = [&](int l) { return l < 0 ? -1 : plan_.launches[static_cast<std::size_t>(l)].node; };
    for (const Rewiring& r : rewirings) {
      Copy& copy = copies_.at(r.key);
      const std::size_t bytes = copy.range.end - copy.range.begin;
      if (copy.buffer < 0) {
        copy.buffer = add_copy(copy);
        add_reason(copy, bytes);
        added[copy.after].push_back(transfer({.from = copy.root,
                                              .to = copy.buffer,
                                              .from_offset = copy.range.begin,
                                              .bytes = bytes,
                                              .maker = node_of(copy.after),
                                              .reader = node_of(r.launch)},
                                             first_info(copy.after < 0 ? r.launch : copy.after)));
      }
      PlanLaunch& launch = plan_.launches[static_cast<std::size_t>(r.launch)];
      if (launch.operands[r.operand].buffer == copy.buffer) continue;  // the launch names it twice
      const int old = launch.operands[r.operand].buffer;
      bool writes = false;
      for (const PlanOperand& o : launch.operands) writes = writes || (o.buffer == old && o.writes);
      use_copy(launch, r.operand, copy);
      if (writes)
        added[r.launch].push_back(transfer({.from = copy.buffer,
                                            .to = copy.root,
                                            .to_offset = copy.range.begin,
                                            .bytes = bytes,
                                            .maker = node_of(r.launch)},
                                           first_info(r.launch)));
    }
    std::vector<PlanLaunch> old = std::move(plan_.launches);
    std::vector<int> number(old.size());
    plan_.launches.clear();
    const auto add_after = [&](int l) {
      for (PlanLaunch& launch : added[l]) plan_.launches.push_back(std::move(launch));
    };
    add_after(-1);
    for (std::size_t l = 0; l < old.size(); ++l) {
      number[l] = static_cast<int>(plan_.launches.size());
      plan_.launches.push_back(std::move(old[l]));
      add_after(static_cast<int>(l));
    }
    return number;
  }

  Plan& plan_;
  const GraphList& list_;
  Runtime& runtime_;
  std::map<Key, Copy> copies_;
};

// Computes the lifetimes of buffers from the operands of all launches.
void find_lives(Plan& plan) {
  for (PlanBuffer& buffer : plan.buffers) {
    buffer.first = buffer.last = -1;
    buffer.devices = 0;
  }
  for (std::size_t l = 0; l < plan.launches.size(); ++l)
    for (const PlanOperand& operand : plan.launches[l].operands)
      for (int b = operand.buffer; b >= 0;) {
        PlanBuffer& buffer = plan.buffers[static_cast<std::size_t>(b)];
        if (buffer.first < 0) buffer.first = static_cast<int>(l);
        buffer.last = static_cast<int>(l);
        buffer.devices |= std::uint64_t{1} << plan.launches[l].device;
        b = buffer.kind == PlanBuffer::Kind::part ? buffer.parent : -1;
      }
}

}  // namespace

std::vector<int> cross_contexts(Plan& plan, const GraphList& list, Context& context) {
  if (context.runtime->space_count() == 1) return {};
  const std::size_t launches = plan.launches.size();
  std::vector<int> number = Crosser(plan, list, context).run();
  if (plan.launches.size() == launches) return {};
  find_lives(plan);
  plan.several_devices = true;
  return number;
}

}  // namespace samebytes::detail

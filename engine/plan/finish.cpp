#include "plan/finish.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

namespace samebytes::detail {
namespace {

int root_buffer(const Plan& plan, int buffer) {
  return plan.buffers[buffer].kind == PlanBuffer::Kind::part ? plan.buffers[buffer].parent : buffer;
}

// Records who used which bytes of the arena, or of a separate buffer.
class Accesses {
 public:
  explicit Accesses(const Plan& plan) : plan_(plan) {}

  // Records that a launch uses a buffer. Raises `need`, by device, to the launches that it must come after.
  void add(int buffer, bool writes, int launch, std::vector<int>& need) {
    if (buffer < 0) return;
    const PlanBuffer& own = plan_.buffers[static_cast<std::size_t>(buffer)];
    const int root = root_buffer(plan_, buffer);
    const PlanBuffer& whole = plan_.buffers[static_cast<std::size_t>(root)];
    if (whole.kind == PlanBuffer::Kind::empty || own.kind == PlanBuffer::Kind::empty) return;
    std::size_t begin = root == buffer ? 0 : static_cast<std::size_t>(own.offset) * bytes_of(own.dtype);
    std::size_t end = begin + own.bytes;
    const bool in_arena = whole.kind == PlanBuffer::Kind::arena;
    if (in_arena) {
      begin += whole.place.offset;
      end += whole.place.offset;
    }
    // Cells inside a flat one count as all of it.
    const int flat = whole.part_of_leaf >= 0 ? whole.part_of_leaf : root;
    if (whole.kind == PlanBuffer::Kind::leaf) {
      begin = 0;
      end = std::numeric_limits<std::size_t>::max();
    }
    std::vector<Access>& before = by_place_[in_arena ? std::pair{true, whole.place.segment} : std::pair{false, flat}];
    const Access access{begin, end, launch, writes};
    for (const Access& other : before)
      if (other.begin < access.end && access.begin < other.end && (writes || other.writes)) {
        const int device = plan_.launches[static_cast<std::size_t>(other.launch)].device;
        need[static_cast<std::size_t>(device)] = std::max(need[static_cast<std::size_t>(device)], other.launch);
      }
    // Later users of these bytes wait for this writer, which already waits for the earlier users.
    if (writes)
      std::erase_if(before,
                    [&](const Access& other) { return access.begin <= other.begin && other.end <= access.end; });
    before.push_back(access);
  }

 private:
  struct Access {
    std::size_t begin, end;  // bytes
    int launch;
    bool writes;
  };

  const Plan& plan_;
  std::map<std::pair<bool, int>, std::vector<Access>> by_place_;
};

}  // namespace

std::size_t Plan::arena_bytes() const {
  std::size_t sum = 0;
  for (const ArenaSegment& segment : arena_segments) sum += segment.bytes;
  return sum;
}

void collect_uses(Plan& plan) {
  std::map<int, std::size_t> seen;
  for (std::size_t l = 0; l < plan.launches.size(); ++l) {
    const PlanLaunch& launch = plan.launches[l];
    for (const PlanOperand& o : launch.operands) {
      int buffer = o.buffer;
      if (buffer < 0) continue;
      if (plan.buffers[buffer].kind == PlanBuffer::Kind::part) buffer = plan.buffers[buffer].parent;
      const PlanBuffer::Kind kind = plan.buffers[buffer].kind;
      if (kind == PlanBuffer::Kind::arena || kind == PlanBuffer::Kind::empty) continue;
      const bool writes = o.writes;
      if (writes && kind == PlanBuffer::Kind::leaf && plan.first_overwrite < 0)
        plan.first_overwrite = static_cast<int>(l);
      const auto [it, fresh] = seen.emplace(buffer, plan.uses.size());
      if (fresh)
        plan.uses.push_back({buffer, writes, launch.what});
      else if (writes && !plan.uses[it->second].writes)
        plan.uses[it->second] = {buffer, true, launch.what};
    }
  }
  for (PlanLaunch& launch : plan.launches)  // only calls look up operands while they run
    if (!std::holds_alternative<PlanLibraryCall>(launch.work) && !std::holds_alternative<PlanHostCall>(launch.work))
      launch.operands.clear();
}

void order_devices(Plan& plan) {
  if (!plan.several_devices) return;
  int devices = 0;
  for (const PlanLaunch& launch : plan.launches) devices = std::max(devices, launch.device + 1);
  Accesses accesses(plan);
  // Up to which launch of each device each device has waited.
  std::vector<std::vector<int>> waited(static_cast<std::size_t>(devices),
                                       std::vector<int>(static_cast<std::size_t>(devices), -1));
  for (std::size_t l = 0; l < plan.launches.size(); ++l) {
    PlanLaunch& launch = plan.launches[l];
    std::vector<int> need(static_cast<std::size_t>(devices), -1);
    for (const PlanOperand& o : launch.operands) accesses.add(o.buffer, o.writes, static_cast<int>(l), need);
    for (std::size_t d = 0; d < need.size(); ++d) {
      int& reached = waited[static_cast<std::size_t>(launch.device)][d];
      if (static_cast<int>(d) == launch.device || need[d] <= reached) continue;
      reached = need[d];
      launch.after.push_back(need[d]);
      plan.launches[static_cast<std::size_t>(need[d])].is_awaited = true;
    }
  }
}

}  // namespace samebytes::detail

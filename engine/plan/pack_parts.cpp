#include "plan/pack_parts.h"

#include <algorithm>
#include <map>

#include "graph/op.h"

namespace samebytes::detail {
namespace {

// Below this size a separate storage costs little, and models have many small parameters with gaps.
constexpr std::size_t kLeastArenaPack = std::size_t{4} << 20;
// A gap costs a launch. More than one gap per this many bytes would take noticeable time to zero.
constexpr std::size_t kBytesPerGap = std::size_t{1} << 20;

}  // namespace

std::vector<Gap> gaps_of(const Node& pack) {
  const PackLayout& layout = *pack.op->traits().pack;
  std::vector<Gap> gaps;
  std::int64_t end = 0;
  const std::size_t parts = layout.offsets.size();
  for (std::size_t i = 0; i <= parts; ++i) {
    const std::int64_t next = i < parts ? layout.offsets[i] : layout.n;
    if (next > end) gaps.emplace_back(end, next - end);
    if (i < parts) end = next + pack.inputs[i].node->shape.size();
  }
  return gaps;
}

bool lies_in_arena(const Node& pack) {
  if (pack.op->traits().updates_cell) return false;
  const std::size_t bytes = static_cast<std::size_t>(pack.shape.size()) * bytes_of(pack.dtype);
  return bytes >= kLeastArenaPack && gaps_of(pack).size() * kBytesPerGap <= bytes;
}

std::vector<ArenaRequest> requests_of_packs(const std::vector<PlanBuffer>& buffers,
                                            const std::vector<PackPiece>& pieces) {
  std::map<std::pair<int, std::size_t>, ArenaRequest> requests;  // by pack and offset
  const auto add = [&](int whole, std::size_t offset, std::size_t bytes, int first) {
    const PlanBuffer& pack = buffers[static_cast<std::size_t>(whole)];
    ArenaRequest& request = requests.try_emplace({whole, offset}, ArenaRequest{bytes, first, pack.last}).first->second;
    request.bytes = std::max(request.bytes, bytes);
    request.first = std::min(request.first, first);
    request.group = whole;
    request.group_offset = offset;
    request.devices = pack.devices;
  };
  for (const PlanBuffer& part : buffers)
    if (part.kind == PlanBuffer::Kind::part && part.first >= 0 &&
        buffers[static_cast<std::size_t>(part.parent)].by_parts)
      add(part.parent, static_cast<std::size_t>(part.offset) * bytes_of(part.dtype), part.bytes, part.first);
  for (const PackPiece& piece : pieces) add(piece.whole, piece.offset, piece.bytes, piece.first);
  std::vector<ArenaRequest> result;
  result.reserve(requests.size());
  for (const auto& [where, request] : requests) result.push_back(request);
  return result;
}

}  // namespace samebytes::detail

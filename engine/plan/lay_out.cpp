#include "plan/lay_out.h"

#include <algorithm>

namespace samebytes::detail {
namespace {

class Arranger {
 public:
  Arranger(std::vector<PlanBuffer>& buffers, const std::vector<InPlacePair>& pairs)
      : buffers_(buffers), root_(share_in_place(buffers, pairs)), request_of_(buffers.size(), -1) {}

  Layout run(const std::vector<PackPiece>& pieces, Runtime& runtime) {
    move_into_packs();
    requests_ = requests_of_packs(buffers_, pieces);
    packed_ = requests_.size();
    request_temporaries();
    place_in_spaces(runtime);
    for (std::size_t b = 0; b < buffers_.size(); ++b)
      if (request_of_[b] >= 0) buffers_[b].place = places_[static_cast<std::size_t>(request_of_[b])];
    for (std::size_t r = 0; r < packed_; ++r)
      pack_of(r).place = {places_[r].segment, places_[r].offset - requests_[r].group_offset};
    for (std::size_t r = 0; r < requests_.size(); ++r) layout_.temporaries.push_back({requests_[r], places_[r]});
    return std::move(layout_);
  }

 private:
  PlanBuffer& pack_of(std::size_t request) { return buffers_[static_cast<std::size_t>(requests_[request].group)]; }

  // Makes the operands that parts take over directly in their place.
  void move_into_packs() {
    for (std::size_t b = 0; b < root_.size(); ++b) {
      const PlanBuffer& part = buffers_[static_cast<std::size_t>(root_[b])];
      if (part.kind != PlanBuffer::Kind::part || root_[b] == static_cast<int>(b)) continue;
      PlanBuffer& buffer = buffers_[b];
      buffer.kind = PlanBuffer::Kind::part;
      buffer.parent = part.parent;
      buffer.offset = part.offset;
    }
  }

  // One request for all temporaries that share bytes.
  void request_temporaries() {
    for (std::size_t b = 0; b < buffers_.size(); ++b) {
      const PlanBuffer& buffer = buffers_[b];
      if (buffer.kind != PlanBuffer::Kind::arena || buffer.first < 0 || buffer.by_parts) continue;
      int& mine = request_of_[static_cast<std::size_t>(root_[b])];
      if (mine < 0) {
        mine = static_cast<int>(requests_.size());
        requests_.push_back(
            {.bytes = buffer.bytes, .first = buffer.first, .last = buffer.last, .devices = buffer.devices});
      } else {
        ArenaRequest& shared = requests_[static_cast<std::size_t>(mine)];
        shared = {.bytes = std::max(shared.bytes, buffer.bytes),
                  .first = std::min(shared.first, buffer.first),
                  .last = std::max(shared.last, buffer.last),
                  .devices = shared.devices | buffer.devices};
      }
      request_of_[b] = mine;
    }
  }

  void place_in_spaces(Runtime& runtime) {
    std::vector<int> space(requests_.size());
    for (std::size_t r = 0; r < packed_; ++r) space[r] = pack_of(r).space;
    for (std::size_t b = 0; b < request_of_.size(); ++b)
      if (request_of_[b] >= 0) space[static_cast<std::size_t>(request_of_[b])] = buffers_[b].space;
    places_.resize(requests_.size());
    for (int s = 0; s < runtime.space_count(); ++s) {
      std::vector<ArenaRequest> own;
      std::vector<std::size_t> numbers;
      for (std::size_t r = 0; r < requests_.size(); ++r)
        if (space[r] == s) {
          own.push_back(requests_[r]);
          numbers.push_back(r);
        }
      const ArenaLayout arena = lay_out(own, runtime.space(s).info().max_allocation_bytes);
      const int before = static_cast<int>(layout_.segments.size());
      for (std::size_t r = 0; r < own.size(); ++r)
        places_[numbers[r]] = {before + arena.places[r].segment, arena.places[r].offset};
      for (std::size_t k = 0; k < arena.segments.size(); ++k)
        layout_.segments.push_back({arena.segments[k], s, static_cast<int>(k)});
    }
  }

  std::vector<PlanBuffer>& buffers_;
  std::vector<int> root_;        // by buffer: the buffer whose bytes it shares
  std::vector<int> request_of_;  // by buffer
  std::vector<ArenaRequest> requests_;
  std::size_t packed_ = 0;  // how many of these, from the first on, belong to packs
  std::vector<ArenaPlace> places_;
  Layout layout_;
};

}  // namespace

Layout lay_out_arena(std::vector<PlanBuffer>& buffers, const std::vector<InPlacePair>& pairs,
                     const std::vector<PackPiece>& pieces, Runtime& runtime) {
  return Arranger(buffers, pairs).run(pieces, runtime);
}

std::string describe(const Layout& layout) {
  std::size_t bytes = 0, in_all = 0;
  for (const ArenaSegment& segment : layout.segments) bytes += segment.bytes;
  for (const PlanTemporary& temporary : layout.temporaries) in_all += temporary.request.bytes;
  return std::to_string(layout.temporaries.size()) + " temporaries of " + std::to_string(in_all) + " bytes in " +
         std::to_string(layout.segments.size()) + " arenas of " + std::to_string(bytes) + " bytes";
}

}  // namespace samebytes::detail

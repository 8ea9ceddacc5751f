#include "distributed/jobs.h"

#include <algorithm>
#include <utility>

namespace samebytes::distributed::detail {
namespace {

// Shares begin at a multiple of so many elements: a cache line of each of their types, at most.
constexpr std::size_t kShareElements = 64;

}  // namespace

// Memory for as long as a job needs it, then for the next one: its pages are there already.
class Scratch {
 public:
  explicit Scratch(std::size_t bytes) {
    const MutexLock lock(mutex);
    const auto fits =
        std::find_if(spare.begin(), spare.end(), [&](const Block& block) { return block.bytes >= bytes; });
    if (fits == spare.end()) {
      block_ = {std::unique_ptr<std::byte[]>(new std::byte[bytes]), bytes};
      return;
    }
    block_ = std::move(*fits);
    spare.erase(fits);
  }
  ~Scratch() {
    const MutexLock lock(mutex);
    if (spare.size() < kMostSpare) spare.push_back(std::move(block_));
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::byte* data() const { return block_.data.get(); }

 private:
  static constexpr std::size_t kMostSpare = 16;
  struct Block {
    std::unique_ptr<std::byte[]> data;
    std::size_t bytes = 0;
  };
  static inline Mutex mutex;
  static inline std::vector<Block> spare SAMEBYTES_GUARDED_BY(mutex);
  Block block_;
};

AllReduce::~AllReduce() = default;

Gather::Gather(Communicator& communicator, Piece own, std::vector<Piece> received)
    : tag_(communicator.next_tag()), own_(own), received_(std::move(received)) {}

Job::Progress Gather::advance(Transport& transport) {
  if (!is_begun_) {
    is_begun_ = true;
    const Piece& mine = received_[static_cast<std::size_t>(transport.rank())];
    if (mine.data != own_.data) std::copy_n(own_.data, own_.bytes, mine.data);
    for (int rank = 0; rank < transport.size(); ++rank) {
      const Piece& theirs = received_[static_cast<std::size_t>(rank)];
      if (rank == transport.rank()) continue;
      if (theirs.bytes > 0) requests_.add(transport.receive(rank, tag_, {&theirs, 1}));
      if (own_.bytes > 0) requests_.add(transport.send(rank, tag_, {&own_, 1}));
    }
  }
  const bool has_moved = requests_.advance();
  return requests_.is_empty() ? Progress::done : has_moved ? Progress::some : Progress::none;
}

Job::Progress Collect::advance(Transport& transport) {
  if (!is_begun_) {
    is_begun_ = true;
    if (transport.rank() == 0 && own_.bytes > 0) std::copy_n(own_.data, own_.bytes, places_[0].data);
    if (transport.rank() != 0 && own_.bytes > 0) requests_.add(transport.send(0, tag_, {&own_, 1}));
    for (std::size_t rank = 1; rank < places_.size(); ++rank)
      if (places_[rank].bytes > 0) requests_.add(transport.receive(static_cast<int>(rank), tag_, {&places_[rank], 1}));
  }
  const bool has_moved = requests_.advance();
  return requests_.is_empty() ? Progress::done : has_moved ? Progress::some : Progress::none;
}

Job::Progress Broadcast::advance(Transport& transport) {
  if (!is_begun_) {
    is_begun_ = true;
    if (piece_.bytes > 0 && transport.rank() != root_) requests_.add(transport.receive(root_, tag_, {&piece_, 1}));
    for (int rank = 0; rank < transport.size() && transport.rank() == root_; ++rank)
      if (rank != root_ && piece_.bytes > 0) requests_.add(transport.send(rank, tag_, {&piece_, 1}));
  }
  const bool has_moved = requests_.advance();
  return requests_.is_empty() ? Progress::done : has_moved ? Progress::some : Progress::none;
}

AllReduce::AllReduce(Communicator& communicator, std::vector<Piece> regions, Dtype dtype, Combining::Kind kind,
                     WeightsOf weights)
    : tag_(communicator.next_tag()),
      rank_(communicator.rank()),
      size_(communicator.size()),
      regions_(std::move(regions)),
      dtype_(dtype),
      kind_(kind),
      weights_(std::move(weights)) {
  for (const Piece& region : regions_) elements_ += region.bytes / bytes_of(dtype_);
}

std::vector<Piece> AllReduce::share_of(int rank) const {
  const auto bound = [&](int of) {
    const std::size_t groups = (elements_ + kShareElements - 1) / kShareElements;
    return std::min(elements_,
                    groups * static_cast<std::size_t>(of) / static_cast<std::size_t>(size_) * kShareElements);
  };
  const std::size_t width = bytes_of(dtype_), begin = bound(rank) * width, end = bound(rank + 1) * width;
  std::vector<Piece> pieces;
  std::size_t at = 0;
  for (const Piece& region : regions_) {
    const std::size_t first = std::max(begin, at), last = std::min(end, at + region.bytes);
    if (first < last) {
      std::byte* const data = region.data + (first - at);
      if (!pieces.empty() && pieces.back().data + pieces.back().bytes == data)
        pieces.back().bytes += last - first;
      else
        pieces.push_back({data, last - first});
    }
    at += region.bytes;
  }
  return pieces;
}

Job::Progress AllReduce::advance(Transport& transport) {
  const Stage before = stage_;
  const bool has_moved = requests_.advance();
  switch (stage_) {
    case Stage::begin:
      collect(transport);
      stage_ = Stage::collect;
      break;
    case Stage::collect:
      // Also the sends: the combined values of the other shares come where those now lie.
      if (requests_.is_empty()) stage_ = Stage::combine;
      break;
    case Stage::combine:
      if (kind_ == Combining::Kind::weighted && weights_().empty()) break;
      combine_share();
      spread(transport);
      stage_ = Stage::spread;
      break;
    case Stage::spread:
      if (!requests_.is_empty()) break;
      others_.reset();
      stage_ = Stage::done;
      break;
    case Stage::done: break;
  }
  if (stage_ == Stage::done) return Progress::done;
  return has_moved || stage_ != before ? Progress::some : Progress::none;
}

void AllReduce::collect(Transport& transport) {
  std::size_t own = 0;
  for (const Piece& piece : share_of(rank_)) own += piece.bytes;
  others_ = std::make_unique<Scratch>(own * static_cast<std::size_t>(size_ - 1));
  std::byte* place = others_->data();
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    const Piece theirs{place, own};
    if (own > 0) requests_.add(transport.receive(rank, tag_, {&theirs, 1}));
    place += own;
    const std::vector<Piece> share = share_of(rank);
    if (!share.empty()) requests_.add(transport.send(rank, tag_, share));
    for (const Piece& piece : share) bytes_sent_ += piece.bytes;
  }
}

void AllReduce::combine_share() {
  const std::vector<Piece> share = share_of(rank_);
  std::size_t own = 0, at = 0;
  for (const Piece& piece : share) own += piece.bytes;
  const Combining how{kind_, kind_ == Combining::Kind::weighted ? weights_() : std::span<const double>()};
  std::vector<const std::byte*> sources(static_cast<std::size_t>(size_));
  for (const Piece& piece : share) {
    for (int rank = 0; rank < size_; ++rank) {
      const int place = rank < rank_ ? rank : rank - 1;
      sources[static_cast<std::size_t>(rank)] =
          rank == rank_ ? piece.data : others_->data() + static_cast<std::size_t>(place) * own + at;
    }
    combine(dtype_, how, sources, piece.data, piece.bytes / bytes_of(dtype_));
    at += piece.bytes;
  }
}

void AllReduce::spread(Transport& transport) {
  const std::vector<Piece> mine = share_of(rank_);
  for (int rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    const std::vector<Piece> share = share_of(rank);
    if (!share.empty()) requests_.add(transport.receive(rank, tag_ + 1, share));
    if (!mine.empty()) requests_.add(transport.send(rank, tag_ + 1, mine));
    for (const Piece& piece : mine) bytes_sent_ += piece.bytes;
  }
}

}  // namespace samebytes::distributed::detail

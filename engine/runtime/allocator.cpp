#include "runtime/allocator.h"

#include <algorithm>

#include "samebytes/budget.h"
#include "samebytes/error.h"

namespace samebytes::detail {

namespace {

constexpr std::size_t kSmallest = 64 * 1024;  // up to this size: whole pages
constexpr std::size_t kStepsPerDoubling = 8;  // above: at most 1/8 is wasted
// From this size on: whole pages again; the cache may return a block that is at most one step larger.
constexpr std::size_t kLarge = std::size_t{16} << 20;
constexpr std::size_t kCacheShare = 4;  // the cache keeps at most 1/4 of the limit ...
constexpr std::size_t kTrimShare = 2;   // ... and is then trimmed to half of that, so that trims are rare

const char* name_of(Category category) {
  switch (category) {
    case Category::value: return "values";
    case Category::parameter: return "parameters";
    case Category::gradient: return "gradients";
    case Category::optimizer: return "optimizer state";
    case Category::arena: return "activations";
    case Category::slot: return "loader slots";
    case Category::library: return "library temporaries";
    case Category::adopted: return "adopted memory";
  }
  return "?";
}

MemoryCategory counted_as(Category category) {
  switch (category) {
    case Category::parameter: return MemoryCategory::parameters;
    case Category::gradient: return MemoryCategory::gradients;
    case Category::optimizer: return MemoryCategory::optimizer;
    case Category::arena: return MemoryCategory::activations;
    case Category::slot: return MemoryCategory::inputs;
    case Category::library: return MemoryCategory::library;
    case Category::value:
    case Category::adopted: break;
  }
  return MemoryCategory::other;
}

}  // namespace

std::size_t size_class(std::size_t bytes) {
  if (bytes <= kSmallest || bytes >= kLarge) return (bytes + kPage - 1) / kPage * kPage;
  std::size_t power = kSmallest;
  while (power * 2 < bytes) power *= 2;
  const std::size_t step = power / kStepsPerDoubling;
  return (bytes + step - 1) / step * step;
}

Allocator::Allocator(AllocatorSetup setup) : setup_(std::move(setup)), reaper_(std::make_unique<Reaper>()) {
  MutexLock lock(mutex_);
  limit_ = setup_.limit;
}

Allocator::~Allocator() {
  reaper_.reset();
  std::vector<BlockPtr> blocks;
  {
    MutexLock lock(mutex_);
    blocks = trim(0);
  }
  for (BlockPtr& block : blocks) free_block(std::move(block));
}

std::size_t Allocator::held() const {
  std::size_t sum = cached_;
  for (std::size_t i = 0; i < live_by_category_.size(); ++i)
    if (i != static_cast<std::size_t>(Category::adopted)) sum += live_by_category_[i];
  return sum;
}

void Allocator::count_live(Storage::Block& block, Category category, const std::string& what, const char* layer) {
  block.what = what;
  block.layer = layer;
  block.category = category;
  live_.insert(&block);
  if (log_) log_->add(counted_as(category), static_cast<std::int64_t>(block.bytes), what);
  live_by_category_[static_cast<std::size_t>(category)] += block.bytes;
  if (held() > most_held_) {
    most_held_ = held();
    held_peak_ = {live_by_category_, cached_};
  }
  const std::size_t now = held() - cached_;
  if (now <= peak_) return;
  peak_ = now;
  ++peaks_;
  if (peak_cause_ != what) peak_cause_ = what;
  if (peak_layer_ != layer) peak_layer_ = layer;
  peak_by_category_ = live_by_category_;
}

Allocator::BlockPtr Allocator::take_cached(std::size_t capacity, FirstUse first) {
  auto found = cache_.lower_bound(capacity);
  const std::size_t most = capacity >= kLarge ? capacity + capacity / kStepsPerDoubling : capacity;
  while (found != cache_.end() && found->first <= most && found->second.empty()) ++found;
  if (found == cache_.end() || found->first > most) return nullptr;
  std::vector<BlockPtr>& blocks = found->second;
  // The last block is still warm in the caches; if the host would have to wait for it, the oldest is the most likely to
  // be free.
  const bool is_free = first == FirstUse::device || !blocks.back()->ticket || blocks.back()->ticket->is_done();
  auto chosen = is_free ? blocks.end() - 1 : blocks.begin();
  BlockPtr block = std::move(*chosen);
  blocks.erase(chosen);
  if (blocks.empty() && capacity >= kLarge) cache_.erase(found);  // large sizes are too many to keep them all
  cached_ -= block->bytes;
  block->host_newer.clear();
  block->device_newer.clear();
  return block;
}

std::unique_ptr<Storage::Block> Allocator::take(std::size_t bytes, Category category, const std::string& what,
                                                const char* layer, FirstUse first) {
  if (setup_.watchdog) setup_.watchdog->check(what, setup_.info.name);
  const std::size_t largest = setup_.info.max_allocation_bytes;
  if (bytes > largest)
    throw_out_of_memory(bytes, what,
                        "the largest single allocation of " + setup_.info.name + " is " + bytes_text(largest) +
                            "; split the array into segments");
  std::size_t capacity = setup_.is_exact ? bytes : size_class(bytes);
  if (capacity + 2 * kPage > largest) capacity = bytes;  // no room for rounding
  for (int attempt = 0;; ++attempt) {
    bool fits = false;
    std::vector<BlockPtr> evicted;
    {
      MutexLock lock(mutex_);
      if (BlockPtr block = setup_.is_exact ? nullptr : take_cached(capacity, first)) {
        count_live(*block, category, what, layer);
        return block;
      }
      const std::size_t live = held() - cached_;
      if (live + capacity <= limit_ && held() + capacity > limit_) evicted = trim(limit_ - live - capacity);
      fits = held() + capacity <= limit_;
      if (fits) live_by_category_[static_cast<std::size_t>(category)] += capacity;  // claimed while the driver works
    }
    free_all(std::move(evicted));
    if (fits) {
      BlockPtr block = make_block(capacity);
      MutexLock lock(mutex_);
      live_by_category_[static_cast<std::size_t>(category)] -= capacity;
      if (block) {
        ++driver_allocations_;
        count_live(*block, category, what, layer);
        if (block->is_guarded) guarded_.insert(block.get());
        return block;
      }
    }
    if (attempt == 1)
      throw_out_of_memory(bytes, what, fits ? "the driver has no more memory" : "it does not fit under the limit");
    // Blocks held by queued launches may cover what is missing.
    clear_cache();
    reaper_->drain();
  }
}

void Allocator::give_back(BlockPtr block, Category category, TicketPtr ticket) noexcept {
  std::vector<BlockPtr> evicted;
  const bool is_busy = ticket && !ticket->is_done();
  if (block->is_adopted) {
    bool closed = false;
    {
      MutexLock lock(mutex_);
      live_by_category_[static_cast<std::size_t>(Category::adopted)] -= block->bytes;
      closed = is_closed_;
    }
    if (closed) {
      free_block(std::move(block));
      return;
    }
    free_later(std::move(block), std::move(ticket));
    return;
  }
  {
    MutexLock lock(mutex_);
    live_by_category_[static_cast<std::size_t>(category)] -= block->bytes;
    if (log_) log_->add(counted_as(category), -static_cast<std::int64_t>(block->bytes), block->what);
    live_.erase(block.get());
    block->ticket = is_busy ? std::move(ticket) : nullptr;
    block->stamp = next_stamp_++;
    // Exact blocks are not reused. Oclgrind applies what it knows about a freed buffer to the next one with the same
    // number, so exact blocks wait until the end. An arena is only dropped for a larger one and would stay in the cache
    // forever.
    const bool is_kept = setup_.is_exact ? setup_.info.platform == "Oclgrind" : category != Category::arena;
    if (!is_closed_ && is_kept) {
      cached_ += block->bytes;
      const std::size_t capacity = block->bytes;
      cache_[capacity].push_back(std::move(block));
      const std::size_t most = limit_ / kCacheShare;
      if (cached_ > most) evicted = trim(most / kTrimShare);
    }
  }
  if (block) evicted.push_back(std::move(block));
  free_all(std::move(evicted));
}

std::vector<Allocator::BlockPtr> Allocator::trim(std::size_t target) {
  std::vector<BlockPtr> evicted;
  while (cached_ > target) {
    auto oldest = cache_.end();
    for (auto each = cache_.begin(); each != cache_.end(); ++each)
      if (!each->second.empty() &&
          (oldest == cache_.end() || each->second.front()->stamp < oldest->second.front()->stamp))
        oldest = each;
    if (oldest == cache_.end()) break;
    cached_ -= oldest->second.front()->bytes;
    evicted.push_back(std::move(oldest->second.front()));
    oldest->second.erase(oldest->second.begin());
    if (oldest->second.empty()) cache_.erase(oldest);
  }
  return evicted;
}

void Allocator::free_all(std::vector<BlockPtr> blocks) noexcept {
  const bool closed = is_closed();
  for (BlockPtr& block : blocks) {
    if (!block->ticket || block->ticket->is_done() || closed) {
      free_block(std::move(block));
      continue;
    }
    TicketPtr ticket = block->ticket;
    free_later(std::move(block), std::move(ticket));
  }
}

void Allocator::free_later(BlockPtr block, TicketPtr ticket) {
  auto shared = std::make_shared<BlockPtr>(std::move(block));  // std::function needs a copyable object
  reaper_->add(std::move(ticket), [this, shared] { free_block(std::move(*shared)); });
}

std::size_t Allocator::clear_cache() {
  std::vector<BlockPtr> blocks;
  {
    MutexLock lock(mutex_);
    blocks = trim(0);
  }
  std::size_t bytes = 0;
  for (const BlockPtr& block : blocks) bytes += block->bytes;
  free_all(std::move(blocks));
  return bytes;
}

void Allocator::set_limit(std::size_t bytes) {
  std::vector<BlockPtr> evicted;
  {
    MutexLock lock(mutex_);
    limit_ = bytes;
    const std::size_t live = held() - cached_;
    const std::size_t room = live < bytes ? bytes - live : 0;
    if (cached_ > room) evicted = trim(room);
  }
  free_all(std::move(evicted));
}

void Allocator::close() {
  clear_cache();
  reaper_->drain();
  MutexLock lock(mutex_);
  is_closed_ = true;
}

void Allocator::fill(MemoryReport* report) const {
  MutexLock lock(mutex_);
  report->library_bytes = live_by_category_[static_cast<std::size_t>(Category::library)];
  report->live_bytes = held() - cached_ - report->library_bytes;
  report->cached_bytes = cached_;
  report->adopted_bytes = live_by_category_[static_cast<std::size_t>(Category::adopted)];
  report->peak_bytes = peak_;
  report->peak_cause = peak_cause_;
  report->peak_layer = peak_layer_;
  for (std::size_t i = 0; i < live_by_category_.size(); ++i) {
    const auto category = static_cast<Category>(i);
    if (category == Category::adopted) continue;
    report->live_by_category[counted_as(category)] += live_by_category_[i];
    report->peak_by_category[counted_as(category)] += peak_by_category_[i];
  }
  report->limit_bytes = limit_;
  report->allocations = driver_allocations_;
}

std::uint64_t Allocator::peaks() const {
  MutexLock lock(mutex_);
  return peaks_;
}

void Allocator::name_peak(const std::string& what, const char* layer) {
  MutexLock lock(mutex_);
  peak_cause_ = what;
  peak_layer_ = layer;
}

bool Allocator::set_log(std::shared_ptr<MemoryLog> log) {
  MutexLock lock(mutex_);
  if (log && log_) return false;
  log_ = std::move(log);
  return true;
}

std::vector<MemoryArray> Allocator::in_use() const {
  std::vector<MemoryArray> arrays;
  MutexLock lock(mutex_);
  for (const Storage::Block* block : live_)
    if (block->category != Category::parameter && block->category != Category::optimizer)
      arrays.push_back({block->what, block->layer, counted_as(block->category), block->bytes});
  return arrays;
}

std::shared_ptr<const MemoryLog> Allocator::log(std::vector<MemoryArray> others) const {
  std::vector<MemoryArray> arrays = in_use();
  arrays.insert(arrays.end(), others.begin(), others.end());
  std::shared_ptr<MemoryLog> log;
  {
    MutexLock lock(mutex_);
    log = log_;
  }
  if (!log) log = std::make_shared<MemoryLog>(0);
  log->set_in_use(std::move(arrays));
  return log;
}

HeldPeak Allocator::held_peak() const {
  MutexLock lock(mutex_);
  return held_peak_;
}

// The three cheapest remedies, chosen by what holds most memory.
std::string Allocator::ways_out() const {
  std::size_t most = 0;
  for (std::size_t i = 0; i < live_by_category_.size(); ++i)
    if (i != static_cast<std::size_t>(Category::adopted) && live_by_category_[i] > live_by_category_[most]) most = i;
  const std::size_t activations = live_by_category_[static_cast<std::size_t>(Category::arena)];
  std::string text = "ways out: (1) a smaller batch";
  if (activations) text += " (half of it frees about " + bytes_text(activations / 2) + " of activations)";
  text += " or checkpoint() around the largest layers; (2) ";
  if (live_by_category_[most])
    text += std::string("let go of arrays, the most is held as ") + name_of(static_cast<Category>(most)) + ", " +
            bytes_text(live_by_category_[most]);
  else
    text += "a smaller array, for instance computed in pieces";
  return text + "; (3) a higher limit with set_memory_limit(), now " + bytes_text(limit_);
}

void Allocator::throw_out_of_memory(std::size_t need, const std::string& what, const std::string& reason) {
  MutexLock lock(mutex_);
  throw OutOfMemory(what + ": needs " + bytes_text(need) + " (" + std::to_string(need) + " bytes), " + reason + "; " +
                        bytes_text(held() - cached_) + " of " + bytes_text(limit_) + " are in use; " + ways_out(),
                    need, limit_);
}

void Allocator::claim(const void* pointer, std::size_t bytes, const std::string& what) {
  const auto begin = reinterpret_cast<std::uintptr_t>(pointer), end = begin + bytes;
  MutexLock lock(mutex_);
  auto next = claimed_.lower_bound(end);
  if (next != claimed_.begin() && std::prev(next)->second > begin)
    throw ArgumentError(what + ": the memory overlaps memory that this engine already holds or has adopted");
  claimed_.emplace(begin, end);
}

void Allocator::unclaim(const void* pointer) {
  MutexLock lock(mutex_);
  claimed_.erase(reinterpret_cast<std::uintptr_t>(pointer));
}

}  // namespace samebytes::detail

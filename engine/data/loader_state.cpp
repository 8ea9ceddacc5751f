#include "data/loader_state.h"

#include <algorithm>
#include <utility>

#include "samebytes/cores.h"
#include "samebytes/error.h"
#include "samebytes/log.h"
#include "samebytes/profile.h"

namespace samebytes::data {
namespace {

using detail::MutexLock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

constexpr std::uint32_t kCollateLane = 0xfffe;  // the last one belongs to a permutation

int worker_count(const LoaderOptions& options) {
  constexpr int kCoresPerWorker = 4;  // the others serve the device, which is often the same processor
  constexpr int kMostOnTheirOwn = 8;
  if (options.workers >= 0) return options.workers;
  if (!options.worker_cores.empty()) return std::min(kMostOnTheirOwn, static_cast<int>(options.worker_cores.size()));
  return std::max(1, static_cast<int>(allowed_cores().size()) / kCoresPerWorker);
}

BatchSampler make_batches(const DatasetPtr& dataset, const LoaderOptions& options) {
  if (!dataset) throw ArgumentError("loader: expected a data set, got none");
  if (options.slots < 1) throw ArgumentError("loader: slots must be 1 or more, got " + std::to_string(options.slots));
  if (options.most_slots != 0 && options.most_slots < options.slots)
    throw ArgumentError("loader: most_slots must be at least slots, " + std::to_string(options.slots) + ", or 0, got " +
                        std::to_string(options.most_slots));
  if (!options.worker_cores.empty())
    if (const std::vector<int> allowed = allowed_cores();
        !std::includes(allowed.begin(), allowed.end(), options.worker_cores.begin(), options.worker_cores.end()))
      throw ArgumentError("loader: worker_cores are some of " + core_list_text(allowed) + ", ascending, got " +
                          core_list_text(options.worker_cores));
  if (options.workers < -1)
    throw ArgumentError("loader: workers must be 0 or more, or -1, got " + std::to_string(options.workers));
  if (options.sampler && options.shuffle) throw ArgumentError("loader: expected shuffle or a sampler, got both");
  if (dataset->is_sequential() && (options.sampler || options.shuffle))
    throw ArgumentError("loader: a stream has its own order; got shuffle or a sampler");
  SamplerPtr sampler = options.sampler;
  if (!sampler) sampler = options.shuffle ? random(dataset->size(), options.seed) : sequential(dataset->size());
  const BatchSampler checked(sampler, options.batch);  // before drop_last turns too large a batch into an empty epoch
  return options.drop_last ? BatchSampler(drop_last(sampler, options.batch), options.batch) : checked;
}

TransformPtr make_transform(const DatasetPtr& dataset, const LoaderOptions& options) {
  if (options.transforms.empty()) return nullptr;
  TransformPtr transform = compose(options.transforms);
  transform->check(dataset->fields());
  return transform;
}

// The data set's arrays, if a batch of consecutive samples can be a view of their rows.
const std::vector<Array>* arrays_of(const Dataset& dataset, const LoaderOptions& options,
                                    const std::shared_ptr<detail::Context>& engine) {
  const std::vector<Array>* const arrays = dataset.arrays();
  if (arrays == nullptr || options.collate || !options.transforms.empty()) return nullptr;
  const bool are_ours = std::all_of(arrays->begin(), arrays->end(), [&](const Array& a) { return is_of(a, engine); });
  return are_ours ? arrays : nullptr;
}

bool are_neighbours(std::span<const std::int64_t> indices) {
  return std::adjacent_find(indices.begin(), indices.end(),
                            [](std::int64_t a, std::int64_t b) { return b != a + 1; }) == indices.end();
}

// Ends the filling of a batch's fields on every exit.
struct Filling {
  std::vector<Slot>& fields;
  ~Filling() {
    for (Slot& field : fields) field.end_fill();
  }
};

}  // namespace

Loader::State::State(std::shared_ptr<detail::Context> engine, DatasetPtr dataset, const LoaderOptions& options)
    : engine_(std::move(engine)),
      dataset_(std::move(dataset)),
      options_(options),
      workers_(worker_count(options)),
      batches_(make_batches(dataset_, options)),
      collate_(options.collate ? options.collate : default_collate()),
      transform_(make_transform(dataset_, options)),
      presented_(transform_ && transform_->moves() ? std::make_shared<Transformed>(dataset_, transform_, options.seed)
                                                   : nullptr),
      arrays_(arrays_of(*dataset_, options_, engine_)),
      depth_({.least = options.slots, .most = std::max(options.most_slots, options.slots)}) {
  std::vector<std::string> names;
  for (const FieldSpec& spec : collate_->fields(samples(), std::vector<std::int64_t>{0})) names.push_back(spec.name);
  names_ = std::make_shared<const std::vector<std::string>>(std::move(names));
  const MutexLock lock(mutex_);
  epoch_ = options.first_epoch;
}

std::int64_t Loader::State::epoch() const {
  const MutexLock lock(mutex_);
  return sought_ ? epoch_ : epoch_ + 1;
}

void Loader::State::seek(std::int64_t epoch, std::int64_t step) {
  const std::int64_t count = size();
  if (dataset_->is_sequential()) throw ArgumentError("loader: seek: a stream cannot be read from another place");
  if (epoch < 0 || step < 0 || (count != kEndless && step > count))
    throw ArgumentError("loader: seek: epoch 0 or more and step 0 to " + std::to_string(count) + ", got epoch " +
                        std::to_string(epoch) + " and step " + std::to_string(step));
  const MutexLock lock(mutex_);
  active_ = false;
  epoch_ = epoch;
  first_step_ = step;
  sought_ = true;
}

void Loader::State::begin_pass() {
  std::vector<std::unique_ptr<BatchSlot>> surplus;
  std::int64_t epoch = 0;
  std::size_t have = 0, wanted = 0;
  {
    const MutexLock lock(mutex_);
    active_ = false;
    while (filling_ > 0) for_loop_.wait(mutex_);
    for (const auto& [step, slot] : ready_) free_.push_back(slot);
    ready_.clear();
    error_ = nullptr;
    if (!sought_) {
      ++epoch_;
      first_step_ = 0;
    }
    sought_ = true;  // if this pass fails to begin, the next one starts here
    epoch = epoch_;
    wanted = std::min(static_cast<std::size_t>(depth_.slots()), most_slots_);
    while (slots_.size() > wanted && !free_.empty()) surplus.push_back(take_surplus());
    have = slots_.size();
    surplus_ = 0;
  }
  surplus.clear();
  dataset_->begin_pass(epoch);
  std::vector<std::unique_ptr<BatchSlot>> fresh;
  for (; size() != 0 && have < wanted; ++have) fresh.push_back(make_slot(epoch));
  const MutexLock lock(mutex_);
  for (std::unique_ptr<BatchSlot>& slot : fresh) {
    free_.push_back(slot.get());
    slots_.push_back(std::move(slot));
  }
  next_step_ = fill_step_ = turn_ = first_step_;
  end_step_ = size();
  sought_ = false;
  active_ = true;
  last_ = Clock::now();
  given_ = {};
  for_workers_.notify_all();
}

// For the pass's epoch only: a sampler may fix an epoch's order at its first use.
std::unique_ptr<Loader::State::BatchSlot> Loader::State::make_slot(std::int64_t epoch) const {
  auto slot = std::make_unique<BatchSlot>();
  for (const FieldSpec& spec : collate_->fields(samples(), batches_.at(epoch, 0)))
    slot->fields.emplace_back(engine_, arrays_ ? 0 : detail::bytes_of_field(spec),
                              "loader: '" + spec.name + "' of a batch");
  return slot;
}

bool Loader::State::has_work() const { return active_ && !error_ && (end_step_ == kEndless || fill_step_ < end_step_); }

Loader::State::BatchSlot* Loader::State::take_free() {
  BatchSlot* const slot = free_.front();
  free_.pop_front();
  slot->step = fill_step_++;
  ++filling_;
  return slot;
}

void Loader::State::work() {
  for (;;) {
    BatchSlot* slot = nullptr;
    std::unique_ptr<BatchSlot> surplus;
    {
      const MutexLock lock(mutex_);
      while (slot == nullptr && !surplus) {
        if (stopped_) return;
        if (!has_work()) {
          for_workers_.wait(mutex_);
        } else if (free_.empty()) {
          slot_was_wanted_ = true;
          const auto start = Clock::now();
          for_workers_.wait(mutex_);
          stats_.worker_wait_seconds += seconds_since(start);
        } else if (surplus_ > 0) {
          --surplus_;
          surplus = take_surplus();
        } else {
          slot = take_free();
        }
      }
    }
    if (slot != nullptr) fill(*slot);
  }
}

void Loader::State::stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  active_ = false;
  for_workers_.notify_all();
}

void Loader::State::fill(BatchSlot& slot) {
  const ProfileSpan span("fill batch");
  const auto start = Clock::now();
  Filled filled;
  std::exception_ptr error;
  try {
    filled = decode(slot);
  } catch (...) {
    error = std::current_exception();
  }
  const MutexLock lock(mutex_);
  --filling_;
  if (turn_ == slot.step) ++turn_;
  stats_.fill_seconds += seconds_since(start) - filled.wait_seconds;
  stats_.worker_wait_seconds += filled.wait_seconds;
  slot.samples = filled.samples;
  bool is_ready = false;
  if (error) {
    if (!error_ || slot.step < error_step_) {
      error_ = std::move(error);
      error_step_ = slot.step;
    }
  } else if (!filled.skipped) {
    const bool is_short = filled.samples < filled.wanted;
    is_ready = filled.samples > 0 && !(is_short && options_.drop_last);
    if (is_short && (end_step_ == kEndless || slot.step < end_step_)) end_step_ = slot.step + (is_ready ? 1 : 0);
  }
  if (is_ready)
    ready_[slot.step] = &slot;
  else
    free_.push_back(&slot);
  for_loop_.notify_all();
  if (dataset_->is_sequential() || !is_ready) for_workers_.notify_all();
}

Loader::State::Filled Loader::State::decode(BatchSlot& slot) {
  std::int64_t epoch = 0;
  {
    const MutexLock lock(mutex_);
    epoch = epoch_;  // does not change while a batch is being filled
    while (dataset_->is_sequential() && turn_ != slot.step) for_workers_.wait(mutex_);
    if (dataset_->is_sequential() && (error_ || (end_step_ != kEndless && slot.step >= end_step_)))
      return {.skipped = true};
  }
  const std::vector<std::int64_t> indices = batches_.at(epoch, slot.step);
  for (const std::int64_t index : indices)
    if (index < 0 || (dataset_->size() != kEndless && index >= dataset_->size()))
      throw ArgumentError("loader: the sampler gave sample " + std::to_string(index) + " of a data set of " +
                          std::to_string(dataset_->size()));
  const auto wanted = static_cast<std::int64_t>(indices.size());
  slot.shown = arrays_ && wanted > 0 && are_neighbours(indices) ? indices[0] : -1;
  if (slot.shown >= 0) {
    slot.usable = Clock::now();
    return {.samples = wanted, .wanted = wanted};
  }
  slot.specs = collate_->fields(samples(), indices);
  if (slot.specs.size() != slot.fields.size())
    throw ArgumentError("loader: collate gave " + std::to_string(slot.fields.size()) + " fields at first and " +
                        std::to_string(slot.specs.size()) + " in step " + std::to_string(slot.step));
  Filled filled{.wanted = wanted};
  std::vector<Field> batch;
  const Filling filling{slot.fields};
  for (std::size_t i = 0; i < slot.fields.size(); ++i) {
    const std::size_t need = detail::bytes_of_field(slot.specs[i]);
    if (slot.fields[i].bytes() < need)
      slot.fields[i] = Slot(engine_, need, "loader: '" + slot.specs[i].name + "' of a batch");
    const auto start = Clock::now();
    const std::span<std::byte> bytes = slot.fields[i].begin_fill();
    filled.wait_seconds += seconds_since(start);
    batch.push_back({bytes.first(need), slot.specs[i].shape, slot.specs[i].dtype, slot.specs[i].background});
  }
  slot.usable = Clock::now();
  const ReadSample read([&](std::int64_t index, std::span<const Field> dst, std::uint32_t view) {
    const std::uint32_t lane = view > 0 && transform_ ? view * transform_->lanes() : 0;
    const SequenceKey key{
        .seed = options_.seed, .epoch = epoch, .index = index, .lane = lane, .domain = RandomDomain::augmentation};
    if (presented_) return presented_->read_with(key, index, dst);
    if (!dataset_->read(index, dst)) return false;
    if (transform_) transform_->apply(dst, key);
    return true;
  });
  const SequenceKey key{.seed = options_.seed,
                        .epoch = epoch,
                        .index = slot.step,
                        .lane = kCollateLane,
                        .domain = RandomDomain::collation};
  filled.samples = collate_->fill(samples(), indices, read, batch, key);
  for (std::size_t i = 0; i < batch.size(); ++i) slot.specs[i].shape = batch[i].shape;
  return filled;
}

Loader::State::Action Loader::State::decide(BatchSlot*& slot) {
  for (;;) {
    if (!active_) return Action::end;
    if (error_ && error_step_ == next_step_) {
      active_ = false;
      std::rethrow_exception(std::exchange(error_, nullptr));
    }
    if (end_step_ != kEndless && next_step_ >= end_step_) {
      active_ = false;
      return Action::end;
    }
    if (const auto ready = ready_.find(next_step_); ready != ready_.end()) {
      slot = ready->second;
      slot->lent = static_cast<int>(slot->fields.size());
      ready_.erase(ready);
      ++next_step_;
      return Action::give;
    }
    const bool is_assigned = next_step_ < fill_step_;
    if (!is_assigned && free_.empty()) return Action::add_slot;
    if (!is_assigned && workers_ == 0) {
      slot = take_free();
      return Action::fill;
    }
    loop_waits_ = true;
    for_loop_.wait(mutex_);
  }
}

bool Loader::State::next(Batch& batch) {
  const ProfileSpan span("wait for batch");
  const auto start = Clock::now();
  {
    const MutexLock lock(mutex_);
    loop_waits_ = false;
    if (active_) stats_.seconds += std::chrono::duration<double>(start - last_).count();
  }
  // From `usable` on, the loop waited for decoding.
  const auto count_time = [&](Clock::time_point usable) SAMEBYTES_REQUIRES(mutex_) {
    last_ = Clock::now();
    usable = std::clamp(usable, start, last_);
    stats_.seconds += std::chrono::duration<double>(last_ - start).count();
    stats_.device_wait_seconds += std::chrono::duration<double>(usable - start).count();
    stats_.loop_wait_seconds += std::chrono::duration<double>(last_ - usable).count();
  };
  for (;;) {
    BatchSlot* slot = nullptr;
    Action action;
    {
      const MutexLock lock(mutex_);
      action = decide(slot);
    }
    switch (action) {
      case Action::end: {
        const MutexLock lock(mutex_);
        count_time(start);
        return false;
      }
      case Action::add_slot: add_slot(); break;
      case Action::fill: fill(*slot); break;
      case Action::give: {
        const auto usable = slot->usable;
        batch = lend(*slot);
        double waited = 0, seconds = 0;
        {
          const MutexLock lock(mutex_);
          const double before = stats_.loop_wait_seconds;
          count_time(usable);
          // The loop always waits for the first batch of a pass, whatever the number of slots.
          if (given_ != Clock::time_point{}) {
            waited = loop_waits_ ? stats_.loop_wait_seconds - before : 0;
            seconds = std::chrono::duration<double>(last_ - given_).count();
          }
          given_ = last_;
          ++stats_.steps;
          stats_.samples += batch.samples();
        }
        if (seconds > 0 && options_.most_slots > options_.slots) follow_depth(waited, seconds);
        return true;
      }
    }
  }
}

LoaderStats Loader::State::stats() const {
  const MutexLock lock(mutex_);
  LoaderStats stats = stats_;
  stats.slots = static_cast<int>(slots_.size());
  return stats;
}

void Loader::State::reset_stats() {
  const MutexLock lock(mutex_);
  stats_ = {};
  last_ = Clock::now();
}

}  // namespace samebytes::data

// The state of a Loader: which slot holds which batch. The loop and the workers share it, and the arrays of its batches
// keep it alive. A slot goes free -> filling -> ready -> lent -> free. Workers fill steps in order and the loop gets
// them in order, so if the next step is not being filled, every slot is lent.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/forks.h"
#include "core/mutex.h"
#include "data/batch_fields.h"
#include "data/prefetch_depth.h"
#include "data/transformed.h"
#include "samebytes/data/loader.h"
#include "samebytes/slot.h"

namespace samebytes::data {

using Clock = std::chrono::steady_clock;

class Loader::State : public std::enable_shared_from_this<Loader::State> {
 public:
  State(std::shared_ptr<detail::Context> engine, DatasetPtr dataset, const LoaderOptions& options);

  // For the loop.
  void check_process() const { process_.check("loader", "it was made"); }
  bool is_forked() const { return !process_.is_here(); }
  void begin_pass();
  bool next(Batch& batch);
  void seek(std::int64_t epoch, std::int64_t step);

  // A worker's main function: fills batches until stop().
  void work();
  void stop();

  const Dataset& dataset() const { return *dataset_; }
  // Input of the collate.
  const Dataset& samples() const { return presented_ ? *presented_ : *dataset_; }
  std::int64_t size() const { return batches_.size(); }
  std::int64_t epoch() const;
  LoaderPlace place() const;
  int workers() const { return workers_; }
  const std::vector<int>& worker_cores() const { return options_.worker_cores; }
  void limit_slots(int most);
  LoaderStats stats() const;
  void reset_stats();

 private:
  struct BatchSlot {
    std::vector<Slot> fields;
    std::vector<FieldSpec> specs;  // of the batch in it
    std::int64_t step = 0, samples = 0;
    std::int64_t shown = -1;   // first sample, if the batch is a view of the data set; -1: it is in `fields`
    Clock::time_point usable;  // when the device had released it, before it was filled
    int lent = 0;              // fields whose arrays are alive; guarded by mutex_
  };
  struct Filled {
    std::int64_t samples = 0, wanted = 0;
    double wait_seconds = 0;
    bool skipped = false;  // a stream ended or failed before this batch
  };
  enum class Action { give, fill, add_slot, end };

  Action decide(BatchSlot*& slot) SAMEBYTES_REQUIRES(mutex_);
  BatchSlot* take_free() SAMEBYTES_REQUIRES(mutex_);
  bool has_work() const SAMEBYTES_REQUIRES(mutex_);
  std::unique_ptr<BatchSlot> make_slot(std::int64_t epoch) const;
  void add_slot();
  // After each batch: adds or removes slots according to the measured waits.
  void follow_depth(double waited, double seconds);
  void widen(int slots);
  void fill(BatchSlot& slot);
  Filled decode(BatchSlot& slot);
  Batch lend(BatchSlot& slot);
  Batch show(const BatchSlot& slot, std::int64_t epoch) const;

  // Constant after construction.
  const detail::ProcessMark process_;
  const std::shared_ptr<detail::Context> engine_;
  const DatasetPtr dataset_;
  const LoaderOptions options_;
  const int workers_;
  const BatchSampler batches_;
  const CollatePtr collate_;
  const TransformPtr transform_;                        // null without transforms
  const std::shared_ptr<const Transformed> presented_;  // null if samples keep the data set's shapes
  const std::vector<Array>* const arrays_;              // batches of consecutive samples view these; null: no views
  std::shared_ptr<const std::vector<std::string>> names_;

  mutable detail::Mutex mutex_;
  detail::CondVar for_loop_;     // a batch is ready, or will never be
  detail::CondVar for_workers_;  // a slot is free, a turn has come, or a pass begins or ends
  std::vector<std::unique_ptr<BatchSlot>> slots_ SAMEBYTES_GUARDED_BY(mutex_);
  std::deque<BatchSlot*> free_ SAMEBYTES_GUARDED_BY(mutex_);  // longest free first
  std::map<std::int64_t, BatchSlot*> ready_ SAMEBYTES_GUARDED_BY(mutex_);
  // Removes an unused slot from the loader.
  std::unique_ptr<BatchSlot> take_out(BatchSlot* slot) SAMEBYTES_REQUIRES(mutex_);
  std::unique_ptr<BatchSlot> take_surplus() SAMEBYTES_REQUIRES(mutex_);  // the last one freed; requires a free slot
  bool has_too_many() const SAMEBYTES_REQUIRES(mutex_) { return slots_.size() > most_slots_; }
  std::size_t most_slots_ SAMEBYTES_GUARDED_BY(mutex_) = ~std::size_t{0};  // limit_slots()
  int filling_ SAMEBYTES_GUARDED_BY(mutex_) = 0;
  bool stopped_ SAMEBYTES_GUARDED_BY(mutex_) = false;
  bool active_ SAMEBYTES_GUARDED_BY(mutex_) = false;          // a pass is in progress
  std::int64_t epoch_ SAMEBYTES_GUARDED_BY(mutex_) = 0;       // of the pass, or of the next one
  std::int64_t first_step_ SAMEBYTES_GUARDED_BY(mutex_) = 0;  // of the next pass
  bool sought_ SAMEBYTES_GUARDED_BY(mutex_) = true;           // epoch_ and first_step_ belong to the next pass
  std::int64_t next_step_ SAMEBYTES_GUARDED_BY(mutex_) = 0;   // next step for the loop
  std::int64_t fill_step_ SAMEBYTES_GUARDED_BY(mutex_) = 0;   // next step to fill
  std::int64_t turn_ SAMEBYTES_GUARDED_BY(mutex_) = 0;        // step that may read a sequential source
  std::int64_t end_step_ SAMEBYTES_GUARDED_BY(mutex_) = 0;    // or kEndless
  std::exception_ptr error_ SAMEBYTES_GUARDED_BY(mutex_);
  std::int64_t error_step_ SAMEBYTES_GUARDED_BY(mutex_) = 0;
  bool told_ SAMEBYTES_GUARDED_BY(mutex_) = false;  // has logged that a slot was added
  PrefetchDepth depth_ SAMEBYTES_GUARDED_BY(mutex_);
  bool slot_was_wanted_ SAMEBYTES_GUARDED_BY(mutex_) = false;  // a worker waited for a slot since the last batch
  bool loop_waits_ SAMEBYTES_GUARDED_BY(mutex_) = false;       // the batch was not ready when the loop needed it
  int surplus_ SAMEBYTES_GUARDED_BY(mutex_) = 0;               // slots to remove
  Clock::time_point given_ SAMEBYTES_GUARDED_BY(mutex_);       // when the loop got the last batch
  LoaderStats stats_ SAMEBYTES_GUARDED_BY(mutex_);
  Clock::time_point last_ SAMEBYTES_GUARDED_BY(mutex_);  // when time was last counted
};

}  // namespace samebytes::data

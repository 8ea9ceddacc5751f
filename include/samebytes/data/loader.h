// Loader: batches of a data set as arrays, decoded straight into memory that the device reads. While the device works
// on one slot, worker threads fill the next one; a slot is used again when nobody holds its arrays and the last launch
// that reads them has completed. Order and content of the batches are a function of the seed alone, whatever the number
// of workers.
//   data::Loader batches(engine, mnist.train, {.batch = 64, .shuffle = true});
//   for (const auto& [image, label] : batches) ...            // one pass over the data: an epoch
// A loader is used by one thread at a time. What a worker throws comes out of the loop at the batch it belongs to.
// ~Loader waits for its workers; arrays of its batches may outlive it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/data/collate.h"
#include "samebytes/data/dataset.h"
#include "samebytes/data/sampler.h"
#include "samebytes/data/transform.h"

namespace samebytes {
class Engine;
}

namespace samebytes::data {

// The arrays of one step, each with a first axis of samples. Holds its slot, and so does every handle on one of them:
// keep copy(array).eval() or to_vector() of what is needed beyond the step. contiguous() gives the same handle back.
// Of a set over arrays (array_set.h) taken in order they are views of the set, to be read alone: mutable_host() throws.
class Batch {
 public:
  Batch() = default;
  Batch(std::vector<Array> arrays, std::shared_ptr<const std::vector<std::string>> names, std::int64_t epoch,
        std::int64_t step, std::int64_t samples)
      : arrays_(std::move(arrays)), names_(std::move(names)), epoch_(epoch), step_(step), samples_(samples) {}

  std::int64_t epoch() const { return epoch_; }      // from LoaderOptions::first_epoch
  std::int64_t step() const { return step_; }        // from 0 in each epoch
  std::int64_t samples() const { return samples_; }  // the last batch of an epoch may have fewer
  std::size_t field_count() const { return arrays_.size(); }

  // By place or by the field's name. Throws ArgumentError, naming the fields, where there is none.
  const Array& operator[](std::size_t field) const;
  const Array& operator[](std::string_view name) const;

  // Samples [begin, end) over the same bytes (share_rows, slot.h): a piece of the batch. Throws ArgumentError for
  // samples that it has not.
  Batch piece(std::int64_t begin, std::int64_t end) const;

  // All arrays: const auto [image, mask, label] = batch.as<3>(). Throws ArgumentError where the batch has not N.
  template <std::size_t N>
  std::array<Array, N> as() const {
    check_count(N);
    return [this]<std::size_t... I>(std::index_sequence<I...>) { return std::array<Array, N>{arrays_[I]...}; }
    (std::make_index_sequence<N>());
  }
  // For const auto& [image, label] : batches; throws ArgumentError unless there are two fields.
  template <std::size_t I>
  const Array& get() const {
    check_count(2);
    return arrays_[I];
  }

 private:
  void check_count(std::size_t wanted) const;
  std::vector<Array> arrays_;
  std::shared_ptr<const std::vector<std::string>> names_;
  std::int64_t epoch_ = 0, step_ = 0, samples_ = 0;
};

struct LoaderOptions {
  std::int64_t batch = 1;  // samples a step
  bool shuffle = false;    // a new order every epoch
  int slots = 2;           // batches in memory at a time; 1: no overlap
  // More than `slots`: the number follows what is measured. It grows up to this while the loop waits for batches and
  // workers wait for slots, and shrinks back to `slots` while nobody waits. The batches are the same whatever it is,
  // but the memory is not, so it is off unless asked for.
  int most_slots = 0;
  std::size_t most_slot_bytes = std::size_t{256}
                                << 20;  // ... of all of them together; `slots` of them there always are
  int workers = -1;                     // threads that decode; 0: the loop's own; -1: one, from eight cores on more
  bool drop_last = false;               // leave out a last batch that is not full
  std::uint64_t seed = 0;               // of the order and of the transforms
  std::vector<TransformPtr> transforms = {};  // applied to each sample after decoding, in order
  SamplerPtr sampler = {};                    // instead of shuffle
  CollatePtr collate = {};                    // instead of default_collate()
  std::int64_t first_epoch = 0;
  // The cores that workers may run on (cores.h); empty: any. The loop's own thread stays where it is.
  std::vector<int> worker_cores = {};
};

// Where time went since the start or reset_stats().
struct LoaderStats {
  std::int64_t steps = 0;          // batches given
  std::int64_t samples = 0;        // samples in them
  int slots = 0;                   // batches in memory now
  int extra_slots = 0;             // taken because the loop itself held all others
  int widened = 0, narrowed = 0;   // how often most_slots took more of them, and gave some back
  double seconds = 0;              // spent inside passes
  double loop_wait_seconds = 0;    // the loop waited for a batch to be decoded: the loader's fault
  double device_wait_seconds = 0;  // the loop waited until the device gave a slot back: the loader had nothing to do
  double worker_wait_seconds = 0;  // workers waited for a slot, from the loop or the device; sum over workers
  double fill_seconds = 0;         // decoding, transforms and collate; sum over workers
  // Share of the passes in which the loop waited for decoding.
  double stall_fraction() const { return seconds > 0 ? loop_wait_seconds / seconds : 0; }
};

// A batch of a run: step `step` of epoch `epoch`, both from 0.
struct LoaderPlace {
  std::int64_t epoch = 0;
  std::int64_t step = 0;  // the number of batches in an epoch: all of this epoch were given
};

class Loader {
 public:
  // Throws ArgumentError for wrong options: a batch larger than the set, no slots, transforms that do not fit the
  // fields, shuffling a source without end. Nothing is allocated and no thread started before the first pass.
  Loader(Engine& engine, DatasetPtr dataset, const LoaderOptions& options = {});
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  class Iterator {
   public:
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    const Batch& operator*() const { return batch_; }
    const Batch* operator->() const { return &batch_; }
    Iterator& operator++();
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return it.loader_ == nullptr; }

   private:
    friend class Loader;
    Iterator(Loader* loader, std::shared_ptr<void> pass) : loader_(loader), pass_(std::move(pass)) { ++*this; }
    Loader* loader_;              // null at the end
    std::shared_ptr<void> pass_;  // there as long as an iterator is within it
    Batch batch_;
  };

  // Begins a pass; an earlier one that was left early ends here. Each pass is one epoch. A loader has one pass at a
  // time: while the iterator of another is still there, as in a loop inside a loop, begin() throws ArgumentError; use a
  // second loader. Throws what workers throw; OutOfMemory where arrays of earlier batches are still held and no memory
  // for another is left.
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

  std::int64_t size() const;   // batches in an epoch, or kEndless
  std::int64_t epoch() const;  // that the next pass will be
  const Dataset& dataset() const;
  int workers() const;
  // The next pass is `epoch` and begins at `step`, at once however far that is. Throws ArgumentError for a stream, or a
  // step beyond the epoch.
  void seek(std::int64_t epoch, std::int64_t step = 0);
  // The batch that comes next, whatever was prepared ahead: seek() to it makes another loader of the same options go on
  // with the same batches. Inside a loop it is the one after the batch being looked at, after a pass the first one of
  // the next.
  LoaderPlace place() const;

  // At most so many batches in memory from now on, whatever the options say: those beyond go as soon as nobody holds
  // them. What the loop gets stays the same. Throws ArgumentError for fewer than 1.
  void limit_slots(int most);

  LoaderStats stats() const;
  void reset_stats();

 private:
  class State;
  class Workers;
  bool next(Batch& batch);
  std::shared_ptr<State> state_;
  std::unique_ptr<Workers> workers_;
  std::weak_ptr<void> pass_;  // that is not finished
};

}  // namespace samebytes::data

template <>
struct std::tuple_size<samebytes::data::Batch> : std::integral_constant<std::size_t, 2> {};
template <std::size_t I>
struct std::tuple_element<I, samebytes::data::Batch> {
  using type = samebytes::Array;
};

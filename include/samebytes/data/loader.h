// Loader: yields batches of a data set as arrays, decoded straight into memory that the device reads. While the device
// works on one slot, worker threads fill the next one; a slot is reused once its arrays have no handles and the last
// launch that reads them has completed. Order and content of the batches depend on the seed alone, not on the number of
// workers.
//   data::Loader batches(engine, mnist.train, {.batch = 64, .shuffle = true});
//   for (const auto& [image, label] : batches) ...            // one pass over the data: an epoch
// Use a loader from one thread at a time. The loop rethrows an exception of a worker at the batch it belongs to.
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

// The arrays of one step, each with a first axis of samples. A Batch and every handle on its arrays keep the slot in
// use: for values needed beyond the step keep copy(array).eval() or to_vector(); contiguous() returns the same handle.
// Batches of a set over arrays (array_set.h) read in order are read-only views of the set: mutable_host() throws.
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

  // By index or by the field's name. Throws ArgumentError, listing the fields, if it does not exist.
  const Array& operator[](std::size_t field) const;
  const Array& operator[](std::string_view name) const;

  // Samples [begin, end) over the same bytes (share_rows, slot.h): a piece of the batch. Throws ArgumentError if the
  // range is outside the batch.
  Batch piece(std::int64_t begin, std::int64_t end) const;

  // All arrays: const auto [image, mask, label] = batch.as<3>(). Throws ArgumentError unless the batch has N fields.
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
  std::int64_t batch = 1;  // samples per step
  bool shuffle = false;    // a new order every epoch
  int slots = 2;           // batches in memory at a time; 1: no overlap
  // If above `slots`, the number of slots adapts to measured waits: it grows up to this while the loop waits for
  // batches and workers wait for slots, and shrinks back to `slots` while neither waits. The batches stay the same, but
  // the memory use does not; 0: off.
  int most_slots = 0;
  std::size_t most_slot_bytes = std::size_t{256}
                                << 20;  // limit on their total size; `slots` of them are always allowed
  int workers = -1;                     // decoding threads; 0: the loop's own thread; -1: one, more on 8 cores or more
  bool drop_last = false;               // omits a last batch that is not full
  std::uint64_t seed = 0;               // for the order and the transforms
  std::vector<TransformPtr> transforms = {};  // applied to each sample after decoding, in order
  SamplerPtr sampler = {};                    // replaces shuffle
  CollatePtr collate = {};                    // replaces default_collate()
  std::int64_t first_epoch = 0;
  // The cores that workers may run on (cores.h); empty: any. The loop's own thread is not moved.
  std::vector<int> worker_cores = {};
};

// Time use since the start or reset_stats().
struct LoaderStats {
  std::int64_t steps = 0;          // batches yielded
  std::int64_t samples = 0;        // samples in them
  int slots = 0;                   // batches in memory now
  int extra_slots = 0;             // added because the loop itself held all others
  int widened = 0, narrowed = 0;   // how often the loader added slots (most_slots) and removed them
  double seconds = 0;              // spent inside passes
  double loop_wait_seconds = 0;    // the loop waited for decoding: the loader is the bottleneck
  double device_wait_seconds = 0;  // the loop waited for the device to release a slot
  double worker_wait_seconds = 0;  // workers waited for a slot, from the loop or the device; sum over workers
  double fill_seconds = 0;         // decoding, transforms and collate; sum over workers
  // Share of the passes in which the loop waited for decoding.
  double stall_fraction() const { return seconds > 0 ? loop_wait_seconds / seconds : 0; }
};

// The position of a batch in a run: step `step` of epoch `epoch`, both from 0.
struct LoaderPlace {
  std::int64_t epoch = 0;
  std::int64_t step = 0;  // equal to the number of batches per epoch: the epoch is complete
};

class Loader {
 public:
  // Throws ArgumentError for invalid options: a batch larger than the set, no slots, transforms that do not fit the
  // fields, shuffling an endless source. Allocates no memory and starts no thread before the first pass.
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
    std::shared_ptr<void> pass_;  // alive while an iterator is inside the pass
    Batch batch_;
  };

  // Begins a pass, which is one epoch; ends an earlier pass that was left early. A loader has one pass at a time:
  // begin() throws ArgumentError while an iterator of another pass exists, as in a nested loop; use a second loader
  // there. Throws what workers throw, and OutOfMemory if handles hold the arrays of earlier batches and no memory is
  // left for another.
  Iterator begin();
  std::default_sentinel_t end() const { return {}; }

  std::int64_t size() const;   // batches in an epoch, or kEndless
  std::int64_t epoch() const;  // of the next pass
  const Dataset& dataset() const;
  int workers() const;
  // Makes the next pass begin at `step` of `epoch`, in constant time. Throws ArgumentError for a stream and for a step
  // beyond the epoch.
  void seek(std::int64_t epoch, std::int64_t step = 0);
  // The next batch that the loop will get, regardless of batches prepared ahead: another loader with the same options
  // continues with the same batches after seek() to it. Inside a loop it is the one after the current batch; after a
  // pass, the first one of the next pass.
  LoaderPlace place() const;

  // Limits the batches in memory to `most` from now on, overriding the options; excess slots are freed once they have
  // no handles. The loop gets the same batches. Throws ArgumentError if most < 1.
  void limit_slots(int most);

  LoaderStats stats() const;
  void reset_stats();

 private:
  class State;
  class Workers;
  bool next(Batch& batch);
  std::shared_ptr<State> state_;
  std::unique_ptr<Workers> workers_;
  std::weak_ptr<void> pass_;  // unfinished pass
};

// The arrays of every batch of a loader or another range of batches, for sets of any number of fields:
//   for (const auto& [image, mask, label] : fields<3>(batches)) ...
// Throws ArgumentError, while it runs, unless a batch has N fields. The batches must outlive it.
template <std::size_t N, class Batches>
class FieldsRange {
 public:
  explicit FieldsRange(Batches& batches) : batches_(batches) {}
  template <class Iterator>
  struct Position {
    Iterator at;
    std::array<Array, N> operator*() const { return (*at).template as<N>(); }
    Position& operator++() {
      ++at;
      return *this;
    }
    template <class End>
    bool operator!=(const End& end) const {
      return !(at == end);
    }
  };
  auto begin() const { return Position<decltype(batches_.begin())>{batches_.begin()}; }
  auto end() const { return batches_.end(); }

 private:
  Batches& batches_;
};
template <std::size_t N, class Batches>
FieldsRange<N, Batches> fields(Batches& batches) {
  return FieldsRange<N, Batches>(batches);
}

}  // namespace samebytes::data

template <>
struct std::tuple_size<samebytes::data::Batch> : std::integral_constant<std::size_t, 2> {};
template <std::size_t I>
struct std::tuple_element<I, samebytes::data::Batch> {
  using type = samebytes::Array;
};

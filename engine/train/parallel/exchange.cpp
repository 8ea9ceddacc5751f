#include "train/parallel/exchange.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "graph/launch.h"
#include "graph/op.h"
#include "samebytes/memory.h"

namespace samebytes::train::parallel {
namespace {

using samebytes::detail::Hasher;
using samebytes::detail::Launch;
using samebytes::detail::Op;
using samebytes::detail::Operand;
using samebytes::detail::Result;

using Pointers = std::function<void*(Operand)>;

std::shared_ptr<Exchange> still_there(const std::weak_ptr<Exchange>& exchange) {
  if (auto there = exchange.lock()) return there;
  throw ArgumentError("distributed: this gradient was made for a DataParallel that is gone");
}

// Inputs and results: the gradients of a bucket. Nothing moves where each is made in its result's place. One input more
// is what is watched.
class SendBucket final : public Op {
 public:
  SendBucket(std::weak_ptr<Exchange> exchange, std::uint64_t id, std::size_t bucket, bool watches)
      : Op({.may_overwrite = {.result = 0, .input = 0}}),
        exchange_(std::move(exchange)),
        id_(id),
        bucket_(bucket),
        watches_(watches) {}
  std::string_view name() const override { return "send_gradients"; }
  void hash(Hasher& hasher) const override {
    hasher.add(id_);
    hasher.add(static_cast<std::uint64_t>(bucket_) << 1 | static_cast<std::uint64_t>(watches_));
  }

  void launch(Launch& run) const override {
    std::vector<Operand> from, to;
    std::vector<std::size_t> bytes;
    const int gradients = run.src_count() - (watches_ ? 1 : 0);
    for (int i = 0; i < gradients; ++i) {
      if (run.src_shape(i).size() == 0) continue;
      from.push_back(run.src(i));
      to.push_back(run.dst(i));
      bytes.push_back(static_cast<std::size_t>(run.src_shape(i).size()) * bytes_of(run.src_dtype(i)));
    }
    if (watches_) from.push_back(run.src(gradients));
    // In the order of this thread: other messages of the group are told of by it, too, and in the same order
    // everywhere.
    run.host_call(
        std::string(name()), from, to,
        [exchange = exchange_, bucket = bucket_, watches = watches_, dtype = run.src_dtype(0), from, to,
         bytes](const Pointers& pointer) {
          const auto there = still_there(exchange);
          std::optional<double> watched;
          if (watches) watched = *static_cast<const float*>(pointer(from.back()));
          std::vector<Piece> regions;
          for (std::size_t i = 0; i < to.size(); ++i) {
            const void* const src = pointer(from[i]);
            void* const dst = pointer(to[i]);
            if (src != dst) {
              std::memcpy(dst, src, bytes[i]);
              there->count_copied(bytes[i]);
            }
            regions.push_back({static_cast<std::byte*>(dst), bytes[i]});
          }
          there->send_bucket(bucket, std::move(regions), dtype, watched);
        },
        true, [exchange = exchange_] { still_there(exchange)->give_up(); });
  }

 private:
  std::weak_ptr<Exchange> exchange_;
  std::uint64_t id_;
  std::size_t bucket_;
  bool watches_;
};

// Inputs: the flat gradient, in whose place the result lies, and its parts, which keep their bytes until here.
class WaitForGradients final : public Op {
 public:
  WaitForGradients(std::weak_ptr<Exchange> exchange, std::uint64_t id, std::vector<std::int64_t> offsets)
      : Op({.in_place = {.result = 0, .input = 0}}),
        exchange_(std::move(exchange)),
        id_(id),
        offsets_(std::move(offsets)) {}
  std::string_view name() const override { return "wait_for_gradients"; }
  void hash(Hasher& hasher) const override {
    hasher.add(id_);
    for (const std::int64_t offset : offsets_) hasher.add(static_cast<std::uint64_t>(offset));
  }

  void launch(Launch& run) const override {
    struct Part {
      Operand operand;
      std::size_t offset, bytes;
    };
    std::vector<Part> parts;
    std::vector<Operand> reads{run.src(0)};
    const std::size_t width = bytes_of(run.dst_dtype());
    for (int i = 1; i < run.src_count(); ++i) {
      if (run.src_shape(i).size() == 0) continue;
      reads.push_back(run.src(i));
      parts.push_back({run.src(i), static_cast<std::size_t>(offsets_[static_cast<std::size_t>(i - 1)]) * width,
                       static_cast<std::size_t>(run.src_shape(i).size()) * width});
    }
    run.host_call(
        std::string(name()), reads, {run.dst()},
        [exchange = exchange_, flat = run.dst(), parts](const Pointers& pointer) {
          const auto there = still_there(exchange);
          there->wait_for_all();
          // A part that could not lie in the flat gradient was copied there before its sum had come.
          std::byte* const begin = static_cast<std::byte*>(pointer(flat));
          for (const Part& part : parts) {
            const void* const src = pointer(part.operand);
            if (src == begin + part.offset) continue;
            std::memcpy(begin + part.offset, src, part.bytes);
            there->count_copied(part.bytes);
          }
        },
        true);
  }

 private:
  std::weak_ptr<Exchange> exchange_;
  std::uint64_t id_;
  std::vector<std::int64_t> offsets_;
};

std::vector<Piece> pieces_of(std::vector<StepWord>& words) {
  std::vector<Piece> pieces;
  pieces.reserve(words.size());
  for (StepWord& word : words) pieces.push_back({reinterpret_cast<std::byte*>(&word), sizeof word});
  return pieces;
}

std::uint64_t next_id() {
  static std::atomic<std::uint64_t> count{0};
  return ++count;
}

}  // namespace

StepWords::StepWords(Communicator& communicator, const StepWord& own)
    : own_(own),
      words_(static_cast<std::size_t>(communicator.size())),
      gather_(communicator, {reinterpret_cast<std::byte*>(&own_), sizeof own_}, pieces_of(words_)) {}

Job::Progress StepWords::advance(distributed::detail::Transport& transport) {
  const Progress progress = gather_.advance(transport);
  if (progress != Progress::done) return progress;
  for (std::size_t rank = 0; rank < words_.size(); ++rank) {
    if (words_[rank].signature != own_.signature)
      throw DistributedError("distributed: rank " + std::to_string(rank) +
                             " builds another graph than this one: models and steps must be the same on all ranks");
    samples_ += words_[rank].samples;
    stops_ = stops_ || words_[rank].stops != 0;
  }
  if (samples_ <= 0) throw DistributedError("distributed: no rank has a sample in this step");
  for (const StepWord& word : words_) weights_.push_back(word.samples / samples_);
  return progress;
}

Exchange::Exchange(std::shared_ptr<Communicator> communicator, bool overlaps)
    : communicator_(std::move(communicator)), overlaps_(overlaps), id_(next_id()) {}

void Exchange::begin_step(const StepWord& word) {
  buckets_ = 0;
  words_ = std::make_shared<StepWords>(*communicator_, word);
  communicator_->start(words_);
  ++begun_steps_;
}

std::vector<Array> Exchange::sent(std::span<const Array> gradients, const Array& watched) {
  std::vector<Result> results;
  for (const Array& gradient : gradients) results.push_back({gradient.shape(), gradient.dtype()});
  std::vector<Array> inputs(gradients.begin(), gradients.end());
  if (watched.defined()) inputs.push_back(watched);
  return samebytes::detail::make_arrays(
      samebytes::detail::make_op<SendBucket>(weak_from_this(), id_, buckets_++, watched.defined()), results, inputs);
}

Array Exchange::settled(const Array& flat, std::span<const Array> parts, std::span<const std::int64_t> offsets) {
  if (!overlaps_) return flat;
  std::vector<Array> inputs{flat};
  inputs.insert(inputs.end(), parts.begin(), parts.end());
  return samebytes::detail::make_array(
      samebytes::detail::make_op<WaitForGradients>(weak_from_this(), id_,
                                                   std::vector<std::int64_t>(offsets.begin(), offsets.end())),
      flat.shape(), flat.dtype(), inputs);
}

std::shared_ptr<AllReduce> Exchange::start(std::vector<Piece> regions, Dtype dtype) {
  auto job = std::make_shared<AllReduce>(*communicator_, std::move(regions), dtype, Combining::Kind::weighted,
                                         [words = words_] { return words->weights(); });
  communicator_->start(job);
  return job;
}

void Exchange::start_watched(double value) {
  watched_ = value;
  under_way_.push_back(start({{reinterpret_cast<std::byte*>(&watched_), sizeof watched_}}, f64));
}

void Exchange::send_bucket(std::size_t bucket, std::vector<Piece> regions, Dtype dtype, std::optional<double> watched) {
  if (bucket == 0) {
    begun_ = Clock::now();
    stats_.buckets = 0;
    ++stats_.steps;
  }
  ++stats_.buckets;
  under_way_.push_back(start(std::move(regions), dtype));
  if (watched) start_watched(*watched);
  if (!overlaps_) wait_for_all();
}

void Exchange::wait_for_all() {
  if (under_way_.empty()) return;
  const auto before = Clock::now();
  for (const auto& job : under_way_) {
    communicator_->wait(job);
    stats_.bytes_sent += job->bytes_sent();
  }
  under_way_.clear();
  const auto now = Clock::now();
  const auto seconds = [](Clock::duration duration) { return std::chrono::duration<double>(duration).count(); };
  stats_.wait_seconds += seconds(now - before);
  stats_.exchange_seconds += seconds(now - (overlaps_ ? begun_ : before));
}

void Exchange::drain() noexcept {
  for (const auto& job : under_way_) try {
      communicator_->wait(job);
    } catch (const DistributedError&) {  // then nothing moves any more
    }
  under_way_.clear();
}

void Exchange::give_up() noexcept {
  drain();
  communicator_->give_up(
      "distributed: a step of this rank has failed, and with it the group: the other ranks wait for what it did not "
      "send. Start the run again, from its last checkpoint");
}

void Exchange::reduce_now(std::span<const Array> arrays, std::optional<double> watched) {
  begun_ = Clock::now();
  ++stats_.steps;
  stats_.buckets = static_cast<std::int64_t>(arrays.size());
  if (watched) start_watched(*watched);
  for (const Array& array : arrays) {
    const samebytes::detail::Borrow view(array, true, __FILE__, __LINE__);
    const std::size_t bytes = static_cast<std::size_t>(array.size()) * bytes_of(array.dtype());
    under_way_.push_back(start({{static_cast<std::byte*>(view.data()), bytes}}, array.dtype()));
    wait_for_all();
  }
}

}  // namespace samebytes::train::parallel

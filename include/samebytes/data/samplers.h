// More samplers (sampler.h has the plain ones): parts of a set, weights, classes, hard examples, groups of similar
// samples, a curriculum, shares of several processes. Like all samplers they are functions of (seed, epoch, position):
// any batch of any epoch can be asked for at once, with any number of workers, and training resumes anywhere. A
// position costs O(1); where an epoch's order has to be laid out first, its docstring says so, and that happens once an
// epoch. All throw ArgumentError for wrong options.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "samebytes/data/sampler.h"
#include "samebytes/host_array.h"

namespace samebytes::data {

struct SubsetOptions {
  bool shuffle = true;  // false: in the order given
  std::uint64_t seed = 0;
};
// These samples, each once an epoch (twice where an index comes twice).
SamplerPtr subset(std::vector<std::int64_t> indices, const SubsetOptions& options = {});

struct WeightedOptions {
  std::int64_t count = 0;   // positions in an epoch; 0: one for each weight
  bool replacement = true;  // false: no sample twice in an epoch; count is at most the number of weights above 0
  std::uint64_t seed = 0;
};
// Sample i with probability weights[i] / sum. With replacement: an alias table (A. Walker, ACM TOMS 3, 1977; M. Vose,
// IEEE TSE 17, 1991). Without: the order of -log(u) / weight (P. Efraimidis, P. Spirakis, IPL 97, 2006), laid out for
// each epoch in O(n log n); count 0 then means every weight above 0. Weights are finite, 0 or more, not all 0.
SamplerPtr weighted(std::span<const double> weights, const WeightedOptions& options = {});

// Every sample once an epoch, classes spread evenly: among the first p positions a class has its share of p to within
// less than one sample, so every batch looks like the whole set. Within a class the order is random. labels: the class
// of each sample, 0 or more. (The schedule is G. Steiner's and S. Yeomans', Management Science 39, 1993: earliest due
// date.)
SamplerPtr stratified(std::span<const std::int32_t> labels, std::uint64_t seed = 0);

struct BalancedOptions {
  std::int64_t count = 0;  // positions in an epoch; 0: one for each sample
  std::uint64_t seed = 0;
};
// All classes equally often: each stretch of as many positions as there are classes has each class once, in random
// order. A class goes through all of its samples before one comes again, on into the next epoch, so small classes
// repeat and large ones are spread over epochs. Classes without samples do not count.
SamplerPtr balanced(std::span<const std::int32_t> labels, const BalancedOptions& options = {});

struct HardExamplesOptions {
  double momentum =
      0.9;             // a sample's loss becomes momentum * before + (1 - momentum) * new; the first one is taken whole
  double floor = 0.1;  // each sample has at least floor / n of the probability, above 0 to 1
  std::uint64_t seed = 0;
};
// Samples with a high loss more often: with replacement, probability floor / n + (1 - floor) loss / sum of losses. A
// sample not seen yet counts with the mean of those seen. The weights of an epoch are those at the time its first
// sample is asked for, so that feeding during an epoch, from any thread, changes the next one alone and workers change
// nothing.
//   auto hard = std::make_shared<data::HardExamples>(set->size());
//   data::Loader batches(engine, data::with_index(set), {.batch = 64, .sampler = hard});
//   for (const auto& batch : batches) ... hard->feed(batch["index"].to_vector<std::int32_t>(), losses);
class HardExamples final : public Sampler {
 public:
  explicit HardExamples(std::int64_t size, const HardExamplesOptions& options = {});
  ~HardExamples() override;
  std::int64_t size() const override;
  std::int64_t at(std::int64_t epoch, std::int64_t position) const override;

  // losses [n]: of these samples, 0 or more. Throws ArgumentError for unequal numbers, an index outside of the set, a
  // loss that is negative or not finite; then nothing has changed.
  void feed(std::span<const std::int32_t> indices, std::span<const float> losses);

  // What a checkpoint keeps: the losses now (-1: not seen), and the weights of the epoch that is under way.
  struct State {
    std::vector<float> losses;
    std::int64_t epoch = -1;  // -1: none has begun
    std::vector<double> weights;
  };
  State state() const;
  void restore(const State& state);  // throws ArgumentError for another number of samples

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The set with one more field at the end, "index" [] i32: which sample it is.
DatasetPtr with_index(DatasetPtr source);

struct GroupOptions {
  std::int64_t batch = 1;  // the loader's
  std::uint64_t seed = 0;
};
// Similar samples in one batch: features [n, D] (or [n]) f32, cut into groups of `batch` by halving the set again and
// again along its widest axis (J. Bentley, "Multidimensional binary search trees", CACM 18, 1975). Each sample comes
// once an epoch; groups come in random order, as do the samples within; the group that is not full comes last. O(n log
// n) once.
SamplerPtr proximity(const HostArray& features, const GroupOptions& options);

struct BucketedOptions {
  std::int64_t batch = 1;   // the loader's
  std::int64_t pool = 100;  // batches that are sorted together: more make lengths more alike and the order less random
  std::uint64_t seed = 0;
};
// Samples of similar length in one batch: the shuffled set is cut into pools, each sorted by length and cut into
// batches, and the batches of all pools are shuffled. Each sample once an epoch; the batch that is not full comes last.
// Laid out for each epoch in O(n log n).
SamplerPtr bucketed(std::span<const std::int64_t> lengths, const BucketedOptions& options);

struct CurriculumOptions {
  std::int64_t epochs = 10;  // from this epoch on all samples take part
  double floor = 0.2;        // share of the samples in epoch 0, the easiest, above 0 to 1
  double power = 1;          // share = floor + (1 - floor) (epoch / epochs)^power; 1: linear, below 1: faster at first
  std::uint64_t seed = 0;
};
// Easy samples first (Y. Bengio et al., "Curriculum learning", ICML 2009): epoch e takes part of the samples, in order
// of difficulty, never fewer than the epoch before and never none. An epoch always has n positions: while only m take
// part, each of them comes n / m times, rounded up or down, before it comes again in another random order.
SamplerPtr curriculum(std::span<const float> difficulty, const CurriculumOptions& options = {});
// How many of n samples take part.
std::int64_t curriculum_count(std::int64_t n, std::int64_t epoch, const CurriculumOptions& options);

struct DistributedOptions {
  std::int64_t rank = 0;  // of this process
  std::int64_t ranks = 1;
  bool drop = false;  // leave out the last positions that do not go round; false: begin again with the first ones
  // 0: the epoch is dealt out as one. Else each batch of so many positions is: its processes' loaders then take batches
  // of distributed_batch(), and together they have the very batches of one process, the incomplete last one too.
  std::int64_t batch = 0;
};
// Every ranks-th position of the inner sampler: together the processes see each of its samples once, but for what is
// dropped or comes twice so that all have the same number. All processes use the same inner sampler and seed.
SamplerPtr distributed(SamplerPtr inner, const DistributedOptions& options);
// A process's share of a batch, rounded up.
std::int64_t distributed_batch(const DistributedOptions& options);
// How many of a process's positions in batch `step` of an epoch are its own, the first ones; what follows was repeated
// to make all shares alike. 0 where the batch has fewer positions than there are processes before it. `size` is the
// inner sampler's. Requires: a batch.
std::int64_t distributed_samples(std::int64_t size, const DistributedOptions& options, std::int64_t step);

}  // namespace samebytes::data

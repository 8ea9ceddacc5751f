// More samplers (sampler.h has the basic ones): parts of a set, weights, classes, hard examples, groups of similar
// samples, a curriculum, shares of several processes. Like all samplers they are functions of (seed, epoch, position):
// they compute any batch of any epoch directly, with any number of workers, and training can resume anywhere. A
// position costs O(1); a sampler that first lays out the order of an epoch, once per epoch, says so below. All throw
// ArgumentError for invalid options.
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
  bool shuffle = true;  // false: in the given order
  std::uint64_t seed = 0;
};
// These samples, each once per epoch (twice if its index appears twice).
SamplerPtr subset(std::vector<std::int64_t> indices, const SubsetOptions& options = {});

struct WeightedOptions {
  std::int64_t count = 0;   // positions in an epoch; 0: one per weight
  bool replacement = true;  // false: no sample twice in an epoch; count must not exceed the number of weights above 0
  std::uint64_t seed = 0;
};
// Sample i with probability weights[i] / sum. With replacement: an alias table (A. Walker, ACM TOMS 3, 1977; M. Vose,
// IEEE TSE 17, 1991). Without: the order of -log(u) / weight (P. Efraimidis, P. Spirakis, IPL 97, 2006), laid out for
// each epoch in O(n log n); count 0 then means every weight above 0. Weights must be finite, 0 or more, and not all 0.
SamplerPtr weighted(std::span<const double> weights, const WeightedOptions& options = {});

// Every sample once per epoch, with classes spread evenly: the count of a class among the first p positions differs
// from its share of p by less than one sample, so every batch represents the whole set. Within a class the order is
// random. labels: the class of each sample, 0 or more. (The schedule is G. Steiner's and S. Yeomans', Management
// Science 39, 1993: earliest due date.)
SamplerPtr stratified(std::span<const std::int32_t> labels, std::uint64_t seed = 0);

struct BalancedOptions {
  std::int64_t count = 0;  // positions in an epoch; 0: one per sample
  std::uint64_t seed = 0;
};
// All classes equally often: with C classes, each run of C positions has each class once, in random order. A class uses
// all its samples before it repeats one, also across epochs, so small classes repeat and large ones extend over several
// epochs. Classes without samples are ignored.
SamplerPtr balanced(std::span<const std::int32_t> labels, const BalancedOptions& options = {});

struct HardExamplesOptions {
  double momentum = 0.9;  // a new loss counts (1 - momentum), a first one fully
  double floor = 0.1;     // each sample has probability floor / n or more; in (0, 1]
  std::uint64_t seed = 0;
};
// Draws samples with a high loss more often: with replacement and probability floor / n + (1 - floor) loss / sum of
// losses. A sample not seen yet counts with the mean loss of those seen. The first read of an epoch fixes its weights,
// so feed() during an epoch, from any thread, affects only the next one, and the number of workers has no effect.
//   auto hard = std::make_shared<data::HardExamples>(set->size());
//   data::Loader batches(engine, data::with_index(set), {.batch = 64, .sampler = hard});
//   for (const auto& batch : batches) ... hard->feed(batch["index"].to_vector<std::int32_t>(), losses);
class HardExamples final : public Sampler {
 public:
  explicit HardExamples(std::int64_t size, const HardExamplesOptions& options = {});
  ~HardExamples() override;
  std::int64_t size() const override;
  std::int64_t at(std::int64_t epoch, std::int64_t position) const override;

  // losses [n]: those of the samples `indices`, 0 or more. Throws ArgumentError, without any change, for unequal sizes,
  // an index outside the set, and a loss that is negative or not finite.
  void feed(std::span<const std::int32_t> indices, std::span<const float> losses);

  // For checkpoints: the current losses (-1: not seen) and the weights of the current epoch.
  struct State {
    std::vector<float> losses;
    std::int64_t epoch = -1;  // -1: none has begun
    std::vector<double> weights;
  };
  State state() const;
  void restore(const State& state);  // throws ArgumentError if the number of samples differs

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The set with an additional last field "index" [] i32, the index of the sample.
DatasetPtr with_index(DatasetPtr source);

struct GroupOptions {
  std::int64_t batch = 1;  // the loader's
  std::uint64_t seed = 0;
};
// Similar samples in one batch: features [n, D] (or [n]) f32, cut into groups of `batch` by repeatedly halving the set
// along its widest axis (J. Bentley, "Multidimensional binary search trees", CACM 18, 1975). Each sample appears once
// per epoch; groups, and the samples within them, are in random order; the group that is not full is last. Costs O(n
// log n) once.
SamplerPtr proximity(const HostArray& features, const GroupOptions& options);

struct BucketedOptions {
  std::int64_t batch = 1;   // the loader's
  std::int64_t pool = 100;  // batches that are sorted together; a larger pool: more equal lengths, less random order
  std::uint64_t seed = 0;
};
// Samples of similar length in one batch: the shuffled set is cut into pools, each sorted by length and cut into
// batches, and the batches of all pools are shuffled. Each sample appears once per epoch; the batch that is not full is
// last. Laid out for each epoch in O(n log n).
SamplerPtr bucketed(std::span<const std::int64_t> lengths, const BucketedOptions& options);

struct CurriculumOptions {
  std::int64_t epochs = 10;  // from this epoch on all samples are used
  double floor = 0.2;        // share of the samples in epoch 0, the easiest ones; in (0, 1]
  double power = 1;          // share = floor + (1 - floor) (epoch / epochs)^power; 1: linear, below 1: faster at first
  std::uint64_t seed = 0;
};
// Easy samples first (Y. Bengio et al., "Curriculum learning", ICML 2009): epoch e uses the m easiest samples, where m
// is at least 1 and never decreases. An epoch always has n positions: each of the m samples appears n / m times,
// rounded up or down, in a new random order for each repetition.
SamplerPtr curriculum(std::span<const float> difficulty, const CurriculumOptions& options = {});
// Number of the n samples that an epoch uses.
std::int64_t curriculum_count(std::int64_t n, std::int64_t epoch, const CurriculumOptions& options);

struct DistributedOptions {
  std::int64_t rank = 0;  // of this process
  std::int64_t ranks = 1;
  bool drop = false;  // drops the last positions if ranks do not divide them; false: repeats the first ones instead
  // 0: divides the epoch as a whole. Otherwise divides each batch of this size: the loaders of the processes then use
  // batches of distributed_batch(), which together are the batches of a single process, the incomplete last one
  // included.
  std::int64_t batch = 0;
};
// Every ranks-th position of the inner sampler: together the processes see each of its samples once, except for those
// dropped or repeated to give all processes the same number. All processes must use the same inner sampler and seed.
SamplerPtr distributed(SamplerPtr inner, const DistributedOptions& options);
// A process's share of a batch, rounded up.
std::int64_t distributed_batch(const DistributedOptions& options);
// Number of a process's positions in batch `step` of an epoch that are its own, which come first; the others are
// repeated to make all shares equal. 0 if the batch has no more positions than processes precede this one. `size` is
// the inner sampler's. Requires options.batch > 0.
std::int64_t distributed_samples(std::int64_t size, const DistributedOptions& options, std::int64_t step);

}  // namespace samebytes::data

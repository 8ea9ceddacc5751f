// Collate: how samples become a batch. The default one gives every field a first axis of samples and decodes each
// sample straight into its row. Another one may pad, pack or add fields; it says what arrays a batch has and fills
// them. Shared, const, used by several threads at once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/data/dataset.h"
#include "samebytes/random.h"

namespace samebytes::data {

// Decodes and transforms one sample into dst (the fields of the data set that the collate is given, in their order);
// false at the end of a stream. Another `view` of a sample is the same one with other random numbers in its transforms.
class ReadSample {
 public:
  using Read = std::function<bool(std::int64_t index, std::span<const Field> dst, std::uint32_t view)>;
  explicit ReadSample(Read read) : read_(std::move(read)) {}
  bool operator()(std::int64_t index, std::span<const Field> dst, std::uint32_t view = 0) const {
    return read_(index, dst, view);
  }

 private:
  Read read_;
};

class Collate {
 public:
  virtual ~Collate() = default;
  // The arrays of a batch of these samples, with all their axes. Their number, names and dtypes are the same for every
  // batch; shapes may differ.
  virtual std::vector<FieldSpec> fields(const Dataset& dataset, std::span<const std::int64_t> indices) const = 0;
  // Fills `batch`, one Field for each of fields(); returns the number of samples read, fewer than indices.size() only
  // where a stream ended. It may give a Field a smaller shape than fields() said, of which the values lie dense from
  // the start of its bytes: where a stream ended, or where sizes are known only after reading. `key` is of its own for
  // each step of each epoch (index: the step), for a collate that draws random numbers; key.lane is this collate's own,
  // and one that wraps another hands it key.lane - 1.
  virtual std::int64_t fill(const Dataset& dataset, std::span<const std::int64_t> indices, const ReadSample& read,
                            std::span<Field> batch, const SequenceKey& key) const = 0;
};
using CollatePtr = std::shared_ptr<const Collate>;

// Every field as [N, sizes of the field...].
CollatePtr default_collate();

struct PadOptions {
  std::vector<std::string> fields = {};  // those padded, [T, ...] each; empty: every one of rank 1 or more
  std::string length = "length";         // the integer field [] with the number of steps of a sample
  std::int64_t multiple = 1;             // the batch's length is rounded up to a multiple of this
  float value = 0;                       // what stands behind a sample's last step: a padding token, a background
  Dtype mask = f32;                      // of the field "mask": f32, u8 or bool_
};
// Variable lengths: the samples' fields are [T, ...] with room for the longest sample of the set (from_series() makes
// them so), a batch's are [N, L, ...], where L is the longest sample of the batch, rounded up to `multiple` but at most
// T. A field "mask" [N, L] comes last: 1 at steps that a sample has, 0 at padding. The slots have room for T; each
// batch is a smaller array at their start. Each different L makes a plan of its own, so round up to few lengths
// (multiple) where planning or building kernels is not to happen in most steps, and put samples of similar length
// together (bucketed() in samplers.h). Throws ArgumentError for fields that are not there or have no common T, and in
// the loop for a length that is not from 0 to T.
CollatePtr pad_collate(const PadOptions& options = {});

struct ContrastiveOptions {
  std::uint32_t views = 2;
  bool interleaved = false;  // false: view 0 of all samples, then view 1, ...; true: the views of a sample together
  bool permute = false;      // rows in random order instead
};
// Several views of each sample, each with random numbers of its own in the transforms (T. Chen et al., "A simple
// framework for contrastive learning", ICML 2020, section 2): every field as [views N, ...], labels repeated, and last
// a field "pair" [views N] i32 with the sample's place in the batch, equal for the views of a sample.
CollatePtr contrastive_collate(const ContrastiveOptions& options = {});

}  // namespace samebytes::data

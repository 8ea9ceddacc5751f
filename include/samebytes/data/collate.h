// Collate: turns samples into a batch. The default gives every field a first axis of samples and decodes each sample
// straight into its row. Others may pad, pack or add fields; a collate declares the arrays of a batch and fills them.
// Shared and const; several threads use it at once.
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

// Decodes and transforms one sample into dst (the fields of the collate's data set, in their order); returns false at
// the end of a stream. A different `view` of a sample uses different random numbers in the transforms.
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
  // The arrays of a batch of these samples, with their complete shapes. Number, names and dtypes are the same for every
  // batch; shapes may differ.
  virtual std::vector<FieldSpec> fields(const Dataset& dataset, std::span<const std::int64_t> indices) const = 0;
  // Fills `batch`, one Field for each of fields(); returns the number of samples read, fewer than indices.size() only
  // if a stream ended. It may give a Field a smaller shape than fields() declared, with the values dense from the start
  // of its bytes: when a stream ended, or when sizes are known only after reading. `key` differs for each step of each
  // epoch (index: the step), for a collate that draws random numbers; key.lane belongs to this collate alone, and a
  // collate that wraps another passes it key.lane - 1.
  virtual std::int64_t fill(const Dataset& dataset, std::span<const std::int64_t> indices, const ReadSample& read,
                            std::span<Field> batch, const SequenceKey& key) const = 0;
};
using CollatePtr = std::shared_ptr<const Collate>;

// Every field as [N, sizes of the field...].
CollatePtr default_collate();

struct PadOptions {
  std::vector<std::string> fields = {};  // fields to pad, [T, ...] each; empty: all of rank 1 or more
  std::string length = "length";         // the integer field [] with the number of steps of a sample
  std::int64_t multiple = 1;             // the batch's length is rounded up to a multiple of this
  float value = 0;                       // fills the steps after a sample's last one: a padding token, a background
  Dtype mask = f32;                      // dtype of the field "mask": f32, u8 or bool_
};
// For variable lengths: the samples' fields are [T, ...] with T the longest sample of the set (as from_series() makes
// them); a batch's are [N, L, ...], where L is the longest sample of the batch, rounded up to `multiple` but at most T.
// A field "mask" [N, L] comes last: 1 at steps that a sample has, 0 at padding. Slots have room for T steps; a batch is
// a smaller array at the start of a slot. Each distinct L needs its own plan, so round up to few lengths (`multiple`),
// which avoids planning and building kernels in most steps, and group samples of similar length (bucketed() in
// samplers.h). Throws ArgumentError for fields that do not exist or differ in T, and in the loop for a length outside
// [0, T].
CollatePtr pad_collate(const PadOptions& options = {});

struct ContrastiveOptions {
  std::uint32_t views = 2;
  bool interleaved = false;  // false: view 0 of all samples, then view 1, ...; true: the views of a sample are adjacent
  bool permute = false;      // true: rows in random order
};
// Several views of each sample, each with its own random numbers in the transforms (T. Chen et al., "A simple framework
// for contrastive learning", ICML 2020, section 2): every field is [views N, ...], with labels repeated, followed by a
// field "pair" [views N] i32 with the sample's index in the batch, equal for the views of a sample.
CollatePtr contrastive_collate(const ContrastiveOptions& options = {});

}  // namespace samebytes::data

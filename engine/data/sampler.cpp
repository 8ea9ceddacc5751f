#include "samebytes/data/sampler.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace samebytes::data {
namespace {

constexpr std::uint32_t kShuffleLane = 0xffff;  // draws of samplers and collates have others

// The finaliser of SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014, figure 15).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Sequential final : public Sampler {
 public:
  explicit Sequential(std::int64_t size) : size_(size) {}
  std::int64_t size() const override { return size_; }
  std::int64_t at(std::int64_t, std::int64_t position) const override { return position; }

 private:
  std::int64_t size_;
};

class Shuffled final : public Sampler {
 public:
  Shuffled(std::int64_t size, std::uint64_t seed) : size_(size), seed_(seed) {}
  std::int64_t size() const override { return size_; }
  std::int64_t at(std::int64_t epoch, std::int64_t position) const override {
    return Permutation(size_, seed_, epoch).at(position);
  }

 private:
  std::int64_t size_;
  std::uint64_t seed_;
};

class DropLast final : public Sampler {
 public:
  DropLast(SamplerPtr inner, std::int64_t batch) : inner_(std::move(inner)), batch_(batch) {}
  std::int64_t size() const override {
    const std::int64_t size = inner_->size();
    return size == kEndless ? kEndless : size - size % batch_;
  }
  std::int64_t at(std::int64_t epoch, std::int64_t position) const override { return inner_->at(epoch, position); }

 private:
  SamplerPtr inner_;
  std::int64_t batch_;
};

}  // namespace

Permutation::Permutation(std::int64_t size, std::uint64_t seed, std::int64_t epoch, std::int64_t stream,
                         RandomDomain domain)
    : size_(size) {
  if (size < 0) throw ArgumentError("permutation: size must be 0 or more, got " + std::to_string(size));
  const auto bits = static_cast<unsigned>(size > 1 ? std::bit_width(static_cast<std::uint64_t>(size - 1)) : 0);
  low_bits_ = bits / 2;
  high_bits_ = bits - low_bits_;
  Random random({.seed = seed, .epoch = epoch, .index = stream, .lane = kShuffleLane, .domain = domain});
  for (std::uint64_t& key : round_keys_) {
    key = random.bits();
    key = key << 32 | random.bits();
  }
}

std::int64_t Permutation::at(std::int64_t position) const {
  const std::uint64_t low_mask = (std::uint64_t{1} << low_bits_) - 1, high_mask = (std::uint64_t{1} << high_bits_) - 1;
  auto value = static_cast<std::uint64_t>(position);
  do {
    std::uint64_t low = value & low_mask, high = value >> low_bits_;
    for (int round = 0; round < kRounds; round += 2) {
      high ^= mix(low + round_keys_[round]) & high_mask;
      low ^= mix(high + round_keys_[round + 1]) & low_mask;
    }
    value = high << low_bits_ | low;
  } while (value >= static_cast<std::uint64_t>(size_));
  return static_cast<std::int64_t>(value);
}

SamplerPtr sequential(std::int64_t size) {
  if (size < 0 && size != kEndless)
    throw ArgumentError("sequential: size must be 0 or more, or kEndless, got " + std::to_string(size));
  return std::make_shared<Sequential>(size);
}

SamplerPtr random(std::int64_t size, std::uint64_t seed) {
  if (size < 0) throw ArgumentError("random: expected a known number of samples, got a source without end");
  return std::make_shared<Shuffled>(size, seed);
}

SamplerPtr drop_last(SamplerPtr inner, std::int64_t batch) {
  if (!inner) throw ArgumentError("drop_last: expected a sampler, got none");
  if (batch < 1) throw ArgumentError("drop_last: batch must be 1 or more, got " + std::to_string(batch));
  return std::make_shared<DropLast>(std::move(inner), batch);
}

BatchSampler::BatchSampler(SamplerPtr inner, std::int64_t batch) : inner_(std::move(inner)), batch_(batch) {
  if (!inner_) throw ArgumentError("batch: expected a sampler, got none");
  if (batch < 1) throw ArgumentError("batch: expected 1 or more samples, got " + std::to_string(batch));
  if (const std::int64_t size = inner_->size(); size != kEndless && batch > size)
    throw ArgumentError("batch: expected at most the " + std::to_string(size) + " samples of the set, got " +
                        std::to_string(batch));
}

std::int64_t BatchSampler::size() const {
  const std::int64_t size = inner_->size();
  return size == kEndless ? kEndless : (size + batch_ - 1) / batch_;
}

std::vector<std::int64_t> BatchSampler::at(std::int64_t epoch, std::int64_t step) const {
  const std::int64_t size = inner_->size(), first = step * batch_;
  const std::int64_t count = size == kEndless ? batch_ : std::min(batch_, size - first);
  std::vector<std::int64_t> indices(static_cast<std::size_t>(std::max<std::int64_t>(count, 0)));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = inner_->at(epoch, first + static_cast<std::int64_t>(i));
  return indices;
}

}  // namespace samebytes::data

// Advice on the batch size for one model: rules of thumb, each with the figure that it is applied to, and a
// recommendation among measured batches.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "samebytes/optim/scale_rate.h"

namespace samebytes::optim {

// The task, since rules of thumb differ: batches of 32 to 256 for classification, 8 to 16 for detection, 16 to 64
// sequences for language.
enum class BatchTask : std::uint8_t { classification, detection, language };

// single: 1 sample (stochastic gradient descent in the narrow sense); full: the whole set; large: above 512.
enum class BatchClass : std::uint8_t { single, mini, large, full };
BatchClass class_of_batch(std::int64_t batch, std::int64_t training_samples);
const char* name_of(BatchClass kind);  // "mini"

// Measurements of one batch size; 0 or empty if not measured.
struct MeasuredBatch {
  std::int64_t batch = 0;
  double samples_per_second = 0;
  std::size_t peak_bytes = 0;
  std::optional<std::int64_t> steps_to_target = {};
  std::optional<double> seconds_to_target = {};
};

struct BatchFacts {
  BatchTask task = BatchTask::classification;
  bool has_batch_norm = false;
  std::int64_t training_samples = 0;
  std::int64_t base_batch = 0;  // for which base_rate was found
  double base_rate = 0;
  ScaleRule rule = ScaleRule::square_root;
  double noise_scale = 0;        // in samples (noise_scale.h); 0: unknown; may be infinite
  std::size_t memory_limit = 0;  // bytes; 0: unknown
};

struct BatchAdvice {
  std::string rule;   // a short name: "batch norm"
  std::string text;   // the rule with the figure it is applied to
  bool holds = true;  // for the recommended batch
};

struct BatchRecommendation {
  std::int64_t batch = 0;
  std::string reason;
  std::vector<BatchAdvice> advice;
};

// Chooses the batch that reached the target in the shortest time; among those within 10 % of it, the one with the least
// memory. Batches that break a rule of correctness (fewer than 16 samples for batch norm, more memory than available)
// are chosen only if no others exist. If none reached the target: the fastest that does not exceed the noise scale or,
// if that is unknown, the task's largest usual batch. Throws ArgumentError for an empty list and for batches below 1.
BatchRecommendation recommend_batch(std::span<const MeasuredBatch> measured, const BatchFacts& facts);

}  // namespace samebytes::optim

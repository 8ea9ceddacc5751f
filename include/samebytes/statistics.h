// Who writes running statistics, and over what those of a batch are taken, where a batch is cut into shares
// (data_parallel.h). Both hold for the thread that opens the block.
#pragma once

#include <functional>

#include "samebytes/ops/norm.h"

namespace samebytes {

// Running statistics (batch_norm_train, instance_norm) stay as they are where the nodes of this block run.
class KeepStatistics {
 public:
  KeepStatistics();
  ~KeepStatistics();
  KeepStatistics(const KeepStatistics&) = delete;
  KeepStatistics& operator=(const KeepStatistics&) = delete;

 private:
  bool previous_;
};

// A call of batch_norm_train, whose arguments have been checked and cast.
struct BatchNormCall {
  const Array &src, &scale, &shift, &running_mean, &running_var;
  const BatchNormOptions& options;
};
using BatchNormTaker = std::function<Array(const BatchNormCall&)>;

// Calls of batch_norm_train in this block are answered by `taker`.
class BatchNormScope {
 public:
  explicit BatchNormScope(BatchNormTaker taker);
  ~BatchNormScope();
  BatchNormScope(const BatchNormScope&) = delete;
  BatchNormScope& operator=(const BatchNormScope&) = delete;

 private:
  BatchNormTaker taker_;
  const BatchNormTaker* previous_;
};

}  // namespace samebytes

// Who writes running statistics, and over what those of a batch are taken, where a batch is cut into shares
// (train/parallel/data_parallel.h). Both hold for the thread that opens the block.
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
using BatchNormFunction = std::function<Array(const BatchNormCall&)>;

// Calls of batch_norm_train in this block are answered by `function`.
class BatchNormScope {
 public:
  explicit BatchNormScope(BatchNormFunction function);
  ~BatchNormScope();
  BatchNormScope(const BatchNormScope&) = delete;
  BatchNormScope& operator=(const BatchNormScope&) = delete;

 private:
  BatchNormFunction function_;
  const BatchNormFunction* previous_;
};

}  // namespace samebytes

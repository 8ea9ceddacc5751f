// Task defines what is learned; evaluate() computes loss and metrics over a data set, in evaluation mode and without
// gradients.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/data/loader.h"
#include "samebytes/nn/module.h"
#include "samebytes/train/parallel/strategy.h"
#include "samebytes/train/run_meter.h"

namespace samebytes::train {

using OfOutput = std::function<Array(const Array& output, const data::Batch& batch)>;
using OfModel = std::function<Array(nn::Module& net, const data::Batch& batch)>;

// A mean over all samples of a data set.
struct Metric {
  std::string name;  // "accuracy"; logs call it "test_accuracy"
  OfOutput sum;      // over the samples of a batch; one element
};
// For a classifier: the share of rows of logits whose largest value is at the label, field `label` of the batch.
Metric accuracy(std::size_t label = 1);

struct Task {
  OfOutput loss;  // the mean over a batch
  OfModel forward = [](nn::Module& net, const data::Batch& batch) { return net(batch[0]); };
  std::vector<Metric> metrics = {};
  // Replaces forward and loss for models that never compute the whole output; metrics are then not computed.
  OfModel whole_loss = {};
  // The output is one logit per sample and the field "label" is 0 or 1: adds "balanced_accuracy" and
  // "area_under_curve".
  bool is_binary = false;

  Array loss_of(nn::Module& net, const data::Batch& batch) const {
    return whole_loss ? whole_loss(net, batch) : loss(forward(net, batch), batch);
  }
};

struct Evaluation {
  double loss = 0;
  std::vector<std::pair<std::string, double>> metrics = {};  // in the order of the task
  // "loss" or one of the metrics; nullopt if no metric has that name.
  std::optional<double> find(std::string_view name) const;
};

struct EvaluateOptions {
  std::int64_t batches = std::numeric_limits<std::int64_t>::max();  // at most
  RunMeter* meter = nullptr;                                        // counts the batches
  Strategy* shared = nullptr;
  std::function<bool()> should_stop = {};  // called after each batch
};

// Returns nullopt if should_stop returned true before the end, on any rank if there are several. Throws ArgumentError
// for a task without a loss.
std::optional<Evaluation> evaluate(const Task& task, nn::Module& net, data::Loader& batches,
                                   const EvaluateOptions& options = {});

}  // namespace samebytes::train

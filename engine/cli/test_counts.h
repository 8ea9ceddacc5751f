// TestCounts: what a test adds up, batch by batch: losses, right answers and, of a binary workload, scores. Where ranks
// share a test, each counts its own batches; the total is made of all of them in the order of one process, and so are
// its figures.
#pragma once

#include <cstdint>
#include <vector>

#include "cli/ranks.h"
#include "cli/session.h"
#include "cli/workload.h"
#include "samebytes/train.h"

namespace samebytes::cli {

class TestCounts {
 public:
  // `ranks` may be null, and need not share the test.
  TestCounts(const Workload& workload, const Ranks* ranks);

  // Loss, right answers and output of some samples, as far as there are any.
  void add(const std::vector<Array>& results, std::int64_t samples);
  void add_labels(const data::Batch& batch);
  // Every rank calls it.
  Evaluation total();

 private:
  struct Part {
    Array loss, right;
    std::int64_t samples;
  };
  void collect();

  const Workload& workload_;
  const Ranks* ranks_;        // null: the test is not shared out
  std::vector<Part> parts_;   // where it is: of each batch of this rank
  double right_answers_ = 0;  // ... of all ranks
  Mean loss_, right_;
  std::vector<float> scores_, truth_;
};

}  // namespace samebytes::cli

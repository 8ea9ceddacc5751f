// Functions that build parts of one graph, each in a thread of its own, one at a time: each runs until it comes to a
// meeting or to its end, then the next one does. The order is always the same, so random counters and nodes are, too.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <vector>

#include "train/parallel/batch_norm.h"

namespace samebytes::train::parallel {

class Meeting {
 public:
  // Runs all of them. Throws what the first one that failed threw; the others end at their next meeting.
  void run(const std::vector<std::function<void()>>& parts);
  // Called by part `place`: what all of them brought to this meeting, when all have come. Throws ArgumentError where
  // one of the others never comes.
  const std::vector<Moments<Array>>& meet(std::size_t place, Moments<Array> moments);

 private:
  void pass(std::size_t place);  // under mutex_
  void wait(std::unique_lock<std::mutex>& lock, std::size_t place);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t turn_ = 0;
  std::vector<bool> is_finished_;
  std::vector<std::size_t> visits_;  // meetings that each has come to
  std::vector<std::vector<Moments<Array>>> meetings_;
  std::exception_ptr error_;
};

}  // namespace samebytes::train::parallel

// The trace that summary() uses: while it lives in this thread, every called module reports the shape of its result,
// and modules behave as in evaluation mode, so that tracing a network changes nothing.
#pragma once

#include <vector>

#include "samebytes/nn/module.h"

namespace samebytes::nn {

class Trace {
 public:
  struct Call {
    const Module* module;
    Shape result;
  };

  Trace() : previous_(current_) { current_ = this; }
  ~Trace() { current_ = previous_; }
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  static Trace* current() { return current_; }
  void record(const Module& module, const Shape& result) { calls_.push_back({&module, result}); }
  const std::vector<Call>& calls() const { return calls_; }

 private:
  inline static thread_local Trace* current_ = nullptr;
  Trace* previous_;
  std::vector<Call> calls_;
};

}  // namespace samebytes::nn

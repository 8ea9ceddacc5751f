// What an op function asks first: whether an Autocast scope of this thread has a rule for it.
//   if (const Casts cast("linear"); cast) return linear(cast(x), cast(weight), cast(bias));
// While it is true the scope is closed, so that the call inside casts nothing more.
#pragma once

#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "samebytes/autocast.h"

namespace samebytes::detail {

class Casts {
 public:
  explicit Casts(std::string_view op);
  ~Casts();
  Casts(const Casts&) = delete;
  Casts& operator=(const Casts&) = delete;
  explicit operator bool() const { return state_ != nullptr; }

  // An input as the rule wants it. Empty handles, integers and f64 stay as they are.
  Array operator()(const Array& a) const;
  // Several inputs that need one dtype.
  std::vector<Array> operator()(std::span<const Array> arrays) const;

 private:
  Autocast::State* state_ = nullptr;
  CastRule rule_ = CastRule::as_given;
};

// Closes the scope of this thread, for nodes that the engine adds.
class NoCasts {
 public:
  NoCasts();
  ~NoCasts();
  NoCasts(const NoCasts&) = delete;
  NoCasts& operator=(const NoCasts&) = delete;

 private:
  Autocast::State* outer_;
};

}  // namespace samebytes::detail

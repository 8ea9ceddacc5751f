// Every op function first asks whether an Autocast scope of this thread casts its inputs. The rule stands in the op's
// own file:
//   const CastRow kLinearCast{"linear", CastRule::lower};
//   if (const Casts cast(kLinearCast); cast) return linear(cast(x), cast(weight), cast(bias));
// While the Casts object is true the scope is closed, so that the call inside casts nothing more. A function without
// this check runs in the types of its inputs, like one with the rule as_given.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include "samebytes/autocast.h"

namespace samebytes::detail {

// The rule of a function unless a policy overrides it. Its constructor registers it in AutocastPolicy's table; must be
// a constant at namespace scope.
class CastRow {
 public:
  CastRow(const char* function, CastRule rule);
  const char* function() const { return function_; }
  CastRule rule() const { return rule_; }

 private:
  const char* function_;
  CastRule rule_;
};

class Casts {
 public:
  explicit Casts(const CastRow& row);
  ~Casts();
  Casts(const Casts&) = delete;
  Casts& operator=(const Casts&) = delete;
  explicit operator bool() const { return state_ != nullptr; }

  // The input in the dtype that the rule asks for. Empty handles, integers and f64 stay as they are.
  Array operator()(const Array& a) const;
  // Several inputs that must have one dtype.
  std::vector<Array> operator()(std::span<const Array> arrays) const;

 private:
  Autocast::State* state_ = nullptr;
  CastRule rule_ = CastRule::as_given;
};

bool casts_here();  // whether a scope of this thread is open

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

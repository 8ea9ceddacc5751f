// Layers chosen by names, as PEFT's target_modules: full names ("h.0.attn.c_attn") or their endings after a dot.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/error.h"

namespace samebytes::nn {

inline constexpr const char* kAllLinear = "all-linear";

inline bool matches(const std::string& name, const std::string& target) {
  return name == target || name.ends_with("." + target);
}
inline std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// "a, b, c" from the distinct last parts of the names.
inline std::string known(const std::vector<std::string>& names) {
  std::set<std::string> seen;
  std::string text;
  for (const std::string& name : names)
    if (const std::string part = last_part(name); !part.empty() && seen.insert(part).second)
      text += (text.empty() ? "" : ", ") + part;
  return text;
}

// Decides whether a target selects a layer, and records whether each target selected any.
class Choice {
 public:
  // `option` of the function `op` has the targets.
  Choice(std::vector<std::string> targets, const char* op, const char* option)
      : targets_(std::move(targets)), op_(op), option_(option) {}
  bool takes(const std::string& name) {
    bool taken = false;
    for (const std::string& target : targets_)
      if (target == kAllLinear || matches(name, target)) {
        used_.insert(target);
        taken = true;
      }
    return taken;
  }
  void require_all_used(const char* what, const std::vector<std::string>& names) const {
    for (const std::string& target : targets_)
      if (used_.count(target) == 0)
        throw ArgumentError(std::string(op_) + ": " + option_ + " has " + target + ", which matches no " + what +
                            "; there are " + known(names));
  }

 private:
  std::vector<std::string> targets_;
  const char* op_;
  const char* option_;
  std::set<std::string> used_;
};

}  // namespace samebytes::nn

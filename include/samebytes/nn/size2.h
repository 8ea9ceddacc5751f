// Size2: one number for both axes of an image, or one number for each: .kernel = 3, .kernel = {3, 5} (height first).
#pragma once

#include <string>

namespace samebytes::nn {

struct Size2 {
  int h = 1;
  int w = 1;
  constexpr Size2(int both) : h(both), w(both) {}
  constexpr Size2(int height, int width) : h(height), w(width) {}
  friend constexpr bool operator==(const Size2& a, const Size2& b) { return a.h == b.h && a.w == b.w; }
  std::string to_string() const {  // "3" or "(3, 5)"
    return h == w ? std::to_string(h) : "(" + std::to_string(h) + ", " + std::to_string(w) + ")";
  }
};

}  // namespace samebytes::nn

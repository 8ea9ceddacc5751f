// Size3: one number for the three axes of a volume, or one number each: .kernel = 3, .kernel = {1, 3, 3} (depth first).
#pragma once

#include <string>

namespace samebytes::nn {

struct Size3 {
  int d = 1;
  int h = 1;
  int w = 1;
  constexpr Size3(int all) : d(all), h(all), w(all) {}
  constexpr Size3(int depth, int height, int width) : d(depth), h(height), w(width) {}
  friend constexpr bool operator==(const Size3& a, const Size3& b) { return a.d == b.d && a.h == b.h && a.w == b.w; }
  constexpr int least() const { return d < h ? (d < w ? d : w) : (h < w ? h : w); }
  std::string to_string() const {  // "3" or "(1, 3, 3)"
    return d == h && h == w ? std::to_string(d)
                            : "(" + std::to_string(d) + ", " + std::to_string(h) + ", " + std::to_string(w) + ")";
  }
};

}  // namespace samebytes::nn

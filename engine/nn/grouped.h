// Formats counts of parameters for people; summary() and LoRA use it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace samebytes::nn {

// 421642 -> "421,642"
inline std::string grouped(std::int64_t n) {
  std::string text = std::to_string(n);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

}  // namespace samebytes::nn

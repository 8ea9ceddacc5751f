#include "profile/memory_words.h"

#include <fmt/format.h>

namespace samebytes::detail {

std::string megabytes(std::size_t bytes) {
  const double b = static_cast<double>(bytes);
  if (b >= 1e9) return fmt::format("{:.2f} GB", b / 1e9);
  if (b >= 1e6) return fmt::format("{:.1f} MB", b / 1e6);
  return fmt::format("{:.1f} kB", b / 1e3);
}

std::string in_layer(const std::string& op, const std::string& layer) {
  return layer.empty() ? op : fmt::format("{} ({})", op, layer);
}

std::string shortened(const std::string& text, int most) {
  return std::ssize(text) <= most ? text : text.substr(0, static_cast<std::size_t>(most) - 3) + "...";
}

}  // namespace samebytes::detail

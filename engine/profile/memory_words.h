// Words of the texts about memory.
#pragma once

#include <cstddef>
#include <string>

namespace samebytes::detail {

std::string megabytes(std::size_t bytes);                               // "1.25 GB", "3.0 MB", "0.5 kB": powers of 1000
std::string in_layer(const std::string& op, const std::string& layer);  // "linear (0 Linear)", or the op alone
std::string shortened(const std::string& text, int most);  // at most so many characters, the last three as dots

}  // namespace samebytes::detail

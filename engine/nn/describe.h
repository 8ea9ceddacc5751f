// Sizes and numbers as layers describe themselves: "MaxPool2d((2, 3), stride=2)".
#pragma once

#include <string>

#include "samebytes/nn/size2.h"
#include "samebytes/nn/size3.h"

namespace samebytes::nn {

inline std::string text_of(int size) { return std::to_string(size); }
inline std::string text_of(Size2 size) { return size.to_string(); }
inline std::string text_of(const Size3& size) { return size.to_string(); }
inline std::string text_of(double number) {  // "1.5", "2"
  std::string text = std::to_string(number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}
template <class Numbers>
std::string list_of(const Numbers& numbers) {  // "(2, 3)"
  std::string text;
  for (const auto number : numbers) {
    text += text.empty() ? "(" : ", ";
    if constexpr (requires { number.to_string(); })
      text += number.to_string();
    else
      text += text_of(static_cast<double>(number));
  }
  return text.empty() ? "()" : text + ")";
}

// ", name=size" unless the size is `usual`.
template <class Size>
std::string unless(const Size& usual, const char* name, const Size& size) {
  return size == usual ? std::string() : ", " + std::string(name) + "=" + text_of(size);
}

// "Kind(kernel, ...)" of the options of a pooling layer, without those that have their defaults.
template <class Options>
std::string describe_window(const char* kind, const Options& options) {
  using Size = decltype(Options::kernel);
  std::string text = kind + ("(" + text_of(options.kernel));
  if (options.stride != Size(0) && options.stride != options.kernel) text += ", stride=" + text_of(options.stride);
  text += unless(Size(0), "pad", options.pad);
  if constexpr (requires { options.pad_end; })
    if (options.pad_end) text += ", pad_end=" + text_of(*options.pad_end);
  if constexpr (requires { options.dilation; }) text += unless(Size(1), "dilation", options.dilation);
  if constexpr (requires { options.divisor; }) text += unless(0, "divisor", options.divisor);
  if constexpr (requires { options.size; }) text += unless(Size(0), "size", options.size);
  if constexpr (requires { options.p; }) text += ", p=" + text_of(options.p);
  return text + ")";
}

}  // namespace samebytes::nn

// Sums of products by letters, as matrix products of two arrays at a time.
#include <algorithm>
#include <string>
#include <vector>

#include "graph/op.h"
#include "ops/dtypes.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace {

using detail::describe;

struct Lettered {
  Array array;
  std::string letters;  // one for each axis
};

bool has(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

// The axes in the order of `letters`, all of which it has.
Array in_order(const Lettered& a, const std::string& letters) {
  std::vector<int> order;
  for (const char letter : letters) order.push_back(static_cast<int>(a.letters.find(letter)));
  return order.empty() ? a.array : transpose(a.array, order);
}

// Sums up the axes whose letters nobody needs any more.
Lettered summed(const Lettered& a, const std::string& needed) {
  std::vector<int> axes;
  std::string kept;
  for (std::size_t i = 0; i < a.letters.size(); ++i)
    if (has(needed, a.letters[i]))
      kept += a.letters[i];
    else
      axes.push_back(static_cast<int>(i));
  return axes.empty() ? a : Lettered{sum(a.array, axes), kept};
}

// Of the axes of both that are needed: those of both in front, then those of a, then those of b.
Lettered product(Lettered a, Lettered b, const std::string& needed) {
  a = summed(a, needed + b.letters);
  b = summed(b, needed + a.letters);
  std::string shared, inner, left, right;
  for (const char letter : a.letters) {
    std::string& list = !has(b.letters, letter) ? left : has(needed, letter) ? shared : inner;
    list += letter;
  }
  for (const char letter : b.letters)
    if (!has(a.letters, letter)) right += letter;
  Shape result;
  std::int64_t batches = 1, rows = 1, depth = 1, columns = 1;
  const auto measure = [](const Lettered& of, const std::string& letters, std::int64_t& n, Shape* into) {
    for (const char letter : letters) {
      const std::int64_t size = of.array.shape()[static_cast<int>(of.letters.find(letter))];
      n *= size;
      if (into) into->push_back(size);
    }
  };
  measure(a, shared, batches, &result);
  measure(a, left, rows, &result);
  measure(b, right, columns, &result);
  measure(a, inner, depth, nullptr);
  const Array first = reshape(in_order(a, shared + left + inner), {batches, rows, depth});
  const Array second = reshape(in_order(b, shared + inner + right), {batches, depth, columns});
  return {reshape(matmul(first, second), result), shared + left + right};
}

[[noreturn]] void refuse(std::string_view equation, const std::string& why) {
  throw ArgumentError("einsum: " + why + ", got \"" + std::string(equation) + "\"");
}

}  // namespace

Array einsum(std::string_view equation, const Inputs& arrays) {
  std::string text;
  for (const char c : equation)
    if (c != ' ') text += c;
  const std::size_t arrow = text.find("->");
  std::vector<std::string> terms{""};
  for (const char c : text.substr(0, arrow)) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (c != ',' && !is_letter) refuse(equation, "expected letters, commas and one arrow");
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  if (terms.size() != arrays.size())
    refuse(equation, "expected letters for each of " + std::to_string(arrays.size()) + " arrays");
  std::vector<std::pair<char, std::int64_t>> sizes;
  std::string once;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    const Array& a = arrays[i];
    detail::require(a.defined() && is_floating(a.dtype()), "einsum", "needs floating arrays", a, "one of them");
    if (static_cast<int>(terms[i].size()) != a.shape().rank())
      refuse(equation, "expected one letter for each axis of array " + std::to_string(i) + ", " + describe(a));
    for (std::size_t k = 0; k < terms[i].size(); ++k) {
      const char letter = terms[i][k];
      if (terms[i].find(letter, k + 1) != std::string::npos)
        refuse(equation, std::string("a letter may occur once in an array, ") + letter + " occurs twice");
      const std::int64_t size = a.shape()[static_cast<int>(k)];
      const auto known = std::find_if(sizes.begin(), sizes.end(), [=](const auto& s) { return s.first == letter; });
      if (known == sizes.end()) {
        sizes.emplace_back(letter, size);
        once += letter;
      } else if (known->second != size) {
        refuse(equation, std::string("axes of one letter must have one size, those of ") + letter + " have " +
                             std::to_string(known->second) + " and " + std::to_string(size));
      } else if (has(once, letter)) {
        once.erase(once.find(letter), 1);
      }
    }
  }
  std::sort(once.begin(), once.end());
  const std::string result = arrow == std::string::npos ? once : text.substr(arrow + 2);
  for (std::size_t k = 0; k < result.size(); ++k)
    if (std::none_of(sizes.begin(), sizes.end(), [&](const auto& s) { return s.first == result[k]; }) ||
        result.find(result[k], k + 1) != std::string::npos)
      refuse(equation, "the result may have each letter of the arrays once");
  Lettered total{arrays[0], terms[0]};
  for (std::size_t i = 1; i < terms.size(); ++i) {
    std::string needed = result;
    for (std::size_t k = i + 1; k < terms.size(); ++k) needed += terms[k];
    total = product(total, {arrays[i], terms[i]}, needed);
  }
  return in_order(summed(total, result), result);
}

}  // namespace samebytes

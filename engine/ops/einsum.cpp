// Sums of products by letters, as matrix products of two arrays at a time. The axes of dots get letters of their own,
// which no equation can have.
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

constexpr char kFirstDot = '\1';
constexpr std::string_view kDots = "...";

bool is_dot(char letter) { return letter < ' '; }

// The letters of each array and of the result; without an arrow the latter has none yet.
struct Equation {
  std::vector<std::string> terms{""};
  std::string result;
  bool has_result = false;
};

// Dots of an array with `rank` axes stand for those that have no letter: the last of them is the first dot.
std::string spelled(std::string_view equation, std::string term, int rank) {
  const std::size_t at = term.find(kDots);
  const auto named = static_cast<int>(term.size()) - (at == std::string::npos ? 0 : 3);
  if (term.find('.', at == std::string::npos ? 0 : at + 3) != std::string::npos)
    refuse(equation, "expected dots as three in a row, once in an array");
  if (at == std::string::npos ? named != rank : named > rank)
    refuse(equation, "expected one letter for each axis of an array of rank " + std::to_string(rank));
  if (at == std::string::npos) return term;
  std::string dots;
  for (int i = rank - named; i-- > 0;) dots += static_cast<char>(kFirstDot + i);
  return term.replace(at, kDots.size(), dots);
}

Equation parsed(std::string_view equation, const Inputs& arrays) {
  std::string text;
  for (const char c : equation)
    if (c != ' ') text += c;
  const std::size_t arrow = text.find("->");
  Equation made;
  for (const char c : text.substr(0, arrow)) {
    const bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.';
    if (c != ',' && !is_letter) refuse(equation, "expected letters, dots, commas and one arrow");
    if (c == ',')
      made.terms.emplace_back();
    else
      made.terms.back() += c;
  }
  if (made.terms.size() != arrays.size())
    refuse(equation, "expected letters for each of " + std::to_string(arrays.size()) + " arrays");
  int most_dots = 0;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    detail::require(arrays[i].defined() && is_floating(arrays[i].dtype()), "einsum", "needs floating arrays", arrays[i],
                    "one of them");
    made.terms[i] = spelled(equation, made.terms[i], arrays[i].shape().rank());
    most_dots =
        std::max(most_dots, static_cast<int>(std::count_if(made.terms[i].begin(), made.terms[i].end(), is_dot)));
  }
  made.has_result = arrow != std::string::npos;
  if (!made.has_result) return made;
  made.result = text.substr(arrow + 2);
  const std::size_t dots = made.result.find(kDots);
  const int named = static_cast<int>(made.result.size()) - 3;
  if (dots != std::string::npos) made.result = spelled(equation, made.result, named + most_dots);
  return made;
}

// The axes of a letter that occurs twice as their diagonal.
Lettered diagonal(std::string_view equation, Lettered a) {
  for (std::size_t i = 0; i < a.letters.size(); ++i) {
    const std::size_t twin = a.letters.find(a.letters[i], i + 1);
    if (twin == std::string::npos) continue;
    const std::int64_t n = a.array.shape()[static_cast<int>(i)], other = a.array.shape()[static_cast<int>(twin)];
    if (n != other)
      refuse(equation, std::string("axes of one letter must have one size, those of ") + a.letters[i] + " have " +
                           std::to_string(n) + " and " + std::to_string(other));
    std::vector<int> order;
    Shape shape;
    std::string letters;
    for (std::size_t k = 0; k < a.letters.size(); ++k) {
      if (k == i || k == twin) continue;
      order.push_back(static_cast<int>(k));
      shape.push_back(a.array.shape()[static_cast<int>(k)]);
      letters += a.letters[k];
    }
    order.insert(order.end(), {static_cast<int>(i), static_cast<int>(twin)});
    shape.push_back(n * n);
    const int last = static_cast<int>(letters.size());
    a = {slice(reshape(transpose(a.array, order), shape), last, 0, n * n, n + 1), letters + a.letters[i]};
    i = static_cast<std::size_t>(-1);  // the letters have moved
  }
  return a;
}

// Without the dots of size 1 that another array has longer: what is not there broadcasts.
Lettered narrowed(Lettered a, const std::string& longer) {
  for (std::size_t i = a.letters.size(); i-- > 0;) {
    const int axis = static_cast<int>(i);
    if (!is_dot(a.letters[i]) || a.array.shape()[axis] != 1 || !has(longer, a.letters[i])) continue;
    a.array = squeeze(a.array, axis);
    a.letters.erase(i, 1);
  }
  return a;
}

// Throws unless the axes of each letter have one size.
void check_sizes(std::string_view equation, const std::vector<Lettered>& all) {
  std::vector<std::pair<char, std::int64_t>> sizes;
  for (const Lettered& a : all)
    for (std::size_t k = 0; k < a.letters.size(); ++k) {
      const char letter = a.letters[k];
      const std::int64_t size = a.array.shape()[static_cast<int>(k)];
      const auto known = std::find_if(sizes.begin(), sizes.end(), [=](const auto& s) { return s.first == letter; });
      if (known == sizes.end())
        sizes.emplace_back(letter, size);
      else if (known->second != size)
        refuse(equation, "axes of one letter must have one size, those of " +
                             (is_dot(letter) ? "the dots" : std::string(1, letter)) + " have " +
                             std::to_string(known->second) + " and " + std::to_string(size));
    }
}

}  // namespace

Array einsum(std::string_view equation, const Inputs& arrays) {
  constexpr std::size_t most = 64;  // each of them is compared with all that follow
  if (arrays.size() > most)
    throw ArgumentError("einsum: expected at most 64 arrays, got " + std::to_string(arrays.size()));
  Equation made = parsed(equation, arrays);
  std::string every, longer;
  for (const std::string& term : made.terms) every += term;
  std::vector<Lettered> all;
  for (std::size_t i = 0; i < arrays.size(); ++i) all.push_back(diagonal(equation, {arrays[i], made.terms[i]}));
  for (const Lettered& a : all)
    for (std::size_t k = 0; k < a.letters.size(); ++k)
      if (is_dot(a.letters[k]) && a.array.shape()[static_cast<int>(k)] != 1) longer += a.letters[k];
  for (Lettered& a : all) a = narrowed(a, longer);
  check_sizes(equation, all);
  if (!made.has_result) {
    std::string once, dots;
    for (const char letter : every) {
      if (is_dot(letter) && !has(dots, letter)) dots += letter;
      if (!is_dot(letter) && std::count(every.begin(), every.end(), letter) == 1) once += letter;
    }
    std::sort(once.begin(), once.end());
    std::sort(dots.rbegin(), dots.rend());
    made.result = dots + once;
  }
  for (std::size_t k = 0; k < made.result.size(); ++k)
    if (!has(every, made.result[k]) || made.result.find(made.result[k], k + 1) != std::string::npos)
      refuse(equation, "the result may have each letter of the arrays once");
  Lettered total = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) {
    std::string needed = made.result;
    for (std::size_t k = i + 1; k < all.size(); ++k) needed += all[k].letters;
    total = product(total, all[i], needed);
  }
  return in_order(summed(total, made.result), made.result);
}

}  // namespace samebytes

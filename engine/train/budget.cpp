#include "samebytes/budget.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>

#include "samebytes/error.h"

namespace samebytes {
namespace {

constexpr double kMostBytes = 0x1p62;

std::optional<double> scale_of(std::string unit) {
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (!unit.empty() && unit.back() == 'b') unit.pop_back();
  if (unit.empty()) return 1.0;
  const std::size_t power = std::string_view("kmgt").find(unit[0]);
  if (power == std::string_view::npos || unit.size() > 2 || (unit.size() == 2 && unit[1] != 'i')) return {};
  return std::pow(unit.size() == 2 ? 1024.0 : 1000.0, static_cast<double>(power + 1));
}

}  // namespace

std::size_t parse_bytes(std::string_view text) {
  const auto wrong = [&] {
    return ArgumentError(
        "a size in bytes is a number above 0 with B, kB, MB, GB, TB (powers of 1000) or KiB, MiB, GiB, "
        "TiB (powers of 1024) behind it, such as 1.5GB; got '" +
        std::string(text) + "'");
  };
  std::size_t digits = 0;
  while (digits < text.size() && (std::isdigit(static_cast<unsigned char>(text[digits])) || text[digits] == '.'))
    ++digits;
  const std::string number(text.substr(0, digits));
  std::size_t unit = digits;
  while (unit < text.size() && text[unit] == ' ') ++unit;
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  const std::optional<double> scale = scale_of(std::string(text.substr(unit)));
  if (error != std::errc() || end != number.data() + number.size() || !scale) throw wrong();
  const double bytes = std::floor(value * *scale + 0.5);
  if (!(bytes >= 1) || bytes > kMostBytes) throw wrong();
  return static_cast<std::size_t>(bytes);
}

std::optional<std::int64_t> largest_batch(const BatchSearch& search,
                                          const std::function<std::size_t(std::int64_t batch)>& peak) {
  if (search.least < 1 || search.most < search.least || search.multiple < 1)
    throw ArgumentError("largest_batch: expected 1 <= least <= most and a multiple of 1 or more, got " +
                        std::to_string(search.least) + ", " + std::to_string(search.most) + " and " +
                        std::to_string(search.multiple));
  const std::size_t budget = std::min(search.budget - std::min(search.reserve, search.budget), search.cap);
  const auto fits = [&](std::int64_t batch) { return peak(batch) <= budget; };
  if (!fits(search.least)) return {};
  std::int64_t good = search.least, bad = search.most + 1;
  for (std::int64_t next = good; good < search.most && bad > search.most;) {
    next = std::min(search.most, next * 2);
    (fits(next) ? good : bad) = next;
  }
  const auto is_settled = [&] {  // no multiple lies between
    return bad - good <= 1 || (good >= search.multiple && good / search.multiple == (bad - 1) / search.multiple);
  };
  while (!is_settled()) {
    const std::int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  const std::int64_t rounded = good / search.multiple * search.multiple;
  return rounded >= search.least && rounded > 0 ? rounded : good;
}

std::string BudgetChoice::to_text(std::span<const Technique> techniques) const {
  std::string text;
  for (std::size_t i = 0; i < levels.size(); ++i)
    if (levels[i] > 0)
      text += (text.empty() ? "" : ", ") + techniques[i].levels[static_cast<std::size_t>(levels[i] - 1)];
  return text.empty() ? "nothing" : text;
}

BudgetChoice choose_within_budget(std::size_t budget, std::span<const Technique> techniques,
                                  const std::function<std::optional<std::size_t>(std::span<const int> levels)>& peak) {
  using Levels = std::vector<int>;
  constexpr std::size_t kNone = ~std::size_t{0};
  std::map<Levels, std::size_t> known;
  BudgetChoice best;
  best.planned = kNone;
  const auto look = [&](const Levels& levels) {
    if (const auto found = known.find(levels); found != known.end()) return found->second;
    const std::size_t bytes = peak(levels).value_or(kNone);
    ++best.tried;
    if (bytes < best.planned) {
      best.planned = bytes;
      best.levels = levels;
    }
    return known[levels] = bytes;
  };
  // The level of each technique that needs least: the highest one that goes with the run at all, or one below it where
  // that needs less. Each micro-batch has a loss with a page of its own, so that very many of them need more than
  // fewer.
  Levels strongest(techniques.size(), 0);
  const auto find_strongest = [&] {
    for (std::size_t k = 0; k < techniques.size(); ++k) {
      Levels alone(techniques.size(), 0);
      alone[k] = static_cast<int>(techniques[k].levels.size());
      while (alone[k] > 0 && look(alone) == kNone) --alone[k];
      for (Levels below = alone; alone[k] > 1; alone = below) {
        --below[k];
        if (look(below) >= look(alone)) break;
      }
      strongest[k] = alone[k];
    }
  };
  const auto settle = [&](Levels levels) {
    for (std::size_t k = 0; k < techniques.size(); ++k) {
      const int kept = levels[k];
      levels[k] = 0;
      while (levels[k] < kept && look(levels) > budget) ++levels[k];
    }
    BudgetChoice choice = best;
    choice.levels = levels;
    choice.planned = known.at(levels);
    choice.fits = true;
    return choice;
  };

  const Levels none(techniques.size(), 0);
  if (look(none) <= budget) return settle(none);
  find_strongest();
  for (std::size_t top = 0; top < techniques.size(); ++top) {
    if (strongest[top] == 0) continue;
    // With all before it first, then with fewer of them, since some do not go together.
    for (std::size_t mask = std::size_t{1} << top; mask-- > 0;) {
      Levels levels = none;
      levels[top] = strongest[top];
      for (std::size_t k = 0; k < top; ++k)
        if (mask >> k & 1) levels[k] = strongest[k];
      if (look(levels) <= budget) return settle(levels);
    }
  }
  return best;
}

}  // namespace samebytes

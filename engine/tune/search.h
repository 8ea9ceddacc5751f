// The search for better choices of one device: candidates are checked, then timed against the best so far.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "samebytes/tune.h"
#include "tune/contender.h"

namespace samebytes::detail {

enum class Outcome : std::uint8_t { better, not_better, wrong, not_built, stopped };

struct Verdict {
  Outcome outcome = Outcome::not_better;
  std::string why = {};  // of a refusal
  double gain = 1;       // of better: geometric mean over the problems
};

// What was measured of one problem: built-in against best.
struct Comparison {
  double first_ms = 0, second_ms = 0;
  double gain = 1;        // median of the paired ratios first / second
  double lower_gain = 1;  // their lower quartile
};

class Search {
 public:
  struct Options {
    std::string device;
    bool rapid = false;
    std::function<bool(const std::string& what)> go_on = {};  // false: stop
  };
  // `fixed` holds besides everything that is tried.
  Search(Options options, Values fixed);

  // Coordinate descent over the rows of a group until the deadline. Fills the rows and the counts of the report;
  // returns the values found, confirmed against the built-in ones.
  Values run(const std::string& group, std::chrono::steady_clock::time_point deadline, TuneReport& report);

  // One candidate against the best so far (at first: the built-in values). A better one becomes the best.
  Verdict judge(const Values& values, const std::vector<const Problem*>& problems, GemmProvider provider);

 private:
  struct Counts {
    int tried = 0, refused = 0;
  };
  Verdict check(Contender& contender, const std::vector<const Problem*>& problems);
  std::optional<Comparison> compare(Contender& first, Contender& second, const Problem& problem, int rounds);
  int launches_in_flight(Contender& contender, const Problem& problem);
  const std::vector<float>& reference(const Problem& problem);
  std::vector<const Problem*> problems_of(const std::string& group) const;
  void try_values(const Values& values, const std::vector<const Problem*>& problems, GemmProvider provider,
                  TuneReport& report);
  void confirm(const std::string& group, GemmProvider provider, TuneReport& report);
  void choose_providers(std::chrono::steady_clock::time_point deadline, TuneReport& report);
  bool may_go_on(const std::string& what) const { return !options_.go_on || options_.go_on(what); }

  Options options_;
  Values fixed_;
  Values best_;  // without the fixed ones
  GemmProvider provider_ = GemmProvider::packed;
  std::shared_ptr<Contender> built_in_, leader_;
  std::map<const Problem*, std::vector<float>> references_;
  std::map<const Problem*, int> in_flight_;
  std::map<const Problem*, Counts> counts_;
  std::set<Values> known_;  // already judged
};

}  // namespace samebytes::detail

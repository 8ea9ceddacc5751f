#include "tune/search.h"

#include <algorithm>
#include <cmath>

#include "runtime/runtime.h"
#include "samebytes/error.h"

namespace samebytes::detail {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kLeastGain = 1.03;  // less may be noise, and is not worth other bytes
constexpr double kMostLoss = 0.95;   // on any one problem
constexpr double kHopeless = 0.9;    // a first look this bad ends the matter
constexpr int kFullRounds = 9;
constexpr int kRapidRounds = 5;
constexpr double kSecondsPerRound = 0.006;  // launches are queued until a round takes as long
constexpr int kMostInFlight = 32;
constexpr std::size_t kRapidCandidates = 3;  // of each row

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  return values.empty() ? 1 : std::exp(sum / static_cast<double>(values.size()));
}

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

Values together(Values values, const Values& others) {
  for (const auto& [key, value] : others) values[key] = value;
  return values;
}

std::string values_text(const Values& values, Personality personality) {
  std::string text;
  for (const auto& [key, value] : values) {
    const Tunable* row = find_tunable(personality, key);
    text += (text.empty() ? "" : ", ") + (row->shape_class.empty() ? "" : row->shape_class + " ") + row->name + " = " +
            row->value_text(value);
  }
  return text;
}

}  // namespace

Search::Search(Options options, Values fixed) : options_(std::move(options)), fixed_(std::move(fixed)) {}

std::vector<const Problem*> Search::problems_of(const std::string& group) const {
  std::vector<const Problem*> chosen;
  for (const Problem& problem : tuning_problems())
    if (problem.group == group && (!options_.rapid || problem.is_rapid)) chosen.push_back(&problem);
  return chosen;
}

// What the built-in kernels give; the tests hold those against double precision.
const std::vector<float>& Search::reference(const Problem& problem) {
  const auto found = references_.find(&problem);
  if (found != references_.end()) return found->second;
  if (!built_in_) built_in_ = std::make_shared<Contender>(options_.device, fixed_, GemmProvider::packed);
  return references_[&problem] = built_in_->result(problem);
}

Verdict Search::check(Contender& contender, const std::vector<const Problem*>& problems) {
  for (const Problem* problem : problems) {
    const std::vector<float>& want = reference(*problem);
    std::vector<float> came;
    try {
      came = contender.result(*problem);
    } catch (const BuildError& error) {
      return {Outcome::not_built, error.file() + " does not build"};
    } catch (const Error& error) {
      return {Outcome::not_built, error.what()};
    }
    const std::string fault = difference(*problem, want, came);
    if (!fault.empty()) return {Outcome::wrong, problem->kernel + " " + problem->shape + ": " + fault};
  }
  return {};
}

int Search::launches_in_flight(Contender& contender, const Problem& problem) {
  int& count = in_flight_[&problem];
  if (count == 0) {
    contender.seconds(problem, 1);
    const double once = std::max(1e-7, contender.seconds(problem, 1));
    count = static_cast<int>(std::clamp(kSecondsPerRound / once, 1.0, static_cast<double>(kMostInFlight)));
  }
  return count;
}

// Rounds alternate and change their order, so that both meet the same machine.
std::optional<Comparison> Search::compare(Contender& first, Contender& second, const Problem& problem, int rounds) {
  const int count = launches_in_flight(first, problem);
  first.seconds(problem, count);  // makes the plan
  second.seconds(problem, count);
  std::vector<double> ratios, a, b;
  for (int round = 0; round < rounds; ++round) {
    if (!may_go_on("")) return {};
    if (round % 2 == 0) {
      a.push_back(first.seconds(problem, count));
      b.push_back(second.seconds(problem, count));
    } else {
      b.push_back(second.seconds(problem, count));
      a.push_back(first.seconds(problem, count));
    }
    ratios.push_back(a.back() / b.back());
  }
  return Comparison{1e3 * quantile(a, 0.5), 1e3 * quantile(b, 0.5), quantile(ratios, 0.5), quantile(ratios, 0.25)};
}

Verdict Search::judge(const Values& values, const std::vector<const Problem*>& problems, GemmProvider provider) {
  if (!leader_ || provider_ != provider) {
    if (best_.empty() && provider == GemmProvider::packed && built_in_)
      leader_ = built_in_;
    else
      leader_ = std::make_shared<Contender>(options_.device, together(fixed_, best_), provider);
    provider_ = provider;
    if (Verdict verdict = check(*leader_, problems); verdict.outcome != Outcome::not_better) return verdict;
  }
  std::shared_ptr<Contender> contender;
  try {
    contender = std::make_shared<Contender>(options_.device, together(fixed_, values), provider);
  } catch (const Error& error) {
    return {Outcome::not_built, error.what()};
  }
  if (Verdict verdict = check(*contender, problems); verdict.outcome != Outcome::not_better) return verdict;

  std::vector<const Problem*> timed;
  std::copy_if(problems.begin(), problems.end(), std::back_inserter(timed), [](auto* p) { return p->is_timed; });
  for (const int rounds : {2, options_.rapid ? kRapidRounds : kFullRounds}) {
    std::vector<double> gains, lower;
    for (const Problem* problem : timed) {
      const std::optional<Comparison> came = compare(*leader_, *contender, *problem, rounds);
      if (!came) return {Outcome::stopped};
      gains.push_back(came->gain);
      lower.push_back(came->lower_gain);
    }
    const double gain = geometric_mean(gains);
    if (rounds == 2) {
      if (gain < kHopeless || timed.empty()) return {};
      continue;
    }
    const bool loses = std::any_of(gains.begin(), gains.end(), [](double g) { return g < kMostLoss; });
    if (gain < kLeastGain || geometric_mean(lower) <= 1 || loses) return {};
    best_ = values;
    leader_ = std::move(contender);
    return {Outcome::better, "", gain};
  }
  return {};
}

void Search::try_values(const Values& values, const std::vector<const Problem*>& problems, GemmProvider provider,
                        TuneReport& report) {
  if (problems.empty() || !known_.insert(together(values, fixed_)).second) return;
  const Verdict verdict = judge(values, problems, provider);
  if (verdict.outcome == Outcome::stopped) return;
  const bool refused = verdict.outcome == Outcome::wrong || verdict.outcome == Outcome::not_built;
  ++report.tried;
  if (verdict.outcome == Outcome::wrong) ++report.wrong;
  if (verdict.outcome == Outcome::not_built) ++report.not_built;
  if (refused) {
    Values changed;
    for (const auto& [key, value] : values)
      if (const auto known = best_.find(key); known == best_.end() || known->second != value) changed[key] = value;
    report.refusals.push_back(values_text(changed, leader_ ? leader_->device().personality : Personality::cpu) + ": " +
                              verdict.why);
  }
  for (const Problem* problem : problems) {
    ++counts_[problem].tried;
    if (refused) ++counts_[problem].refused;
  }
}

Values Search::run(const std::string& group, Clock::time_point deadline, TuneReport& report) {
  best_.clear();
  leader_.reset();
  known_.clear();
  built_in_ = std::make_shared<Contender>(options_.device, fixed_, GemmProvider::packed);
  const DeviceInfo info = built_in_->device();
  const int width = vector_width_of(info, f32);
  const GemmProvider provider = group == "clblast" ? GemmProvider::clblast : GemmProvider::packed;
  const std::vector<const Problem*> problems = problems_of(group);
  const auto is_over = [&](const std::string& what) { return Clock::now() >= deadline || !may_go_on(what); };

  // A candidate is a few values put over the best so far.
  const auto attempt = [&](const Values& step, const std::vector<const Problem*>& concerned) {
    const Values values = together(best_, step);
    if (values == best_ || find_clash(together(fixed_, values), info.personality, width)) return true;
    if (is_over(group + ": " + values_text(step, info.personality))) return false;
    try_values(values, concerned, provider, report);
    return true;
  };
  const auto sweep = [&] {
    const bool is_cpu_blas = group == "clblast" && info.type == "cpu";
    if (group != "clblast" || is_cpu_blas)
      for (const Values& step : joint_candidates(info.personality, group))
        if (!attempt(step, problems)) return false;
    for (const Tunable& row : tunables(info.personality)) {
      if (row.group != group || !row.words.empty() || row.candidates.empty()) continue;
      std::vector<const Problem*> concerned;
      for (const Problem* problem : problems)
        if (problem->depends_on(row) || (!problem->is_timed && row.kind == Tunable::Kind::tile))
          if (problem->family == row.family || row.kind != Tunable::Kind::tile) concerned.push_back(problem);
      if (std::none_of(concerned.begin(), concerned.end(), [](auto* p) { return p->is_timed; })) continue;
      std::vector<std::int64_t> candidates = row.candidates;
      if (options_.rapid && candidates.size() > kRapidCandidates) candidates.resize(kRapidCandidates);
      candidates.push_back(built_in_value(row, info.personality, width));  // another choice may have changed its worth
      for (const std::int64_t candidate : candidates) {
        const auto now = best_.find(row.key);
        const std::int64_t holds = now != best_.end() ? now->second : candidates.back();
        if (candidate != holds && !attempt({{row.key, candidate}}, concerned)) return false;
      }
    }
    return true;
  };
  for (Values before{{"", 0}}; before != best_;) {  // until a sweep changes nothing
    before = best_;
    if (!sweep()) break;
  }
  for (auto value = best_.begin(); value != best_.end();) {
    const Tunable& row = *find_tunable(info.personality, value->first);
    value = value->second == built_in_value(row, info.personality, width) ? best_.erase(value) : std::next(value);
  }
  confirm(group, provider, report);
  if (group == "clblast") choose_providers(deadline, report);
  leader_.reset();
  return best_;
}

// The winner meets the built-in choices once more, on every problem of the group; what does not hold is dropped.
void Search::confirm(const std::string& group, GemmProvider provider, TuneReport& report) {
  if (provider == GemmProvider::clblast && counts_.empty()) return;  // nothing was tried, and it compiles for long
  const Personality personality = built_in_->device().personality;
  leader_.reset();
  const auto first =
      provider == GemmProvider::packed ? built_in_ : std::make_shared<Contender>(options_.device, fixed_, provider);
  for (bool is_last = best_.empty();; is_last = true) {
    const auto second =
        best_.empty() ? first : std::make_shared<Contender>(options_.device, together(fixed_, best_), provider);
    std::map<const Problem*, Comparison> rows;
    for (const Problem* problem : problems_of(group)) {
      if (!problem->is_timed) continue;
      const auto saved = options_.go_on;
      options_.go_on = {};  // short, and what was found is kept after an interruption
      rows[problem] = compare(*first, *second, *problem, options_.rapid ? kRapidRounds : kFullRounds).value();
      options_.go_on = saved;
    }
    Values kept;
    for (const auto& [key, value] : best_) {
      std::vector<double> gains;
      for (const auto& [problem, row] : rows)
        if (problem->depends_on(*find_tunable(personality, key))) gains.push_back(row.gain);
      if (geometric_mean(gains) >= kLeastGain) kept[key] = value;
    }
    if (is_last || kept == best_) {
      for (const Problem* problem : problems_of(group)) {
        if (!problem->is_timed) continue;
        const Comparison& row = rows[problem];
        const bool is_changed = std::any_of(best_.begin(), best_.end(), [&](const auto& value) {
          return problem->depends_on(*find_tunable(personality, value.first));
        });
        report.problems.push_back({group, problem->kernel, problem->shape, row.first_ms,
                                   is_changed ? row.second_ms : row.first_ms, is_changed ? row.gain : 1,
                                   counts_[problem].tried, counts_[problem].refused});
      }
      return;
    }
    best_ = kept;
  }
}

// CLBlast with the parameters found, against the packed kernel, class by class.
void Search::choose_providers(Clock::time_point deadline, TuneReport& report) {
  const Personality personality = built_in_->device().personality;
  Contender packed(options_.device, fixed_, GemmProvider::packed);
  Contender clblast(options_.device, together(fixed_, best_), GemmProvider::clblast);
  for (const Tunable& row : tunables(personality)) {
    if (row.group != "clblast" || row.words.empty()) continue;
    if (Clock::now() >= deadline || !may_go_on("clblast: " + row.shape_class + " " + row.name)) return;
    std::vector<const Problem*> concerned;
    for (const Problem* problem : problems_of("gemm"))
      if (problem->depends_on(row)) concerned.push_back(problem);
    std::vector<double> gains;
    std::vector<TunedProblem> rows;
    Verdict verdict = check(clblast, concerned);
    for (const Problem* problem : concerned) {
      if (!problem->is_timed || verdict.outcome != Outcome::not_better) continue;
      const std::optional<Comparison> came = compare(packed, clblast, *problem, kRapidRounds);
      if (!came) return;
      gains.push_back(came->gain);
      rows.push_back({"clblast", problem->kernel, problem->shape, came->first_ms, came->second_ms, came->gain, 1, 0});
    }
    ++report.tried;
    if (verdict.outcome == Outcome::wrong) ++report.wrong;
    if (verdict.outcome == Outcome::not_built) ++report.not_built;
    if (verdict.outcome != Outcome::not_better)
      report.refusals.push_back(row.shape_class + " provider = clblast: " + verdict.why);
    if (gains.empty() || geometric_mean(gains) < kLeastGain ||
        std::any_of(gains.begin(), gains.end(), [](double gain) { return gain < kMostLoss; }))
      continue;
    best_[row.key] = row.candidates.front();
    report.problems.insert(report.problems.end(), rows.begin(), rows.end());
  }
}

}  // namespace samebytes::detail

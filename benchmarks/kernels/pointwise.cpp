// Pointwise chains, copies, random numbers and optimizers over 64 MiB and more: one pass over what they read and write.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>

#include "kernels/row.h"
#include "samebytes/engine.h"
#include "samebytes/ops.h"
#include "samebytes/optim/adam.h"
#include "samebytes/optim/sgd.h"

namespace samebytes::benchmarks {
namespace {

constexpr std::int64_t kElements = std::int64_t{1} << 24;
constexpr std::int64_t kParameters = 100'000'000;
constexpr float kRate = 1e-3F;

Row add_two() {
  const Array a = values({kElements}), b = values({kElements});
  return {.work = 3 * bytes(a),
          .bound = Bound::bandwidth,
          .make = [=] { return a + b; },
          .peers = {onednn_add(host(a), host(b))}};
}

// relu(a b + c): three reads, one write.
Row chain() {
  const Array a = values({kElements}), b = values({kElements}), c = values({kElements});
  const std::vector<float> x = host(a), y = host(b), z = host(c);
  return {.work = 4 * bytes(a),
          .bound = Bound::bandwidth,
          .make = [=] { return relu(a * b + c); },
          .expected =
              [=](std::int64_t at) {
                const auto i = static_cast<std::size_t>(at);
                return std::max(0.0, 1.0 * x[i] * y[i] + z[i]);
              }};
}

Row gelu_of() {
  const Array a = values({kElements});
  const std::vector<float> x = host(a);
  return {.work = 2 * bytes(a),
          .bound = Bound::bandwidth,
          .make = [=] { return gelu(a); },
          .expected =
              [=](std::int64_t i) {
                const double v = x[static_cast<std::size_t>(i)];
                return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0)));
              }};
}

Row gelu_gradient() {
  const Array a = values({kElements}), dy = values({kElements});
  const std::vector<float> x = host(a), d = host(dy);
  return {.work = 3 * bytes(a),
          .bound = Bound::bandwidth,
          .make = [=] { return pull_back(gelu(a), dy, a); },
          .expected =
              [=](std::int64_t at) {
                const auto i = static_cast<std::size_t>(at);
                const double v = x[i], density = std::exp(-v * v / 2) / std::sqrt(2 * 3.14159265358979323846);
                return d[i] * (0.5 * (1 + std::erf(v / std::sqrt(2.0))) + v * density);
              }};
}

Row concat_two() {
  const Array a = values({kElements / 2}), b = values({kElements / 2});
  const std::vector<float> x = host(a), y = host(b);
  return {.work = 4 * bytes(a),
          .bound = Bound::bandwidth,
          .make =
              [=] {
                const std::vector<Array> both{a, b};
                return concat(both, 0);
              },
          .expected = [=](std::int64_t i) -> double {
            const auto n = static_cast<std::int64_t>(x.size());
            return i < n ? x[static_cast<std::size_t>(i)] : y[static_cast<std::size_t>(i - n)];
          }};
}

Row embed(bool is_gradient) {
  constexpr std::int64_t kIds = 32768, kWords = 50257, kWidth = 768;
  const Array table = values({kWords, kWidth}), dy = values({kIds, kWidth});
  const Array ids = astype(uniform({kIds}, 0, kWords), i32).wait();
  if (is_gradient)
    return {.work = bytes(dy) + bytes(table), .bound = Bound::bandwidth, .make = [=] {
              return pull_back(embedding(ids, table), dy, table);
            }};
  const auto place = ids.to_vector<std::int32_t>();
  return {.work = 2 * bytes(dy),
          .bound = Bound::bandwidth,
          .make = [=] { return embedding(ids, table); },
          .expected = [=, words = host(table)](std::int64_t i) -> double {
            return words[static_cast<std::size_t>(place[static_cast<std::size_t>(i / kWidth)] * kWidth + i % kWidth)];
          }};
}

// Two steps with one gradient, in one launch each. `want` gives the parameter after them from p and g.
template <class Optimizer, class Options>
Row optimizer(int passes, const Options& options, const std::function<double(double, double)>& want) {
  struct State {
    explicit State(const Options& o) : optimizer(std::span<const Array>(&parameter, 1), o) {}
    Array parameter = cell(uniform({kParameters}, -1, 1), "parameter");
    Array gradient = values({kParameters});
    Optimizer optimizer;
    void step() { optimizer.step_flat(std::span<const Array>(&gradient, 1)); }
  };
  const auto state = std::make_shared<State>(options);
  return {.work = passes * bytes(state->gradient),
          .bound = Bound::bandwidth_in_place,
          .step = [state] { state->step(); },
          .check = [state, want]() -> std::string {
            constexpr std::size_t kStride = 999'983, kSome = 100;
            constexpr double kTolerance = 1e-6;
            std::vector<double> before;
            {
              const auto view = state->parameter.template host<float>();
              for (std::size_t i = 0; i < kSome; ++i) before.push_back(view[i * kStride]);
            }
            state->step();
            state->parameter.wait();
            const std::uint64_t launches = Engine::current().plans().launches;
            state->step();
            if (const std::uint64_t used = Engine::current().plans().launches - launches; used != 1)
              return "a step takes " + std::to_string(used) + " launches, not one";
            const auto after = state->parameter.template host<float>();
            const auto gradient = state->gradient.template host<float>();
            for (std::size_t i = 0; i < kSome; ++i)
              if (const double wanted = want(before[i], gradient[i * kStride]);
                  !(std::abs(after[i * kStride] - wanted) < kTolerance))
                return "parameter " + std::to_string(i * kStride) + " is " + std::to_string(after[i * kStride]) +
                       ", wanted " + std::to_string(wanted);
            return "";
          }};
}

// Reads parameter, gradient and two moments, writes all but the gradient. Both corrected moments are g and g^2 exactly.
Row adamw() {
  return optimizer<optim::AdamW>(7, optim::AdamWOptions{.rate = kRate}, [](double p, double g) {
    constexpr double kDecay = 1e-2, kKeep = 1 - kRate * kDecay;
    const double move = kRate * g / (std::abs(g) + 1e-8);
    return (p * kKeep - move) * kKeep - move;
  });
}

// Reads parameter, gradient and momentum, writes parameter and momentum.
Row sgd() {
  constexpr double kMomentum = 0.9;
  return optimizer<optim::Sgd>(5, optim::SgdOptions{.rate = kRate, .momentum = kMomentum},
                               [](double p, double g) { return p - kRate * g - kRate * (kMomentum * g + g); });
}

}  // namespace

void add_pointwise(std::vector<Entry>& entries) {
  entries.push_back({"pointwise", "add/16M", add_two});
  entries.push_back({"pointwise", "relu_of_ab_plus_c/16M", chain});
  entries.push_back({"pointwise", "gelu/16M", gelu_of});
  entries.push_back({"pointwise", "gelu_gradient/16M", gelu_gradient});
  entries.push_back({"copy", "concat_of_two/16M", concat_two});
  entries.push_back({"copy", "embedding/32768_of_50257x768", [] { return embed(false); }});
  entries.push_back({"copy", "embedding_gradient/32768_of_50257x768", [] { return embed(true); }});
  entries.push_back({"optimizer", "AdamW/100M", adamw});
  entries.push_back({"optimizer", "Sgd_with_momentum/100M", sgd});
}

}  // namespace samebytes::benchmarks

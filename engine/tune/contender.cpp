#include "tune/contender.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "graph/context.h"
#include "samebytes/autograd.h"

namespace samebytes::detail {

Contender::Contender(const std::string& device, Values values, GemmProvider provider)
    : values_(std::move(values)), provider_(provider), engine_({.device = device, .gemm = provider, .tuning = ""}) {
  engine_.context()->options.fallback = false;  // a candidate that does not build is none, whoever could run it
  Runtime& runtime = *engine_.context()->runtime;
  runtime.set_tuning(std::make_shared<const Tuning>(engine_.device().personality, values_));
  runtime.device().kernels().build_files_alone();
}

const std::vector<Array>& Contender::inputs(const Problem& problem) {
  std::vector<Array>& arrays = inputs_[&problem];
  if (!arrays.empty()) return arrays;
  std::uint32_t state = 1;  // made by the host: no kernel is built for it
  for (const Shape& shape : problem.inputs) {
    std::vector<float> values(static_cast<std::size_t>(shape.size()));
    for (float& value : values) {
      state = state * 1664525u + 1013904223u;
      value = static_cast<float>(static_cast<std::int32_t>(state) >> 8) / static_cast<float>(1 << 23);
    }
    arrays.push_back(array(std::span<const float>(values), shape));
  }
  return arrays;
}

std::vector<float> Contender::result(const Problem& problem) {
  const EngineScope scope(engine_);
  const NoGrad no_grad;
  return problem.make(inputs(problem)).to_vector<float>();
}

double Contender::seconds(const Problem& problem, int count) {
  const EngineScope scope(engine_);
  const NoGrad no_grad;
  const std::vector<Array>& x = inputs(problem);
  // CLBlast's parameters are the process's: the other contender's are replaced, and its kernels built, before time
  // runs.
  if (provider_ == GemmProvider::clblast) problem.make(x).wait();
  std::vector<Array> results;
  results.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) results.push_back(problem.make(x));
  engine_.wait();
  const auto start = std::chrono::steady_clock::now();
  eval(results);
  engine_.wait();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / count;
}

std::string difference(const Problem& problem, const std::vector<float>& want, const std::vector<float>& came) {
  if (want.size() != came.size())
    return std::to_string(came.size()) + " values instead of " + std::to_string(want.size());
  const double tolerance =
      8 * std::numeric_limits<float>::epsilon() * (4 + std::sqrt(static_cast<double>(problem.sum_length)));
  for (std::size_t i = 0; i < want.size(); ++i)
    if (!(std::abs(double{came[i]} - want[i]) <= tolerance * (1 + std::abs(want[i]))))
      return "value " + std::to_string(i) + " is " + std::to_string(came[i]) + " instead of " + std::to_string(want[i]);
  return "";
}

}  // namespace samebytes::detail

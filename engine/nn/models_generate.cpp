// Samples tokens from a decoder, on the host and in double, with random numbers that depend only on seed and step.
#include "nn/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/models.h"
#include "samebytes/random.h"

namespace samebytes::models {
namespace {

// The tokens to draw from, in their order.
std::vector<std::int32_t> candidates(const std::vector<double>& logits, double largest,
                                     const GenerateOptions& options) {
  std::vector<std::int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](std::int32_t i) { return logits[static_cast<std::size_t>(i)]; };
  const auto is_likelier = [&](std::int32_t a, std::int32_t b) {
    return logit(a) > logit(b) || (logit(a) == logit(b) && a < b);
  };
  const auto share = [&](std::int32_t i) { return std::exp((logit(i) - largest) / options.temperature); };
  if (options.top_k > 0 && options.top_k < static_cast<std::int64_t>(order.size())) {
    const auto kept = static_cast<std::ptrdiff_t>(options.top_k);
    std::nth_element(order.begin(), order.begin() + kept, order.end(), is_likelier);
    order.resize(static_cast<std::size_t>(kept));
  }
  if (options.top_p < 1) {
    std::sort(order.begin(), order.end(), is_likelier);
    double total = 0, sum = 0;
    for (const std::int32_t i : order) total += share(i);
    std::size_t kept = 0;
    while (kept < order.size() && (kept == 0 || sum < options.top_p * total)) sum += share(order[kept++]);
    order.resize(kept);
  }
  if (options.min_p > 0) std::erase_if(order, [&](std::int32_t i) { return share(i) < options.min_p; });
  std::sort(order.begin(), order.end());
  return order;
}

// `text`: the ids so far.
std::int32_t drawn(std::vector<double> logits, std::span<const std::int32_t> text, const GenerateOptions& options,
                   std::int64_t step) {
  for (const double x : logits)
    if (!std::isfinite(x)) throw Error("generate: the logits of token " + std::to_string(step) + " are not finite");
  if (options.repetition_penalty != 1)
    for (const std::int32_t id : std::set<std::int32_t>(text.begin(), text.end())) {
      double& x = logits[static_cast<std::size_t>(id)];
      x = x < 0 ? x * options.repetition_penalty : x / options.repetition_penalty;
    }
  const auto largest = std::max_element(logits.begin(), logits.end());  // the first of equal ones
  if (options.temperature == 0 || options.top_k == 1) return static_cast<std::int32_t>(largest - logits.begin());
  const std::vector<std::int32_t> order = candidates(logits, *largest, options);
  std::vector<double> sums;  // running sums of the probabilities
  sums.reserve(order.size());
  double total = 0;
  for (const std::int32_t i : order)
    sums.push_back(total += std::exp((logits[static_cast<std::size_t>(i)] - *largest) / options.temperature));
  const double at =
      static_cast<double>(Random({.seed = options.seed, .index = step, .domain = RandomDomain::generation}).bits()) *
      0x1p-32 * total;
  const auto found = std::upper_bound(sums.begin(), sums.end() - 1, at);
  return order[static_cast<std::size_t>(found - sums.begin())];
}

void check(const GenerateOptions& options) {
  if (!(options.temperature >= 0 && std::isfinite(options.temperature)))
    throw ArgumentError("generate: the temperature must be 0 or more, got " + std::to_string(options.temperature));
  if (options.tokens < 0 || options.top_k < 0)
    throw ArgumentError("generate: tokens and top_k must be 0 or more, got " + std::to_string(options.tokens) +
                        " and " + std::to_string(options.top_k));
  if (!(options.top_p > 0 && options.top_p <= 1))
    throw ArgumentError("generate: top_p must be above 0 and at most 1, got " + std::to_string(options.top_p));
  if (!(options.min_p >= 0 && options.min_p <= 1))
    throw ArgumentError("generate: min_p must be from 0 to 1, got " + std::to_string(options.min_p));
  if (options.prompt_chunk < 0)
    throw ArgumentError("generate: prompt_chunk must be 0 or more, got " + std::to_string(options.prompt_chunk));
  if (!(options.repetition_penalty > 0 && std::isfinite(options.repetition_penalty)))
    throw ArgumentError("generate: the repetition penalty must be above 0, got " +
                        std::to_string(options.repetition_penalty));
}

}  // namespace

GeneratedText::GeneratedText(const Generator& generator, std::span<const std::int32_t> prompt, GenerateOptions options)
    : generator_(generator), options_(std::move(options)), ids_(prompt.begin(), prompt.end()) {
  if (prompt.empty()) throw ArgumentError("generate: the prompt needs at least one id, got none");
  for (const std::int32_t id : prompt)
    if (id < 0 || id >= generator.vocabulary)
      throw ArgumentError("generate: ids must be in [0, " + std::to_string(generator.vocabulary) + "), got " +
                          std::to_string(id));
  check(options_);
  // A long prompt is cut to its end, which fits.
  read_ = ids_.size() - std::min(ids_.size(), static_cast<std::size_t>(generator.context));
  is_done_ = options_.tokens == 0;
}

std::span<const std::int32_t> GeneratedText::next() {
  const auto left = [&] { return static_cast<std::int64_t>(ids_.size() - read_); };
  if (length_ + left() > generator_.context) {
    generator_.reset();
    length_ = 0;
    read_ = ids_.size() - static_cast<std::size_t>(std::max<std::int64_t>(1, generator_.context / 2));
  }
  const std::int64_t turn = generator_.turning_point;
  if (length_ > 0 && length_ <= turn && length_ + left() > turn) {
    generator_.reset();
    read_ -= static_cast<std::size_t>(length_);
    length_ = 0;
  }
  std::int64_t count = left();
  if (options_.prompt_chunk > 0 && count > options_.prompt_chunk &&
      (!generator_.reads_in_parts || generator_.reads_in_parts(length_ + count))) {
    // The first part of a text that passes the turning point passes it, too.
    const std::int64_t first = length_ == 0 && count > turn && turn > 0 ? turn + 1 : 0;
    count = std::min(count, std::max(options_.prompt_chunk, first));
  }
  const std::span<const std::int32_t> part =
      std::span<const std::int32_t>(ids_).subspan(read_, static_cast<std::size_t>(count));
  read_ += part.size();
  length_ += count;
  return part;
}

void GeneratedText::draw(std::vector<double> logits) {
  ids_.push_back(drawn(std::move(logits), ids_, options_, step_++));
  is_done_ = step_ >= options_.tokens;
  if (options_.on_token && !options_.on_token(ids_.back())) is_done_ = true;
  if (generator_.is_last && generator_.is_last(ids_.back())) is_done_ = true;
}

std::vector<std::int32_t> generate_by(const Generator& generator, nn::Module& module,
                                      std::span<const std::int32_t> prompt, const GenerateOptions& options) {
  GeneratedText text(generator, prompt, options);
  const NoGrad no_grad;
  const EvaluationMode evaluation(module);
  while (!text.is_done()) {
    const std::span<const std::int32_t> part = text.next();
    const Array logits = generator.next(array(part, {1, static_cast<std::int64_t>(part.size())}));
    if (text.wants_logits())
      text.draw(logits.to_vector<double>());
    else
      logits.eval();  // so that the cache has this part
  }
  return text.ids();
}

std::vector<std::int32_t> generate(Gpt& model, std::span<const std::int32_t> prompt, const GenerateOptions& options) {
  GptCache cache = model.make_cache();
  return generate_by({.vocabulary = model.options().vocabulary,
                      .context = model.options().context,
                      .next = [&](const Array& ids) { return model.forward(ids, cache); },
                      .reset =
                          [&] {
                            for (nn::KeyValueCache& layer : cache) layer.reset();
                          }},
                     model, prompt, options);
}

}  // namespace samebytes::models

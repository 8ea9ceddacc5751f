// Losses of classes.
#include <algorithm>

#include "onnx/registry.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

// The loss of log-probabilities [N, C, ...] at classes [N, ...].
Array likelihood_loss(const Call& call, const Array& logs) {
  const Sizes sizes = call.sizes(), result = call.sizes(1);
  if (sizes.size() < 2 || result.size() + 1 != sizes.size()) call.refuse("expected [N, C, ...] and classes [N, ...]");
  const std::int64_t classes = sizes[1], inner = count({sizes.begin() + 2, sizes.end()});
  const auto target = ints_of(call.at(1));
  Sizes without_classes = sizes;
  without_classes.erase(without_classes.begin() + 1);
  if (result != without_classes || target.empty()) call.refuse("its classes do not fit, or there are none");
  const bool ignores = call.has_attribute("ignore_index");
  const std::int64_t ignored = call.integer("ignore_index", 0);
  std::vector<std::int64_t> from, of_class;
  std::vector<float> counts;
  for (std::size_t i = 0; i < target.size(); ++i) {
    const bool is_ignored = ignores && target[i] == ignored;
    const std::int64_t at = is_ignored ? 0 : target[i], place = static_cast<std::int64_t>(i);
    if (at < 0 || at >= classes)
      call.refuse("class " + std::to_string(at) + " is outside of " + std::to_string(classes));
    from.push_back((place / inner * classes + at) * inner + place % inner);
    of_class.push_back(at);
    counts.push_back(is_ignored ? 0.0f : 1.0f);
  }
  const Shape shape = shape_of(result);
  Array share = astype(samebytes::array(std::span<const float>(counts), shape), logs.dtype());
  if (call.has(2)) share = share * plain(moved(call.at(2), result, of_class));
  Array loss = -plain(moved(item_of(logs), result, from)) * share;
  const std::string reduction = call.text("reduction", "mean");
  if (reduction == "none") return loss;
  return reduction == "sum" ? sum(loss) : sum(loss) / sum(share);
}

Outputs losses(const Call& call) {
  const Array x = call.floating();
  if (call.op == "NegativeLogLikelihoodLoss") return {item_of(likelihood_loss(call, x))};
  if (call.rank() < 2) call.refuse("expected [N, C, ...]");
  const Array logs = log_softmax(x, 1);
  return {item_of(likelihood_loss(call, logs)), item_of(logs)};
}

}  // namespace

void add_losses(Registry& registry) {
  registry.insert({{"NegativeLogLikelihoodLoss", losses}, {"SoftmaxCrossEntropyLoss", losses}});
}

}  // namespace samebytes::onnx

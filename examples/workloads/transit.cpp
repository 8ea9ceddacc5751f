// transit: a two-branch network (models.h) that finds planets in folded light curves: 10 000 made ones, or measured
// local views in a folder, in five folds. Beside it two simpler methods: logistic regression on the same views, and a
// threshold on the depth of the best box.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <span>
#include <vector>

#include "samebytes/autograd.h"
#include "samebytes/engine.h"
#include "samebytes/models.h"
#include "samebytes/ops.h"
#include "samebytes/optim.h"
#include "samebytes/random.h"
#include "samebytes/train.h"
#include "workloads/workload.h"

namespace samebytes::workloads {
namespace {

constexpr std::int64_t kCurves = 10000, kTraining = 8000;
constexpr int kGlobal = 2001, kLocal = 201;
constexpr int kChannels[] = {32, 32, 64};
constexpr int kRegressionEpochs = 30;
constexpr double kRegressionRate = 1e-3;
constexpr std::int64_t kRegressionBatch = 64;

FlopCount count_transit_flops() {
  FlopCount flops;
  const auto branch = [&](int length, const int(&kernels)[3]) {
    int in = 1;
    for (int b = 0; b < 3; ++b, length /= 2) {
      flops.conv1d(length, kernels[b], in, kChannels[b]);
      in = kChannels[b];
    }
  };
  branch(kGlobal, {7, 5, 5});
  branch(kLocal, {5, 3, 3});
  return flops.linear(2 * kChannels[2], 128).linear(128, 1);
}

Array forward(nn::Module& net, const data::Batch& batch) { return reshape(net(batch["global"], batch["local"]), {-1}); }

Array binary_loss(const Array& logits, const data::Batch& batch) { return bce_with_logits(logits, batch["label"]); }

Array count_right_signs(const Array& logits, const data::Batch& batch) {
  return sum(astype(equal(astype(greater(logits, zeros({1})), f32), batch["label"]), f32));
}

using Stop = std::function<bool()>;

// What one method says of every test sample, and the truth.
struct Verdicts {
  std::vector<float> scores, truth;
  Baseline named(const char* name) const {
    return {.name = name,
            .balanced_accuracy = balanced_accuracy(scores, truth),
            .area_under_curve = area_under_curve(scores, truth)};
  }
};

// Each sample once, in order; `visit` gets its views and its label.
template <class Visit>
void for_each_sample(const data::Dataset& set, const Stop& should_stop, const Visit& visit) {
  std::vector<float> global(kGlobal), local(kLocal);
  float label = 0;
  const auto bytes = [](auto& values) { return std::as_writable_bytes(std::span(values)); };
  for (std::int64_t i = 0; i < set.size() && !should_stop(); ++i) {
    const std::array<data::Field, 3> fields{data::Field{bytes(global), {kGlobal, 1}},
                                            data::Field{bytes(local), {kLocal, 1}},
                                            data::Field{std::as_writable_bytes(std::span(&label, 1)), {}}};
    set.read(i, fields);
    visit(global, local, label);
  }
}

Baseline logistic_regression(const data::Split& split, const Stop& should_stop) {
  Engine& engine = Engine::current();
  nn::Linear net({.in = kGlobal + kLocal, .out = 1});
  const auto logits = [&](const data::Batch& batch) {
    return reshape(net(concat({flatten(batch["global"]), flatten(batch["local"])}, 1)), {-1});
  };
  optim::AdamW optimizer(net.parameters(), {.rate = kRegressionRate});
  data::Loader training(engine, split.train, {.batch = kRegressionBatch, .shuffle = true});
  for (int epoch = 0; epoch < kRegressionEpochs && !should_stop(); ++epoch)
    for (const data::Batch& batch : training) optimizer.step(binary_loss(logits(batch), batch));
  const NoGrad no_grad;
  Verdicts verdicts;
  data::Loader test(engine, split.test, {.batch = kRegressionBatch});
  for (const data::Batch& batch : test) {
    for (const float score : logits(batch).to_vector<float>()) verdicts.scores.push_back(score);
    for (const float label : batch["label"].to_vector<float>()) verdicts.truth.push_back(label);
  }
  return verdicts.named("logistic regression, both views");
}

// The threshold is the one with the best balanced accuracy on the training set.
Baseline box_depth(const data::Split& split, const Stop& should_stop) {
  const auto measure = [&should_stop](const data::Dataset& set) {
    Verdicts verdicts;
    for_each_sample(set, should_stop, [&](const auto& global, const auto&, float label) {
      verdicts.scores.push_back(static_cast<float>(data::box_least_squares_depth(global)));
      verdicts.truth.push_back(label);
    });
    return verdicts;
  };
  const Verdicts training = measure(*split.train);
  std::vector<std::size_t> order(training.scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return training.scores[a] > training.scores[b]; });
  const double planets = std::accumulate(training.truth.begin(), training.truth.end(), 0.0);
  const double others = static_cast<double>(order.size()) - planets;
  double found = 0, wrong = 0, best = 0;
  float threshold = 0;
  for (const std::size_t i : order) {
    (training.truth[i] == 1 ? found : wrong) += 1;
    if (const double gain = found / planets - wrong / others; gain > best) {
      best = gain;
      threshold = training.scores[i];
    }
  }
  Verdicts test = measure(*split.test);
  for (float& score : test.scores) score -= std::nextafter(threshold, 0.0f);
  return test.named("best box, depth over noise");
}

// Of measured curves: local views of Kepler's objects of interest, in which planets are rare.
constexpr const char* kMeasuredFile = "kepler_local_view.csv.gz";
constexpr float kLowest = -2, kHighest = 3;  // the curves are about 1 outside of a transit and 0 at its bottom
constexpr int kFolds = 5;

Workload measured_workload(const std::string& data) {
  const bool is_folder = std::filesystem::is_directory(data);
  const std::string path = is_folder ? (std::filesystem::path(data) / kMeasuredFile).string() : data;
  const data::LightCurves stars = data::light_curves(path, {.lowest = kLowest, .highest = kHighest});
  const std::vector<std::int32_t>& labels = stars.curves.labels;
  const auto planets = static_cast<double>(std::count(labels.begin(), labels.end(), 1));
  const double weight = (static_cast<double>(labels.size()) - planets) / planets;
  const data::DatasetPtr all = data::from_series(stars.curves);
  const std::vector<data::Fold> folds =
      data::stratified_folds(labels, {.folds = kFolds, .seed = 1, .groups = stars.groups});
  return {.name = "transit",
          .defaults = {.epochs = 8,
                       .batch = 32,
                       .rate = 1e-3,
                       .weight_decay = 1e-1},  // few planets are soon known by heart
          .flops = count_transit_flops(),
          .open =
              [all, folds](int fold) {
                const data::Fold& parts = folds[static_cast<std::size_t>(fold)];
                return data::Split{.train = data::subset(all, parts.train), .test = data::subset(all, parts.test)};
              },
          .folds = kFolds,
          .prepare = {data::normalise({.mean = {1}})},
          .make_model = []() -> std::unique_ptr<nn::Module> {
            return std::make_unique<models::Transit>(models::TransitOptions{.has_global = false});
          },
          .forward = [](nn::Module& net, const data::Batch& batch) { return reshape(net(batch["series"]), {-1}); },
          .loss =
              [weight](const Array& logits, const data::Batch& batch) {
                const Array label = astype(batch["label"], f32);
                return mean(bce_with_logits(logits, label, Reduction::none) * (label * (weight - 1) + 1.0));
              },
          .right =
              [](const Array& logits, const data::Batch& batch) {
                return sum(astype(equal(astype(greater(logits, zeros({1})), i32), batch["label"]), f32));
              },
          .is_binary = true};
}

}  // namespace

Workload transit_workload(const WorkloadOptions& options) {
  if (!options.data.empty()) return measured_workload(options.data);
  const auto generated = [](std::int64_t curves) { return data::transits({.size = curves, .seed = 1}); };
  return {.name = "transit",
          .defaults = {.epochs = 12, .batch = 64, .rate = 2e-3},
          .flops = count_transit_flops(),
          .open =
              [generated](int) {
                const data::DatasetPtr all = data::preload(generated(kCurves));
                return data::Split{.train = data::slice(all, 0, kTraining),
                                   .test = data::slice(all, kTraining, kCurves - kTraining)};
              },
          .make_samples = [generated](std::int64_t samples) { return data::preload(generated(samples)); },
          .make_model = []() -> std::unique_ptr<nn::Module> { return std::make_unique<models::Transit>(); },
          .forward = forward,
          .loss = binary_loss,
          .right = count_right_signs,
          .is_binary = true,
          .baselines =
              [](const data::Split& split, const Stop& should_stop) {
                return std::vector<Baseline>{logistic_regression(split, should_stop), box_depth(split, should_stop)};
              }};
}

}  // namespace samebytes::workloads

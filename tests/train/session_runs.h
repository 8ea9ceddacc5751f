// What the tests of train::Session share: a small network on digits, and how it is trained.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/files.h"

namespace samebytes::train {

inline constexpr std::int64_t kSamples = 120, kBatch = 16;  // eight batches in an epoch, the last one of eight

inline Array digits_loss(const Array& logits, const data::Batch& batch) { return cross_entropy(logits, batch[1]); }

// Two runs on one engine begin with the same random numbers.
struct TrainedNet {
  nn::Sequential net;
  data::Loader training, validation;
  std::unique_ptr<Session> session;

  TrainedNet(Engine& engine, SessionOptions options, OfOutput loss = digits_loss)
      : net(make_net(engine)),
        training(engine, data::slice(data::digits().train, 0, kSamples), {.batch = kBatch, .shuffle = true, .seed = 7}),
        validation(engine, data::slice(data::digits().test, 0, 100), {.batch = 50}) {
    options.validation = &validation;
    session = std::make_unique<Session>(engine, net, Task{.loss = std::move(loss), .metrics = {accuracy()}}, training,
                                        std::move(options));
  }
  static nn::Sequential make_net(Engine& engine) {
    engine.set_random_counter(1);
    return nn::Sequential(nn::Flatten(), nn::Linear({.in = 64, .out = 32}), nn::Relu(), nn::Dropout(0.2),
                          nn::Linear({.in = 32, .out = 10}));
  }
  Session* operator->() { return session.get(); }
  std::vector<float> weights() const {
    std::vector<float> all;
    for (const Array& parameter : net.parameters())
      for (const float value : parameter.to_vector<float>()) all.push_back(value);
    return all;
  }
};

inline OptimizerPtr fast_adam(std::span<const Array> parameters) {
  return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.rate = 1e-2});
}

// What a run can have: schedule, clipping, averages.
inline SessionOptions full_options() {
  return {.make_optimizer = [](std::span<const Array> parameters) -> OptimizerPtr {
            return std::make_unique<optim::AdamW>(parameters, optim::AdamWOptions{.rate = 1e-2, .clip_norm = 1});
          },
          .schedule = optim::Schedule{.decay = optim::Decay::cosine, .rate = 1e-2, .warmup = 2, .steps = 40},
          .ema = optim::EmaOptions{.decay = 0.9, .warmup = true},
          .grad_norm_every = 1};
}

inline std::vector<nlohmann::json> lines_of(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream text(testing::get(path));
  for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

}  // namespace samebytes::train

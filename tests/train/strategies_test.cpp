// A Session over the devices of an engine; that over processes is in tests/distributed.
#include "samebytes/train/parallel/strategies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/errors.h"
#include "support/files.h"
#include "support/quirks.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;
using train::DataParallelOptions;
using train::DevicesStrategy;

// A Session of `epochs` epochs on 120 digits, over the devices of an engine, or on one.
struct Trained {
  explicit Trained(bool has_two, const DataParallelOptions& sharing = {}, const std::string& folder = {},
                   train::SharingNames names = {})
      : engine(has_two ? EngineOptions{.split = {1, 1}, .seed = 1} : EngineOptions{.seed = 1}),
        scope(engine),
        net(nn::Flatten(), nn::Linear({.in = 64, .out = 10})),
        training(engine, data::slice(data::digits().train, 0, 120), {.batch = 16, .shuffle = true, .seed = 7}),
        validation(engine, data::slice(data::digits().test, 0, 50), {.batch = 10}) {
    if (has_two) devices = std::make_unique<DevicesStrategy>(engine, net, sharing, std::move(names));
    train::SessionOptions options{.validation = &validation, .shared = devices.get()};
    if (!folder.empty())
      options.checkpoints =
          std::make_shared<train::Checkpoints>(train::CheckpointsOptions{.folder = folder, .resume = "auto"});
    session = std::make_unique<train::Session>(engine, net, train::Task{.loss = loss_of}, training, options);
  }
  static Array loss_of(const Array& logits, const data::Batch& batch) { return cross_entropy(logits, batch[1]); }
  std::vector<float> weights() const { return net.parameters()[0].to_vector<float>(); }

  Engine engine;
  EngineScope scope;
  nn::Sequential net;
  data::Loader training, validation;
  std::unique_ptr<DevicesStrategy> devices;
  std::unique_ptr<train::Session> session;
};

class DevicesStrategyTest : public ::testing::Test {
 protected:
  void SetUp() override { SAMEBYTES_NEEDS_PARTS(); }
};

TEST_F(DevicesStrategyTest, a_session_takes_the_steps_of_one_device) {
  std::vector<float> alone, shared;
  double loss = 0;
  {
    Trained one(false);
    loss = one.session->fit(2).validation->loss;
    alone = one.weights();
  }
  Trained two(true);
  EXPECT_NEAR(two.session->fit(2).validation->loss, loss, 1e-5);
  shared = two.weights();
  ASSERT_EQ(shared.size(), alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(shared[i], alone[i], 1e-4);
  EXPECT_EQ(two.devices->batch(), 16);
  EXPECT_THAT(two.devices->to_text(), HasSubstr("8 + 8 of 16 samples on "));
  const auto& samples = two.devices->parallel().samples();
  EXPECT_EQ(samples[0] + samples[1], 2 * 120);
  EXPECT_GT(samples[1], 0);
}

TEST_F(DevicesStrategyTest, measured_shares_leave_the_loader_and_the_weights_as_they_were) {
  Trained two(true);
  const std::vector<float> before = two.weights();
  two.devices->measure(two.session->optimizer(), two.session->precision(), two.training, 16,
                       [&](const data::Batch& batch) { return Trained::loss_of(two.net(batch[0]), batch); });
  EXPECT_TRUE(two.devices->parallel().has_shares());
  EXPECT_EQ(two.training.place().step, 0);
  EXPECT_EQ(two.weights(), before);
  EXPECT_EQ(two.session->fit(1).figures.samples, 120);
}

TEST_F(DevicesStrategyTest, a_resumed_run_needs_the_same_shares_and_says_their_name) {
  const TemporaryFolder folder;
  Trained(true, {.shares = {3, 1}}, folder / "kept").session->fit(1);
  {
    Trained again(true, {.shares = {3, 1}}, folder / "kept");
    EXPECT_TRUE(again.session->fit(2).resumed_from);
    EXPECT_EQ(again.devices->parallel().shares(16), (std::vector<std::int64_t>{12, 4}));
  }
  Trained other(true, {.shares = {1, 1}}, folder / "kept");
  EXPECT_THAT(message_of<ArgumentError>([&] { other.session->fit(3); }), HasSubstr("DataParallelOptions::shares"));
  Trained named(true, {.sync_batch_norm = true, .shares = {3, 1}}, folder / "kept", {.sync_batch_norm = "--sync"});
  EXPECT_THAT(message_of<ArgumentError>([&] { named.session->fit(3); }), HasSubstr("--sync"));
}

}  // namespace
}  // namespace samebytes::testing

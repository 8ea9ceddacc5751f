// The switch of a model: training is the same, bit for bit, and needs less memory.
#include <gtest/gtest.h>

#include "samebytes/models.h"
#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

struct Outcome {
  std::vector<std::vector<float>> state;  // parameters and buffers after the steps
  std::vector<double> losses;
  std::size_t live = 0;
};

class CheckpointingTest : public OnDevice {
 protected:
  // Two steps in an engine of their own.
  template <class Model>
  Outcome train(const Checkpointing& how, const std::function<Model()>& make,
                const std::function<Array(Model&)>& loss_of) {
    const auto own = make_engine(GetParam(), {.seed = 5});
    const EngineScope scope(*own);
    Model model = make();
    if (how.is_on()) model.gradient_checkpointing(how);
    optim::AdamW optimizer(model.parameters(), {.rate = 1e-2});
    Outcome outcome;
    for (int step = 0; step < 2; ++step) {
      const Array loss = loss_of(model);
      optimizer.step(loss);
      outcome.losses.push_back(loss.value());
    }
    for (const nn::NamedArray& entry : model.state()) outcome.state.push_back(entry.array.to_vector<float>());
    outcome.live = own->memory().live_bytes;
    return outcome;
  }

  template <class Model>
  void expect_same(const std::function<Model()>& make, const std::function<Array(Model&)>& loss_of,
                   const std::vector<Checkpointing>& ways) {
    const Outcome plain = train(Checkpointing::off(), make, loss_of);
    for (const Checkpointing& how : ways) {
      const Outcome other = train(how, make, loss_of);
      EXPECT_EQ(other.losses, plain.losses) << how.to_text();
      EXPECT_EQ(other.state, plain.state) << how.to_text();
      if (!is_simulated()) {
        EXPECT_LT(other.live, plain.live) << how.to_text();
      }
    }
  }
};
SAMEBYTES_ON_EVERY_DEVICE(CheckpointingTest);

TEST_P(CheckpointingTest, gpt_with_dropout_trains_alike) {
  const std::function<models::Gpt()> make = [] {
    return models::gpt(
        models::GptOptions{.vocabulary = 29, .context = 32, .layers = 5, .heads = 2, .width = 32, .dropout = 0.1});
  };
  const std::function<Array(models::Gpt&)> loss = [](models::Gpt& model) {
    const Array ids = astype(uniform({4, 32}, 0, 29, f32, {.seed = 4, .counter = 1}), i32);
    return cross_entropy(model(ids), ids);
  };
  expect_same(make, loss, {Checkpointing::every(1), Checkpointing::sqrt()});
}

TEST_P(CheckpointingTest, residual_blocks_with_batch_norm_train_alike) {
  const std::function<models::ResNet()> make = [] { return models::resnet(8, {.classes = 4, .width = 8}); };
  const std::function<Array(models::ResNet&)> loss = [](models::ResNet& model) {
    const Array images = uniform({8, 16, 16, 3}, -1, 1, f32, {.seed = 4, .counter = 1});
    return cross_entropy(model(images), astype(uniform({8}, 0, 4, f32, {.seed = 4, .counter = 90000}), i32));
  };
  expect_same(make, loss, {Checkpointing::every(1)});
}

TEST_P(CheckpointingTest, both_branches_of_a_transit_network_train_alike) {
  const std::function<models::Transit()> make = [] { return models::transit(); };
  const std::function<Array(models::Transit&)> loss = [](models::Transit& model) {
    const Array global = uniform({4, 65, 1}, -1, 1, f32, {.seed = 4, .counter = 1});
    const Array local = uniform({4, 33, 1}, -1, 1, f32, {.seed = 4, .counter = 9000});
    return bce_with_logits(model.forward(global, local), ones({4, 1}));
  };
  expect_same(make, loss, {Checkpointing::every(3)});
}

TEST_P(CheckpointingTest, the_uppermost_stack_is_divided_and_a_model_without_one_says_so) {
  nn::Sequential net(nn::Linear({.in = 4, .out = 4}),
                     nn::Sequential(nn::Linear({.in = 4, .out = 4}), nn::Linear({.in = 4, .out = 4})));
  net.gradient_checkpointing();
  EXPECT_EQ(net.checkpointing(), Checkpointing::every(1));
  EXPECT_FALSE(net[1].checkpointing().is_on());
  net.gradient_checkpointing(Checkpointing::off());
  EXPECT_FALSE(net.checkpointing().is_on());
  models::LstmClassifier lstm = models::lstm_classifier({.hidden = 4});
  EXPECT_ERROR((lstm.gradient_checkpointing()), ArgumentError,
               "gradient_checkpointing: LstmClassifier has no stack of blocks that could be divided");
}

TEST_P(CheckpointingTest, a_sequence_in_segments_is_the_sequence) {
  nn::Sequential net(nn::Linear({.in = 4, .out = 8}), nn::Relu(), nn::Linear({.in = 8, .out = 4}));
  const Array x = uniform({3, 4});
  EXPECT_EQ(nn::checkpoint_sequential(net, 2, x).to_vector<float>(), net(x).to_vector<float>());
  EXPECT_ERROR((nn::checkpoint_sequential(net, 4, x)), ArgumentError,
               "checkpoint_sequential: segments must be from 1 to the number of functions, got 4 for 3");
}

}  // namespace
}  // namespace samebytes::testing

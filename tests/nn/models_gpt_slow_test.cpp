// A small GPT on real text: its loss comes below what the frequencies of single letters and of pairs give.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "samebytes/models.h"
#include "samebytes/samebytes.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

constexpr std::int64_t kBatch = 16, kLength = 64;

// What a letter costs, in nats, where only the one before is known: the entropy of pairs less that of letters.
double pair_entropy(const std::string& text) {
  std::vector<double> letters(256), pairs(65536);
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    const auto a = static_cast<unsigned char>(text[i]), b = static_cast<unsigned char>(text[i + 1]);
    letters[a] += 1;
    pairs[a * 256u + b] += 1;
  }
  double entropy = 0;
  for (std::size_t i = 0; i < pairs.size(); ++i)
    if (pairs[i] > 0) entropy -= pairs[i] * std::log(pairs[i] / letters[i / 256]);
  return entropy / static_cast<double>(text.size() - 1);
}

TEST(GptOnText, learns_more_than_pairs_of_letters) {
  const std::string folder = data_folder("text");
  SAMEBYTES_NEED_DATA(folder);
  const std::string text = get(folder + "/tinyshakespeare.txt");
  const Engine engine({.seed = 1});
  models::GptOptions options = models::gpt_options(models::GptSize::nano);
  models::Gpt model = models::gpt(options);
  optim::AdamW adam(model.parameters(), {.rate = 2e-3, .weight_decay = 0.1, .clip_norm = 1.0});
  Random random({.seed = 7});
  const auto batch = [&](std::uint32_t begin, std::uint32_t end) {
    std::vector<std::int32_t> x, y;
    for (std::int64_t n = 0; n < kBatch; ++n) {
      const std::size_t at = begin + random.below(end - begin - kLength - 1);
      for (std::size_t t = 0; t < kLength; ++t) {
        x.push_back(static_cast<unsigned char>(text[at + t]));
        y.push_back(static_cast<unsigned char>(text[at + t + 1]));
      }
    }
    return std::pair(array(std::span<const std::int32_t>(x), {kBatch, kLength}),
                     array(std::span<const std::int32_t>(y), {kBatch * kLength}));
  };
  const auto loss = [&](const std::pair<Array, Array>& of) {
    return cross_entropy(reshape(model(of.first), {kBatch * kLength, options.vocabulary}), of.second);
  };
  const auto train_end = static_cast<std::uint32_t>(text.size() * 9 / 10);
  for (int step = 0; step < 450; ++step) adam.step(loss(batch(0, train_end)));

  const NoGrad no_grad;
  model.eval();
  double held_out = 0;
  constexpr int kBatches = 20;
  for (int i = 0; i < kBatches; ++i)
    held_out += loss(batch(train_end, static_cast<std::uint32_t>(text.size()))).value() / kBatches;
  EXPECT_LT(held_out, pair_entropy(text) - 0.15);  // 2.45 of pairs; without attention nothing is below it

  const std::string prompt = "\nKING ";
  const std::vector<std::int32_t> ids(prompt.begin(), prompt.end());
  std::string drawn;
  for (const std::int32_t id : models::generate(model, ids, {.tokens = 200, .temperature = 0.8, .top_k = 20}))
    drawn += static_cast<char>(id);
  EXPECT_EQ(drawn.substr(0, prompt.size()), prompt);
  EXPECT_EQ(drawn.find('\0'), std::string::npos);
}

}  // namespace
}  // namespace samebytes::testing

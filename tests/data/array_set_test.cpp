// Batches that are views of a set in shared memory, by the ledger and by pointers; and what of every other batch is
// counted as gathered.
#include "samebytes/data/array_set.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <numeric>
#include <vector>

#include "samebytes/samebytes.h"
#include "support/devices.h"
#include "support/errors.h"

namespace samebytes::testing {
namespace {

using ::testing::HasSubstr;

#define EXPECT_SAYS(statement, text) \
  EXPECT_THAT(message_of<ArgumentError>([&] { static_cast<void>(statement); }), HasSubstr(text))

class ArraySetTest : public OnDevice {
 protected:
  static constexpr std::int64_t kSamples = 10, kWidth = 3, kBatch = 4;
  std::uint64_t gathered() { return engine().transfers().bytes_gathered; }
};
SAMEBYTES_ON_EVERY_DEVICE(ArraySetTest);

std::vector<float> counted(std::int64_t n) {
  std::vector<float> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

struct Columns {
  Array x, label;
};
Columns columns(std::int64_t samples, std::int64_t width) {
  std::vector<std::int32_t> labels(static_cast<std::size_t>(samples));
  std::iota(labels.begin(), labels.end(), 100);
  return {array(counted(samples * width), {samples, width}), array(labels, {samples})};
}
data::DatasetPtr set_of(const Columns& all) { return data::from_arrays({{"x", all.x}, {"label", all.label}}); }

TEST_P(ArraySetTest, batches_in_order_are_views_and_nothing_is_gathered) {
  const Columns all = columns(kSamples, kWidth);
  data::Loader loader(engine(), set_of(all), {.batch = kBatch});
  const std::uint64_t before = gathered();
  const auto copied = engine().transfers().bytes_copied;
  for (int epoch = 0; epoch < 2; ++epoch) {
    std::int64_t first = 0;
    for (const auto& [x, label] : loader) {
      const std::int64_t samples = std::min(kBatch, kSamples - first);
      ASSERT_EQ(x.shape(), (Shape{samples, kWidth}));
      ASSERT_EQ(label.shape(), (Shape{samples}));
      EXPECT_EQ(x.host<float>().data(), all.x.host<float>().data() + first * kWidth);
      EXPECT_EQ(label.host<std::int32_t>().data(), all.label.host<std::int32_t>().data() + first);
      const double sum_before = static_cast<double>(first * kWidth);
      EXPECT_EQ((sum(x * 2.0)).value(), 2 * (sum_before + sum_before + static_cast<double>(samples * kWidth) - 1) *
                                            static_cast<double>(samples * kWidth) / 2);
      first += samples;
    }
    EXPECT_EQ(first, kSamples);
  }
  EXPECT_EQ(gathered(), before);
  if (engine().device().memory_mode != MemoryMode::copy) {
    EXPECT_EQ(engine().transfers().bytes_copied, copied);
  }
}

TEST_P(ArraySetTest, every_other_batch_is_counted_as_gathered) {
  const Columns all = columns(kSamples, kWidth);
  const auto host = data::in_memory({{"x", HostArray(Shape{kSamples, kWidth}, counted(kSamples * kWidth))},
                                     {"label", HostArray(Shape{kSamples}, i32)}});
  constexpr std::uint64_t kBytes = kSamples * (kWidth + 1) * 4;
  const auto gathered_by = [&](const data::DatasetPtr& set, const data::LoaderOptions& options) {
    data::Loader loader(engine(), set, options);
    const std::uint64_t before = gathered();
    for (const auto& [x, label] : loader) static_cast<void>(sum(x).value());
    return gathered() - before;
  };
  EXPECT_EQ(gathered_by(host, {.batch = kBatch}), kBytes) << "rows of ordinary memory";
  EXPECT_EQ(gathered_by(set_of(all), {.batch = kBatch, .shuffle = true, .seed = 1}), kBytes) << "another order";
  EXPECT_EQ(gathered_by(set_of(all), {.batch = kBatch, .transforms = {data::normalise({})}}), kBytes) << "a transform";
  EXPECT_EQ(gathered_by(set_of(all), {.batch = kBatch, .collate = data::default_collate()}), kBytes) << "a collate";
  EXPECT_EQ(gathered_by(set_of(all), {.batch = kBatch}), 0u);
  EXPECT_EQ(gathered_by(set_of(all), {.batch = kBatch, .slots = 1, .workers = 0, .drop_last = true}), 0u);
}

TEST_P(ArraySetTest, shuffled_batches_have_the_rows_of_their_labels) {
  const Columns all = columns(kSamples, kWidth);
  data::Loader loader(engine(), set_of(all), {.batch = kBatch, .shuffle = true, .seed = 3});
  std::vector<int> met(kSamples);
  for (const auto& [x, label] : loader) {
    const std::vector<float> rows = x.to_vector<float>();
    const std::vector<std::int32_t> labels = label.to_vector<std::int32_t>();
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const int sample = labels[i] - 100;
      ++met[static_cast<std::size_t>(sample)];
      EXPECT_EQ(rows[i * kWidth], static_cast<float>(sample * kWidth));
    }
  }
  EXPECT_EQ(met, std::vector<int>(kSamples, 1));
}

TEST_P(ArraySetTest, an_order_that_is_partly_neighbours_is_right_batch_by_batch) {
  const Columns all = columns(kSamples, kWidth);
  data::Loader loader(engine(), set_of(all),
                      {.batch = 2, .sampler = data::subset({4, 5, 9, 2, 6, 7}, {.shuffle = false})});
  const std::uint64_t before = gathered();
  std::vector<std::int32_t> labels;
  for (const auto& [x, label] : loader)
    for (const std::int32_t one : label.to_vector<std::int32_t>()) labels.push_back(one - 100);
  EXPECT_EQ(labels, (std::vector<std::int32_t>{4, 5, 9, 2, 6, 7}));
  EXPECT_EQ(gathered() - before, 2u * (kWidth + 1) * 4);
}

TEST_P(ArraySetTest, batches_and_pieces_outlive_loader_set_and_arrays) {
  Array kept, piece;
  {
    data::Loader loader(engine(), set_of(columns(kSamples, kWidth)), {.batch = kBatch});
    std::vector<data::Batch> held;
    for (auto it = loader.begin(); it != loader.end(); ++it) held.push_back(*it);  // all at once, in two slots
    ASSERT_EQ(held.size(), 3u);
    kept = held[2][0];
    piece = held[1].piece(1, 3)[0];
    EXPECT_EQ(loader.stats().extra_slots, 0);
  }
  EXPECT_EQ(kept.to_vector<float>(), (std::vector<float>{24, 25, 26, 27, 28, 29}));
  EXPECT_EQ(piece.to_vector<float>(), (std::vector<float>{15, 16, 17, 18, 19, 20}));
}

TEST_P(ArraySetTest, writing_into_such_a_batch_is_refused_and_the_set_stays_as_it_is) {
  const Columns all = columns(kSamples, kWidth);
  data::Loader loader(engine(), set_of(all), {.batch = kBatch});
  const data::Batch batch = *loader.begin();
  const Array x = batch[0];
  EXPECT_SAYS((x.mutable_host<float>()), "mutable_host: f32 [4, 3] shows rows of a data set");
  EXPECT_THROW(static_cast<void>(reshape(x, {12}).mutable_host<float>()), ArgumentError);
  EXPECT_SAYS((batch.piece(0, 1)[0].mutable_host<float>()), "shows rows of a data set");
  const Array w = cell(x, "w");  // a cell takes a copy
  assign(w, w * 100.0);
  EXPECT_EQ(all.x.to_vector<float>(), counted(kSamples * kWidth));
  EXPECT_EQ((x + 1.0).to_vector<float>()[0], 1.0f);
}

TEST_P(ArraySetTest, slices_of_it_are_views_too) {
  const Columns all = columns(kSamples, kWidth);
  data::Loader loader(engine(), data::slice(set_of(all), 3, 5), {.batch = kBatch});
  const std::uint64_t before = gathered();
  std::vector<float> firsts;
  for (const auto& [x, label] : loader) firsts.push_back(x.to_vector<float>()[0]);
  EXPECT_EQ(firsts, (std::vector<float>{9, 21}));
  EXPECT_EQ(gathered(), before);
}

TEST_P(ArraySetTest, an_engine_that_does_not_own_the_arrays_gathers_them) {
  const Columns all = columns(kSamples, kWidth);
  const auto set = set_of(all);
  const auto other = make_engine(GetParam());
  data::Loader loader(*other, set, {.batch = kBatch});
  const EngineScope scope(*other);
  double total = 0;
  for (const auto& [x, label] : loader) total += sum(x).value();
  EXPECT_EQ(total, 435);
  EXPECT_EQ(other->transfers().bytes_gathered, kSamples * (kWidth + 1) * 4u);
}

TEST_P(ArraySetTest, a_mapped_file_is_trained_on_where_its_pages_lie) {
  const std::string path = (std::filesystem::temp_directory_path() / "array_set_test.npy").string();
  data::write_npy(path, HostArray(Shape{kSamples, kWidth}, counted(kSamples * kWidth)));
  Adoption verdict;
  {
    const Array rows = data::NpyMap(path).array(&verdict);
    data::Loader loader(engine(), data::from_arrays({{"x", rows}}), {.batch = kBatch});
    const std::uint64_t before = gathered();
    double total = 0;
    for (const data::Batch& batch : loader) total += sum(batch[0]).value();
    EXPECT_EQ(total, 435);
    EXPECT_EQ(gathered(), before) << verdict.reason;
  }
  std::remove(path.c_str());
}

TEST_P(ArraySetTest, preload_into_the_engine_reads_once) {
  int reads = 0;
  const auto source =
      data::generate(kSamples, {{"x", Shape{kWidth}}}, [&](std::int64_t i, std::span<const data::Field> f) {
        ++reads;
        for (float& value : f[0].as<float>()) value = static_cast<float>(i);
      });
  const auto set = data::preload(engine(), source, 1);
  data::Loader loader(engine(), set, {.batch = kBatch});
  const std::uint64_t before = gathered();
  for (int epoch = 0; epoch < 2; ++epoch) {
    double total = 0;
    for (const data::Batch& batch : loader) total += sum(batch[0]).value();
    EXPECT_EQ(total, 45.0 * kWidth);
  }
  EXPECT_EQ(reads, kSamples);
  EXPECT_EQ(gathered(), before);
}

TEST_P(ArraySetTest, wrong_columns_are_refused) {
  const Array a = zeros({4, 2}), b = zeros({3});
  EXPECT_SAYS((data::from_arrays({})), "from_arrays: a sample has at least one field");
  EXPECT_SAYS((data::from_arrays({{"x", Array()}})), "'x' wants an array whose first axis");
  EXPECT_SAYS((data::from_arrays({{"x", a}, {"y", b}})), "'x' has 4 samples, 'y' 3");
  EXPECT_SAYS((data::from_arrays({{"x", a}, {"x", a}})), "got 'x' twice");
  EXPECT_SAYS((data::from_arrays({{"x", transpose(a)}})), "needs a contiguous array");
  EXPECT_SAYS((data::from_arrays({{"x", cell(a, "c")}})), "shows no cell");
}

TEST_P(ArraySetTest, a_sampler_that_goes_beyond_the_set_is_refused) {
  const auto host = data::in_memory({{"x", HostArray(Shape{kSamples, kWidth}, f32)}});
  data::Loader loader(engine(), host, {.batch = 2, .sampler = data::subset({0, 1, 2, 10})});
  EXPECT_ERROR(([&] {
                 for (const data::Batch& batch : loader) static_cast<void>(batch[0].to_vector<float>());
               }()),
               ArgumentError, "loader: the sampler gave sample 10 of a data set of 10");
}

}  // namespace
}  // namespace samebytes::testing

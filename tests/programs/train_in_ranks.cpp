// What the tests of samebytes/distributed.h start under mpirun, and once without:
//   train_in_ranks collectives
//   train_in_ranks train FILE [adamw|lars|lamb|adafactor] [bf16] [overlap=0|1] [bucket=MB] [accumulate] [at_once]
//   [shard] [no_sync] [clip] [nan] [held] [norms] [idle] [steps=N]
//   train_in_ranks fail: a launch of rank 0 fails in a backward pass; its engine goes, then its group
//   train_in_ranks session FILE: two epochs of a Session with a RanksStrategy
// Rank 0 writes parameters and buffers after some steps on 50 samples to FILE, as bytes, and says what was sent; every
// rank's parameters are compared with rank 0's.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/faults.h"
#include "samebytes/distributed.h"
#include "samebytes/samebytes.h"

using namespace samebytes;

namespace {

int g_failures = 0;

void expect(bool is_right, const char* what) {
  if (is_right) return;
  ++g_failures;
  std::printf("wrong: %s\n", what);
}

template <class Call>
void expect_error(const char* what, const std::string& text, Call call) {
  try {
    call();
    expect(false, what);
  } catch (const Error& error) {
    if (std::string(error.what()).find(text) == std::string::npos) {
      std::printf("%s\n", error.what());
      expect(false, what);
    }
  }
}

void collectives(distributed::Group& group) {
  Engine engine({.seed = 1});
  const int rank = group.rank(), size = group.size();
  const double all = size * (size + 1) / 2.0;  // of 1 to size
  for (const Dtype dtype : {f32, f16, bf16, i32}) {
    for (const std::int64_t n : {1, 2, 63, 1000, 70001}) {
      const Array sum = astype(full({n}, rank + 1), dtype), most = astype(full({n}, rank), dtype);
      eval({sum, most});
      group.all_reduce(sum);
      group.all_reduce(most, distributed::Reduction::max);
      const auto sums = sum.to_vector<double>(), mosts = most.to_vector<double>();
      expect(std::all_of(sums.begin(), sums.end(), [&](double v) { return v == all; }), "all_reduce sum");
      expect(std::all_of(mosts.begin(), mosts.end(), [&](double v) { return v == size - 1; }), "all_reduce max");
    }
  }
  const Array mean = full({100}, rank);
  mean.eval();
  group.all_reduce(mean, distributed::Reduction::mean);
  expect(std::abs(mean.to_vector<double>()[99] - (size - 1) / 2.0) < 1e-6, "all_reduce mean");
  std::vector<double> least{static_cast<double>(rank), 5.0 - rank};
  group.all_reduce(least, distributed::Reduction::min);
  expect(least[0] == 0 && least[1] == 5.0 - (size - 1), "all_reduce min");
  // Values whose sum depends on the order: all ranks have the same one.
  const Array thirds = full({1000}, 1.0 / (3 + rank));
  thirds.eval();
  group.all_reduce(thirds);
  const std::vector<double> first = group.all_gather(thirds.to_vector<double>()[7]);
  expect(std::all_of(first.begin(), first.end(), [&](double v) { return v == first[0]; }), "one order");

  const Array told = rank == size - 1 ? arange(0, 3000) : zeros({3000});
  told.eval();
  group.broadcast(told, size - 1);
  expect(told.to_vector<double>()[2999] == 2999, "broadcast");
  expect(group.broadcast(rank == 0 ? "from the first" : "") == "from the first", "broadcast of a text");
  expect(group.broadcast("").empty(), "broadcast of no text");
  const Array rows = group.all_gather(full({2, 3}, rank));
  expect(rows.shape() == Shape({2 * size, 3}) && rows.to_vector<double>()[6 * (size - 1)] == size - 1, "all_gather");
  group.barrier();

  expect_error("root", "root must be from 0", [&] { group.broadcast(told, size); });
  expect_error("dtype", "u8 has no such reduction", [&] { group.all_reduce(full({3}, 1, u8)); });
  expect_error("mean of i32", "i32 has no such",
               [&] { group.all_reduce(full({3}, 1, i32), distributed::Reduction::mean); });
  expect_error("second", "had a Group already", [] { distributed::Group second; });
  expect(engine.transfers().bytes_copied == 0, "no bytes are copied");
}

struct Way {
  std::string file;
  std::string optimizer = "sgd";
  bool bf16 = false, accumulates = false, clips = false, checks = false, holds = false, at_once = false,
       keeps_own = false, has_norms = false, has_idle = false;
  train::DataParallelOptions options = {};
  int steps = 6;
};

std::int64_t state_size(const optim::Optimizer& optimizer) {
  std::int64_t elements = 0;
  for (const optim::StateArray& entry : optimizer.state()) elements += entry.array.size();
  return elements;
}

void run_training(distributed::Group& group, const Way& way) {
  constexpr std::int64_t kRows = 50, kWidth = 24;
  const int rank = group.rank(), size = group.size();
  // What rank 0 has counts, so that the others' seeds do not.
  Engine engine({.seed = static_cast<std::uint64_t>(3 + rank), .check_nan = way.checks});
  nn::Sequential net;
  net.add(nn::Linear({.in = kWidth, .out = 63}));
  if (way.has_norms)
    net.add(nn::BatchNorm({.features = 63}));
  else
    net.add(nn::LayerNorm({.features = 63}));
  net.add(nn::Relu());
  net.add(nn::Linear({.in = 63, .out = 63}));
  if (way.has_norms) net.add(nn::BatchNorm({.features = 63}));
  net.add(nn::Relu());
  net.add(nn::Linear({.in = 63, .out = 10}));
  if (way.bf16) keep_working_copies(net.parameters(), bf16);
  const double clip = way.clips ? 0.3 : 0;
  const auto groups = optim::split_vectors(net.parameters(), {});  // two arenas
  std::unique_ptr<optim::Optimizer> optimizer;
  if (way.optimizer == "adafactor")
    optimizer = std::make_unique<optim::Adafactor>(groups, optim::AdafactorOptions{.clip_norm = clip});
  else if (way.optimizer == "lars")
    optimizer = std::make_unique<optim::Lars>(groups, optim::LarsOptions{.rate = 1, .trust = 0.02, .clip_norm = clip});
  else if (way.optimizer == "lamb")
    optimizer = std::make_unique<optim::Lamb>(groups, optim::LambOptions{.rate = 1e-2, .clip_norm = clip});
  else if (way.optimizer == "adamw")
    optimizer = std::make_unique<optim::AdamW>(groups, optim::AdamWOptions{.rate = 1e-3, .clip_norm = clip});
  else
    optimizer =
        std::make_unique<optim::Sgd>(groups, optim::SgdOptions{.rate = 0.1, .momentum = 0.9, .clip_norm = clip});
  train::DataParallelOptions options = way.options;
  options.sync_batch_norm = way.has_norms;
  train::DataParallel parallel(group, net, *optimizer, options);
  for (int step = 0; step < way.steps; ++step) {
    const auto seed = static_cast<std::uint64_t>(step);
    const Array x = uniform({kRows, kWidth}, -1, 1, f32, {seed, 1});
    const Array labels = astype(uniform({kRows}, 0, 10, f32, {seed, 90000}), i32);
    eval({x, labels});
    // The idle rank is the last one: what it computes is of samples that others count.
    const int workers = way.has_idle ? size - 1 : size;
    const bool is_idle = rank >= workers;
    const std::int64_t begin = is_idle ? 0 : kRows * rank / workers, end = is_idle ? 9 : kRows * (rank + 1) / workers;
    const auto share = [&](std::int64_t samples) { return train::DataParallel::Share(samples, !is_idle); };
    const auto loss_from = [&](std::int64_t first) {
      return [&, first](std::int64_t from, std::int64_t to) {
        std::optional<Autocast> scope;
        if (way.bf16) scope.emplace(AutocastOptions{.dtype = bf16});
        return cross_entropy(net(share_rows(x, first + from, first + to)),
                             share_rows(labels, first + from, first + to));
      };
    };
    const std::int64_t middle = (begin + end) / 2;
    if (way.accumulates || way.at_once) {
      parallel.add(*optimizer, share(middle - begin), loss_from(begin));
      if (way.at_once) {
        parallel.step(*optimizer, share(end - middle), loss_from(middle));
      } else {
        parallel.add(*optimizer, share(end - middle), loss_from(middle));
        parallel.update(*optimizer);
      }
    } else if (way.holds) {
      const std::vector<Array> held =
          parallel.flat_gradients(*optimizer, loss_from(begin)(0, end - begin), share(end - begin));
      eval(held);
      optimizer->step_flat(held);
    } else {
      if (way.keeps_own) eval(optimizer->flat_gradients(loss_from(begin)(0, end - begin)));
      const Array own = parallel.step(*optimizer, share(end - begin), loss_from(begin));
      std::vector<double> sum{is_idle ? 0
                                      : own.value() * static_cast<double>(end - begin) / static_cast<double>(kRows)};
      group.all_reduce(sum);
      expect(std::abs(parallel.mean_loss().value() - sum[0]) < 1e-6, "the mean loss");
    }
    expect(parallel.global_samples() == static_cast<double>(kRows), "samples of all ranks");
  }
  std::vector<float> values;
  for (const optim::ParameterArena& arena : optimizer->arenas())
    for (const float value : arena.values().to_vector<float>()) values.push_back(value);
  for (const nn::NamedArray& buffer : net.named_buffers())
    for (const float value : buffer.array.to_vector<float>()) values.push_back(value);
  std::vector<float> rank0 = values;
  const Array shared = array(rank0, {static_cast<std::int64_t>(rank0.size())});
  group.broadcast(shared);
  const std::vector<float> theirs = shared.to_vector<float>();
  expect(std::memcmp(theirs.data(), values.data(), values.size() * sizeof(float)) == 0, "the ranks agree, bit for bit");
  expect(engine.transfers().bytes_copied == 0, "no bytes are copied");
  if (rank != 0) return;
  std::ofstream(way.file, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
  const train::ExchangeStats stats = parallel.stats();
  std::printf("steps %lld buckets %lld copied %llu sent %llu\n", static_cast<long long>(stats.steps),
              static_cast<long long>(stats.buckets), static_cast<unsigned long long>(stats.bytes_copied),
              static_cast<unsigned long long>(stats.bytes_sent));
  std::printf("state %lld of %lld\n", static_cast<long long>(state_size(*optimizer)),
              static_cast<long long>(values.size()));
}

// A Session whose batches and validations are those of all ranks together. Rank 0 writes the parameters, and says what
// every rank has found out.
void run_session(distributed::Group& group, const std::string& file) {
  Engine engine({.seed = static_cast<std::uint64_t>(3 + group.rank())});
  const std::size_t whole_limit = engine.memory().limit_bytes;
  nn::Sequential net(nn::Flatten(), nn::Linear({.in = 64, .out = 10}));
  optim::AdamW adam(net.parameters(), {.rate = 1e-2});
  train::RanksStrategy ranks(group, engine, net, adam);
  expect(engine.memory().limit_bytes <= whole_limit / static_cast<std::size_t>(group.size()), "a share of the memory");
  const auto set = data::slice(data::digits().train, 0, 130), tests = data::slice(data::digits().test, 0, 70);
  data::LoaderOptions loading{.batch = 16, .shuffle = true, .seed = 7}, validating{.batch = 20};
  ranks.divide(loading, *set);
  ranks.divide_validation(validating, *tests);
  expect_error("order", "expected a loader that shuffles", [&] {
    data::LoaderOptions ordered{.batch = 16};
    ranks.divide(ordered, *set);
  });
  data::Loader training(engine, set, loading), validation(engine, tests, validating);
  const auto loss_of = [](const Array& logits, const data::Batch& batch) { return cross_entropy(logits, batch[1]); };
  train::Session session(engine, net, {.loss = loss_of}, training,
                         {.validation = &validation, .optimizer = &adam, .shared = &ranks});
  const train::Report report = session.fit(2);
  expect(engine.random_counter() >> 48 == static_cast<std::uint64_t>(group.rank()), "random numbers of its own");
  expect(report.figures.samples == 2 * 130, "samples of all ranks");
  const std::vector<double> losses = group.all_gather(report.validation->loss);
  expect(std::all_of(losses.begin(), losses.end(), [&](double v) { return v == losses[0]; }), "one validation loss");
  if (group.rank() != 0) return;
  std::vector<float> values = net.parameters()[0].to_vector<float>();
  values.push_back(static_cast<float>(report.validation->loss));
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(float)));
}

// Most gradients are under way when the launch fails, and large enough to be so for a while.
void run_failing(distributed::Group& group) {
  Engine engine({.seed = 3});
  nn::Sequential net(nn::Linear({.in = 512, .out = 512}), nn::LayerNorm({.features = 512}));
  for (int layer = 0; layer < 4; ++layer) {
    net.add(nn::Linear({.in = 512, .out = 512}));
    net.add(nn::Relu());
  }
  optim::Sgd sgd(net.parameters(), {.rate = 0.1});
  train::DataParallel parallel(group, net, sgd, {.bucket_megabytes = 0.25});
  const Array x = uniform({16, 512}, -1, 1, f32, {1, 1});
  if (group.rank() == 0) {
    detail::MutexLock lock(detail::faults().mutex);
    detail::faults().failing_op = "layer_norm_gradient";
    detail::faults().fail_launch = true;
  }
  const auto step = [&] { parallel.step(sgd, 16, [&](std::int64_t, std::int64_t) { return mean(net(x)); }); };
  try {
    step();
  } catch (const DeviceError&) {
    detail::faults().fail_launch = false;
    expect_error("a step behind one that failed", "a step of this rank has failed", step);
    expect_error("a sum behind it", "a step of this rank has failed", [&] { group.barrier(); });
    throw;
  }
  engine.wait();
}

Way way_of(int argc, char** argv) {
  Way way{.file = argv[2]};
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    for (const char* const name : {"adamw", "lars", "lamb", "adafactor"})
      if (word == name) way.optimizer = name;
    way.bf16 = way.bf16 || word == "bf16";
    way.accumulates = way.accumulates || word == "accumulate";
    way.at_once = way.at_once || word == "at_once";
    way.keeps_own = way.keeps_own || word == "no_sync";
    way.options.shard_state = way.options.shard_state || word == "shard";
    way.clips = way.clips || word == "clip";
    way.checks = way.checks || word == "nan";
    way.holds = way.holds || word == "held";
    way.has_norms = way.has_norms || word == "norms";
    way.has_idle = way.has_idle || word == "idle";
    if (word == "overlap=0") way.options.overlap = false;
    if (word.starts_with("bucket=")) way.options.bucket_megabytes = std::atof(word.c_str() + 7);
    if (word.starts_with("steps=")) way.steps = std::atoi(word.c_str() + 6);
  }
  return way;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  try {
    distributed::Group group;
    if (mode == "collectives") collectives(group);
    if (mode == "session") run_session(group, argv[2]);
    if (mode == "fail") try {
        run_failing(group);
      } catch (const Error& error) {
        std::printf("%s\n", error.what());
        std::fflush(stdout);
        std::this_thread::sleep_for(std::chrono::milliseconds(500));
        throw;
      }
    if (mode == "train") run_training(group, way_of(argc, argv));
    std::printf("rank %d of %d %s\n", group.rank(), group.size(), g_failures == 0 ? "is done" : "FAILED");
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return g_failures == 0 ? 0 : 1;
}

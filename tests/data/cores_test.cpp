// Classes of cores from made-up trees of /sys/devices, and workers that run where they were told to.
#include "samebytes/cores.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>
#include <set>

#include "samebytes/data/loader.h"
#include "support/devices.h"
#include "support/errors.h"
#include "support/files.h"

namespace samebytes {
namespace {

using testing::put;
using testing::TemporaryFolder;
using Cores = std::vector<int>;

struct Tree {
  const TemporaryFolder folder;
  std::string root() const { return folder / "devices"; }
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = std::filesystem::path(root()) / path;
    std::filesystem::create_directories(file.parent_path());
    put(file.string(), text + "\n");
  }
  void core(int number, const char* file, int value) const {
    write("system/cpu/cpu" + std::to_string(number) + "/" + file, std::to_string(value));
  }
};

Cores upto(int count) {
  Cores cores;
  for (int i = 0; i < count; ++i) cores.push_back(i);
  return cores;
}

TEST(Cores, of_a_phone_are_three_classes_by_capacity) {
  const Tree tree;
  for (int i = 0; i < 8; ++i) tree.core(i, "cpu_capacity", i < 4 ? 160 : i < 7 ? 498 : 1024);
  const CoreTopology cores = core_topology(tree.root(), upto(8));
  ASSERT_EQ(cores.classes.size(), 3u);
  EXPECT_EQ(cores.classes[0].cores, Cores({7}));
  EXPECT_EQ(cores.classes[1].cores, Cores({4, 5, 6}));
  EXPECT_EQ(cores.classes[2].cores, Cores({0, 1, 2, 3}));
  EXPECT_DOUBLE_EQ(cores.classes[2].capacity, 160.0 / 1024);
  EXPECT_EQ(choose_cores(cores, "efficiency"), Cores({0, 1, 2, 3}));
  EXPECT_EQ(choose_cores(cores, "performance"), Cores({7}));
  EXPECT_EQ(choose_cores(cores, "all"), Cores());
  EXPECT_EQ(choose_cores(cores, "5,0-2"), Cores({0, 1, 2, 5}));
  EXPECT_EQ(cores.to_text(), "1 core of capacity 1 (7), 3 of 0.49 (4-6), 4 of 0.16 (0-3), by cpu_capacity");
}

TEST(Cores, of_a_hybrid_processor_are_told_by_its_lists_or_its_clocks) {
  const Tree tree;
  // Clock rates of equals differ by a few per cent.
  const int rates[] = {5200000, 5200000, 5400000, 5400000, 3900000, 3900000, 3900000, 3900000};
  for (int i = 0; i < 8; ++i) tree.core(i, "cpufreq/cpuinfo_max_freq", rates[i]);
  const CoreTopology clocks = core_topology(tree.root(), upto(8));
  EXPECT_EQ(clocks.source, "cpuinfo_max_freq");
  EXPECT_EQ(choose_cores(clocks, "efficiency"), Cores({4, 5, 6, 7}));
  EXPECT_EQ(choose_cores(clocks, "performance"), Cores({0, 1, 2, 3}));
  tree.write("cpu_core/cpus", "0-5");
  tree.write("cpu_atom/cpus", "6-7");
  const CoreTopology lists = core_topology(tree.root(), upto(8));
  EXPECT_EQ(lists.source, "cpu_core and cpu_atom");
  EXPECT_EQ(choose_cores(lists, "efficiency"), Cores({6, 7}));
}

TEST(Cores, outside_of_the_process_s_set_are_not_there) {
  const Tree tree;
  for (int i = 0; i < 8; ++i) tree.core(i, "cpu_capacity", i < 4 ? 400 : 1024);
  const CoreTopology cores = core_topology(tree.root(), Cores{1, 3, 6});
  EXPECT_EQ(choose_cores(cores, "efficiency"), Cores({1, 3}));
  EXPECT_EQ(choose_cores(cores, "performance"), Cores({6}));
  EXPECT_ERROR(choose_cores(cores, "0"), ArgumentError, "cores: the process may use 1,3,6, got core 0");
  EXPECT_EQ(core_topology(tree.root(), Cores{4, 5}).classes.size(), 1u) << "the fast ones alone";
}

TEST(Cores, all_alike_or_untold_are_one_class_and_the_words_mean_all_of_them) {
  const Tree tree;
  for (int i = 0; i < 4; ++i) tree.core(i, "cpu_capacity", 1024);
  for (const std::string& root : {tree.root(), tree.folder / "nowhere"}) {
    const CoreTopology cores = core_topology(root, upto(4));
    ASSERT_EQ(cores.classes.size(), 1u);
    EXPECT_EQ(cores.classes[0].cores, upto(4));
    EXPECT_EQ(choose_cores(cores, "efficiency"), Cores());
    EXPECT_EQ(choose_cores(cores, "performance"), Cores());
  }
  // A tree that knows some of them alone tells nothing.
  tree.core(0, "cpu_capacity", 100);
  EXPECT_EQ(core_topology(tree.root(), upto(6)).source, "");
}

TEST(Cores, another_text_says_what_is_expected) {
  const CoreTopology cores = core_topology("/nowhere", upto(2));
  for (const char* text : {"", "slow", "1-", "2-1", "0,,1", "-1", "99999999"})
    EXPECT_ERROR(
        choose_cores(cores, text), ArgumentError,
        ("cores: expected efficiency, performance, all or a list such as 0,2-3, got '" + std::string(text) + "'")
            .c_str());
  EXPECT_EQ(core_list_text(Cores{0, 1, 3, 4, 5, 9}), "0,1,3-5,9");
}

class LoaderCoresTest : public testing::OnDevice {};
SAMEBYTES_ON_EVERY_DEVICE(LoaderCoresTest);

TEST_P(LoaderCoresTest, workers_run_where_they_were_told_to_and_the_loop_where_it_was) {
  const Cores before = allowed_cores(), last = {before.back()};
  std::mutex mutex;
  std::set<Cores> seen;
  const data::DatasetPtr set =
      data::generate(64, {{"x", Shape{1}}}, [&](std::int64_t index, std::span<const data::Field> dst) {
        dst[0].as<float>()[0] = static_cast<float>(index);
        const std::lock_guard lock(mutex);
        seen.insert(allowed_cores());
      });
  data::Loader loader(engine(), set, {.batch = 4, .workers = 2, .worker_cores = last});
  for (const data::Batch& batch : loader) EXPECT_EQ(batch.samples(), 4);
  EXPECT_EQ(seen, std::set<Cores>{last});
  EXPECT_EQ(allowed_cores(), before);
  EXPECT_EQ(data::Loader(engine(), set, {.worker_cores = last}).workers(), 1) << "as many as cores were given";
  EXPECT_ERROR(data::Loader(engine(), set, {.worker_cores = {8191}}), ArgumentError,
               ("loader: worker_cores are some of " + core_list_text(before) + ", ascending, got 8191").c_str());
}

}  // namespace
}  // namespace samebytes

// Joules from made-up trees of /sys/class/powercap.
#include "samebytes/energy.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/files.h"

namespace samebytes {
namespace {

using testing::put;
using testing::TemporaryFolder;

struct Tree {
  const TemporaryFolder folder;
  std::string root() const { return folder / "powercap"; }
  void write(const std::string& domain, const char* file, const std::string& value) const {
    const std::filesystem::path path = std::filesystem::path(root()) / domain / file;
    std::filesystem::create_directories(path.parent_path());
    put(path.string(), value + "\n");
  }
  void domain(const std::string& name, const std::string& what, const std::string& microjoules) const {
    write(name, "name", what);
    write(name, "energy_uj", microjoules);
    write(name, "max_energy_range_uj", "10000000");
  }
};

TEST(Energy, is_the_sum_of_packages_without_their_parts_and_the_board) {
  const Tree tree;
  tree.domain("intel-rapl:0", "package-0", "1000000");
  tree.domain("intel-rapl:1", "package-1", "2000000");
  tree.domain("intel-rapl:0:0", "core", "500000");
  tree.domain("intel-rapl:2", "psys", "7000000");
  const EnergyMeter meter(tree.root());
  ASSERT_TRUE(meter.is_readable());
  EXPECT_EQ(meter.joules(), 0.0);
  tree.domain("intel-rapl:0", "package-0", "1500000");
  tree.domain("intel-rapl:1", "package-1", "4000000");
  tree.domain("intel-rapl:0:0", "core", "900000");
  tree.domain("intel-rapl:2", "psys", "9000000");
  EXPECT_DOUBLE_EQ(*meter.joules(), 2.5);
}

TEST(Energy, a_counter_that_began_anew_goes_on) {
  const Tree tree;
  tree.domain("intel-rapl:0", "package-0", "9000000");
  const EnergyMeter meter(tree.root());
  tree.domain("intel-rapl:0", "package-0", "250000");
  EXPECT_DOUBLE_EQ(*meter.joules(), 1.25);
}

TEST(Energy, is_never_invented) {
  EXPECT_FALSE(EnergyMeter("/nowhere").is_readable());
  EXPECT_EQ(EnergyMeter("/nowhere").joules(), std::nullopt);
  const Tree tree;
  tree.domain("intel-rapl:0", "package-0", "1000000");
  tree.write("intel-rapl:1", "name", "package-1");  // its counter is root's alone
  EXPECT_FALSE(EnergyMeter(tree.root()).is_readable()) << "one of two packages would be too little";
  const Tree vanishing;
  vanishing.domain("intel-rapl:0", "package-0", "1000000");
  const EnergyMeter meter(vanishing.root());
  std::filesystem::remove_all(vanishing.root());
  EXPECT_EQ(meter.joules(), std::nullopt);
}

}  // namespace
}  // namespace samebytes

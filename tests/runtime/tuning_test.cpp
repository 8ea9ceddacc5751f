// The store of the tuner: what it holds comes back, damage is told where it is, another driver's is left aside, and a
// choice reaches kernels and launches.
#include "runtime/tuning.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "runtime/kernel_texts.h"
#include "runtime/rig.h"
#include "samebytes/samebytes.h"
#include "support/environment.h"
#include "support/files.h"

namespace samebytes::detail {
namespace {

using ::samebytes::testing::get;
using ::samebytes::testing::put;
using ::samebytes::testing::TemporaryFolder;
using ::testing::HasSubstr;

constexpr const char* kMr = "tiles.f32.gemm.GEMM_MR";

DeviceInfo some_device() {
  DeviceInfo info;
  info.name = "a fast/device";
  info.platform = "Some Platform";
  info.driver = "3.1+x";
  info.type = "cpu";
  info.vector_width = 16;
  info.personality = Personality::cpu;
  return info;
}

TuningStore some_store() {
  return {.values = {{kMr, 12}, {"launch.gemm.large.provider", 1}, {"clblast.f32.NWG", 128}},
          .measured = {{"gemm", "matmul NN", "8x8x8", 1.5, 1.25}},
          .date = "2026-01-02"};
}

TEST(Tuning, a_store_comes_back_as_it_was_written) {
  const std::string text = tuning_text(some_store(), some_device());
  EXPECT_THAT(text, HasSubstr("\"GEMM_MR\": 12"));
  EXPECT_THAT(text, HasSubstr("\"provider\": \"clblast\""));
  std::string foreign;
  const TuningStore back = parse_tuning(text, "store.json", some_device(), &foreign);
  EXPECT_EQ(foreign, "");
  EXPECT_EQ(back.values, some_store().values);
  EXPECT_EQ(back.date, "2026-01-02");
  ASSERT_EQ(back.measured.size(), 1u);
  EXPECT_EQ(back.measured[0].best_ms, 1.25);
  EXPECT_EQ(tuning_text(back, some_device()), text);
}

TEST(Tuning, the_hash_tells_choices_apart) {
  const Tuning none(Personality::cpu), one(Personality::cpu, {{kMr, 12}}), other(Personality::cpu, {{kMr, 10}});
  EXPECT_EQ(none.hash(), "built-in");
  EXPECT_EQ(one.hash(), Tuning(Personality::cpu, {{kMr, 12}}).hash());
  EXPECT_EQ(one.hash().size(), 16u);
  EXPECT_NE(one.hash(), other.hash());
}

std::string error_of(const std::string& text) {
  std::string foreign;
  try {
    parse_tuning(text, "store.json", some_device(), &foreign);
  } catch (const IoError& error) {
    EXPECT_EQ(error.path(), "store.json");
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Tuning, damage_names_file_key_what_was_expected_and_what_came) {
  const std::string good = tuning_text(some_store(), some_device());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return error_of(text.replace(at, from.size(), to));
  };
  const std::string end = "; mend the file, or remove it (samebytes tune --reset)";
  EXPECT_EQ(error_of("[1]"), "tuning: store.json: the whole: expected an object, found a list" + end);
  EXPECT_EQ(error_of("{}"), "tuning: store.json: format: expected 1, found nothing" + end);
  EXPECT_EQ(with("\"format\": 1", "\"format\": 2"), "tuning: store.json: format: expected 1, found 2" + end);
  EXPECT_EQ(with("\"GEMM_MR\": 12", "\"GEMM_MR\": 13"),
            "tuning: store.json: tiles.f32.gemm.GEMM_MR: expected a multiple of 2 from 2 to 16, found 13" + end);
  EXPECT_EQ(with("\"GEMM_MR\": 12", "\"GEMM_MR\": \"many\""),
            "tuning: store.json: tiles.f32.gemm.GEMM_MR: expected a multiple of 2 from 2 to 16, found \"many\"" + end);
  EXPECT_EQ(with("\"GEMM_MR\": 12", "\"GEMM_MR\": 12.5"),
            "tuning: store.json: tiles.f32.gemm.GEMM_MR: expected a multiple of 2 from 2 to 16, found 12.5" + end);
  EXPECT_EQ(
      with("\"GEMM_MR\"", "\"GEMM_RM\""),
      "tuning: store.json: tiles.f32.gemm.GEMM_RM: expected a key that `samebytes tune --show` lists, found this one" +
          end);
  EXPECT_EQ(with("\"provider\": \"clblast\"", "\"provider\": \"eigen\""),
            "tuning: store.json: launch.gemm.large.provider: expected packed or clblast, found \"eigen\"" + end);
  EXPECT_EQ(with("\"device\": \"a fast/device\"", "\"device\": 7"),
            "tuning: store.json: device: expected a text, found 7" + end);
  EXPECT_EQ(with("\"NWG\": 128", "\"NWG\": 100"),
            "tuning: store.json: clblast.f32.NWG: expected a multiple of NDIMC * VWN = 64, found 100" + end);
  EXPECT_THAT(with("\"date\"", "\"colour\""), HasSubstr("store.json: colour: expected about, format, "));
  EXPECT_THAT(with("1.25", "\"fast\""), HasSubstr("measured.best_ms: expected a number, found \"fast\""));
  EXPECT_THAT(error_of(good.substr(0, good.size() / 2)), HasSubstr("tuning: store.json: at byte "));
}

TEST(Tuning, values_that_do_not_go_together_are_refused) {
  const Personality cpu = Personality::cpu;
  EXPECT_FALSE(find_clash({{kMr, 8}}, cpu, 16));
  EXPECT_TRUE(find_clash({{kMr, 12}}, cpu, 8));
  EXPECT_TRUE(find_clash({{"tiles.f32.gemm.GEMM_KC", 1024}, {"tiles.f32.gemm.GEMM_ROW_PANELS", 64}}, cpu, 16));
  EXPECT_FALSE(find_clash({{"clblast.f32.NWG", 128}}, cpu, 16));
  EXPECT_TRUE(find_clash({{"clblast.f32.GEMMK", 1}}, cpu, 16)) << "MWG and NWG differ";
}

TEST(Tuning, candidates_are_legal_and_tiles_may_be_defined_from_outside) {
  for (const Personality personality : {Personality::cpu, Personality::gpu}) {
    for (const Tunable& row : tunables(personality)) {
      for (const std::int64_t value : row.candidates) EXPECT_TRUE(row.is_legal(value)) << row.key << " " << value;
      if (row.kind == Tunable::Kind::tile) {
        EXPECT_THAT(library_text(personality, {row.family}),
                    HasSubstr("#ifndef " + row.name + "\n#define " + row.name));
        for (const int width : {16, 8, 4})
          EXPECT_TRUE(row.is_legal(built_in_value(row, personality, width))) << row.key << " " << width;
      } else {
        EXPECT_TRUE(row.is_legal(row.built_in)) << row.key;
      }
    }
    for (const Values& values : joint_candidates(personality, "clblast"))
      for (const auto& [key, value] : values) {
        ASSERT_TRUE(find_tunable(personality, key)) << key;
        EXPECT_TRUE(find_tunable(personality, key)->is_legal(value)) << key;
      }
  }
}

TEST(Tuning, the_store_lies_where_the_environment_says) {
  const std::string name = "/a-fast-device--Some-Platform-3.1+x--cpu.json";
  {
    const Environment folder("SAMEBYTES_TUNING", "/some/where");
    EXPECT_EQ(tuning_path(some_device()), "/some/where" + name);
  }
  const Environment unset("SAMEBYTES_TUNING", "");
  {
    const Environment cache("XDG_CACHE_HOME", "/cache");
    EXPECT_EQ(tuning_path(some_device()), "/cache/samebytes" + name);
  }
  const Environment cache("XDG_CACHE_HOME", ""), home("HOME", "/home/me");
  EXPECT_EQ(tuning_path(some_device()), "/home/me/.cache/samebytes" + name);
  const Environment off("SAMEBYTES_TUNING", "off");
  EXPECT_EQ(tuning_path(some_device()), "");
}

// The device under test, with a store of its own.
class TunedDevice : public ::testing::Test {
 protected:
  TunedDevice() : folder_variable_("SAMEBYTES_TUNING", folder_.string()) {
    info_ = Runtime(options_of_device()).device().info();
    path_ = tuning_path(info_);
    if (info_.personality != Personality::cpu) skip_ = true;
  }
  void SetUp() override {
    if (skip_) GTEST_SKIP() << "tiles are tuned in the cpu personality";
  }
  void store(const Values& values) const { put(path_, tuning_text({.values = values, .date = "today"}, info_)); }

  TemporaryFolder folder_;
  Environment folder_variable_;
  DeviceInfo info_;
  std::string path_;
  bool skip_ = false;
};

TEST_F(TunedDevice, a_tile_reaches_constants_and_kernels_of_f32_alone) {
  const TemporaryFolder kernels;
  std::filesystem::create_directories(kernels / "cpu");
  const std::filesystem::path texts = std::filesystem::path(samebytes::testing::source_folder()) / "cl";
  std::filesystem::copy(texts / "common", kernels / "common");
  std::filesystem::create_directories(kernels / "shared");
  std::filesystem::copy(texts / "shared" / "functions.h", kernels / "shared");  // which common/ includes
  put(kernels / "cpu/gemm.cl",
      "#ifndef GEMM_MR\n#define GEMM_MR 14\n#endif\n#define GEMM_PITCH 16\n#define GEMM_PANEL (GEMM_MR * 2)\n"
      "__kernel void gemm_tile(ARRAY(real, x)) { START(x); x[0] = GEMM_MR; }\n");
  const Environment folder("SAMEBYTES_KERNEL_DIR", kernels.string());
  store({{kMr, 8}});
  Runtime runtime(options_of_device());
  KernelLibrary& library = runtime.device().kernels();
  EXPECT_EQ(runtime.tuning_file(), path_);
  EXPECT_EQ(library.constant(f32, "gemm", "GEMM_MR"), 8);
  EXPECT_EQ(library.constant(f32, "gemm", "GEMM_PANEL"), 16);
  EXPECT_EQ(library.constant(f64, "gemm", "GEMM_MR"), 14);
  auto kernel = library.make_kernel(f32, "gemm_tile");
  StoragePtr storage = runtime.allocate(64, Category::value, "test");
  {
    Submission submission(runtime);
    submission.acquire(*storage, true, "tile", 0, 64);
    const std::int64_t offset = 0;
    kernel->set_storage(0, *storage);
    kernel->set_bytes(1, &offset, sizeof offset);
    submission.enqueue(runtime.device(), *kernel, rows(1), "tile");
    submission.finish();
  }
  EXPECT_EQ(read_host(*storage, 1)[0], 8.0f);
}

TEST_F(TunedDevice, the_engine_says_which_choices_hold) {
  store({{"launch.gemm.thin.least_split", 1 << 20}});
  const Engine tuned;
  EXPECT_EQ(tuned.tuning().file, path_);
  EXPECT_EQ(tuned.tuning().hash.size(), 16u);
  const Engine plain({.tuning = ""});
  EXPECT_EQ(plain.tuning().file, "");
  EXPECT_EQ(plain.tuning().hash, "built-in");
  const Environment off("SAMEBYTES_TUNING", "off");
  EXPECT_EQ(Engine().tuning().hash, "built-in");
  EXPECT_EQ(Engine({.tuning = path_}).tuning().hash, tuned.tuning().hash);
}

TEST_F(TunedDevice, the_same_store_gives_the_same_bytes) {
  store({{"launch.gemm.thin.least_split", 1 << 20}});
  const auto product = [](const EngineOptions& options) {
    Engine engine(options);
    const EngineScope scope(engine);
    return matmul(normal({20, 3000}, 0, 1, f32, {1, 2}), normal({3000, 40}, 0, 1, f32, {3, 4})).to_vector<float>();
  };
  const std::vector<float> first = product({}), plain = product({.tuning = ""});
  EXPECT_EQ(product({}), first);
  EXPECT_EQ(product({.tuning = path_}), first);
  EXPECT_EQ(product({.tuning = ""}), plain);
  for (std::size_t i = 0; i < first.size(); ++i) ASSERT_NEAR(first[i], plain[i], 1e-3) << i;
}

TEST_F(TunedDevice, a_store_of_another_driver_is_left_aside_and_said_once) {
  DeviceInfo other = info_;
  other.driver = "0.1";
  put(path_, tuning_text({.values = {{kMr, 8}}, .date = "today"}, other));
  std::vector<std::string> messages;
  set_log_sink([&](std::string_view level, std::string_view message) {
    if (message.find("tuning") != message.npos) messages.push_back(std::string(level) + ": " + std::string(message));
  });
  EXPECT_EQ(Engine().tuning().hash, "built-in");
  EXPECT_EQ(Engine().tuning().file, "");
  set_log_sink({});
  ASSERT_EQ(messages.size(), 1u);
  EXPECT_EQ(messages[0], "warning: tuning: " + path_ + " was made for driver 0.1, this is " + info_.driver +
                             "; the built-in choices are used, `samebytes tune` makes a new one");
  // A file that was asked for must fit.
  EXPECT_ERROR((Engine({.tuning = path_})), IoError,
               ("tuning: " + path_ + " was made for driver 0.1, this is " + info_.driver).c_str());
}

TEST_F(TunedDevice, a_damaged_store_stops_the_engine) {
  put(path_, "{");
  EXPECT_THROW(Engine(), IoError);
  EXPECT_NO_THROW(Engine({.tuning = ""}));
  EXPECT_THROW(Engine({.tuning = folder_ / "nothing.json"}), IoError);
}

}  // namespace
}  // namespace samebytes::detail

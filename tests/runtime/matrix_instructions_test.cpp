// Which matrix instructions of the CPU kernels may use, and what keeps the answer.
#include "runtime/matrix_instructions.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>

#include "graph/context.h"
#include "runtime/rig.h"
#include "samebytes/engine.h"
#include "support/environment.h"
#include "support/files.h"

namespace samebytes::detail {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

bool is_pocl(const DeviceInfo& info) {
  return info.type == "cpu" && info.platform.find("Portable Computing Language") != std::string::npos;
}

TEST(MatrixInstructions, work_where_the_cpu_has_them_and_say_why_not_elsewhere) {
  for (const DeviceInfo& info : list_devices()) {
    if (!info.refused.empty()) continue;
    const std::vector<MatrixInstruction> found = samebytes::find_matrix_instructions(info);
    const bool is_nvidia = info.platform.find("NVIDIA") != std::string::npos;
    EXPECT_EQ(found.empty(), info.type != "cpu" && !is_nvidia) << info.name;
    if (info.type != "cpu") continue;
    for (std::size_t i = 0; i < found.size(); ++i) {
      const bool is_there = is_pocl(info) && cpu_has(static_cast<Instruction>(i));
      const bool is_worth = found[i].trouble.find("slower than the multiply-adds") == std::string::npos;
      EXPECT_EQ(found[i].works, is_there && is_worth) << info.name << ", " << found[i].name << ": " << found[i].trouble;
      EXPECT_EQ(found[i].works, found[i].trouble.empty()) << found[i].name;
      DeviceFigures figures;
      figures.instructions = found;
      EXPECT_THAT(devices_text({info}, {figures}), HasSubstr(found[i].name));
    }
  }
}

TEST(MatrixInstructions, are_those_that_the_system_lists) {
  std::ifstream file("/proc/cpuinfo");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.find("flags\t") == std::string::npos) GTEST_SKIP() << "needs_cpuinfo: no flags in /proc/cpuinfo";
  const auto lists = [&](const std::string& word) { return text.find(" " + word + " ") != std::string::npos; };
  EXPECT_EQ(cpu_has(Instruction::avx512_bf16), lists("avx512_bf16"));
  EXPECT_EQ(cpu_has(Instruction::avx512_vnni), lists("avx512_vnni"));
  EXPECT_EQ(cpu_has(Instruction::avx_vnni), lists("avx_vnni"));
  EXPECT_EQ(cpu_has(Instruction::amx_bf16), lists("amx_bf16"));
  EXPECT_EQ(cpu_has(Instruction::amx_int8), lists("amx_int8"));
}

TEST(MatrixInstructions, are_tried_once_and_not_again_after_a_process_that_did_not_come_back) {
  FoundDevice found = find_device("");
  if (!is_pocl(found.info) || !cpu_has(Instruction::avx512_vnni)) GTEST_SKIP() << "needs_vnni: with PoCL";
  const samebytes::testing::TemporaryFolder folder;
  const Environment store("SAMEBYTES_TUNING", folder.string());
  const auto write = [&](const std::string& verdicts) {
    std::ofstream(folder / "instructions.json") << R"({"format": 2, "devices": {)" << verdicts << "}}";
  };
  // Another name for each question: this process knows the answer for a name.
  const auto ask = [&](const std::string& name, const std::string& verdict = {}) {
    found.info.name = name;
    const std::string key = found.info.platform + ", " + name + ", " + found.info.driver;
    if (!verdict.empty()) write("\"" + key + R"(": {"avx512_vnni": ")" + verdict + "\"}");
    return can_use(Instruction::avx512_vnni, found.info, found.handle);
  };
  EXPECT_TRUE(ask("first"));
  std::ifstream file(folder / "instructions.json");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_THAT(text, HasSubstr("first, " + found.info.driver));
  EXPECT_THAT(text, HasSubstr(R"("avx512_vnni": "works")"));
  EXPECT_FALSE(ask("kept", "a kernel with it gave wrong numbers"));
  EXPECT_FALSE(ask("gone", "process 2147483647"));
  EXPECT_THAT(samebytes::detail::find_matrix_instructions(found.info, found.handle)[1].trouble,
              HasSubstr("an earlier process ended"));
  EXPECT_FALSE(ask("own number", "process " + std::to_string(getpid())));  // of a process before this one
  EXPECT_TRUE(ask("at work", "process " + std::to_string(getppid())));
  write(R"("x": {"avx512_vnni": 1})");
  EXPECT_THROW(ask("damaged"), IoError);
  for (const char* format : {"1", "3"}) {
    std::ofstream(folder / "instructions.json")
        << R"({"format": )" << format << R"(, "devices": "of another version"})";
    EXPECT_TRUE(ask(format));
  }
}

TEST(MatrixInstructions, are_left_out_where_an_engine_or_the_environment_says_so) {
  RuntimeOptions options = options_for(MemoryMode::copy);
  const auto defines = [&] {
    Runtime runtime(options);
    EXPECT_THAT(runtime.device().kernels().defines(f16), Not(HasSubstr("DOTS")));
    EXPECT_THAT(runtime.device().kernels().defines(f32), Not(HasSubstr("DOTS")));
    const std::string text = runtime.device().kernels().defines(bf16);
    EXPECT_EQ(text.find("-DSAMEBYTES_BF16_TILES") != std::string::npos, runtime.device().has_bf16_tiles());
    EXPECT_EQ(text.find("-DSAMEBYTES_BF16_DOTS") != std::string::npos,
              runtime.device().has_bf16_dots() && !runtime.device().has_bf16_tiles());
    return text;
  };
  Runtime runtime(options);
  const DeviceInfo& info = runtime.device().info();
  const bool may = is_pocl(info) && info.personality == Personality::cpu && info.vector_width == 16;
  const bool has_dots = may && can_use(Instruction::avx512_bf16, info, runtime.device().handle()());
  EXPECT_EQ(runtime.device().has_bf16_dots(), has_dots);
  EXPECT_EQ(runtime.device().has_bf16_tiles(), may && cpu_has(Instruction::amx_bf16));
  defines();
  const auto of_bytes = [&] {
    Runtime other(options);
    EXPECT_EQ(other.device().kernels().defines_of(f32, "core").find("INT8"), std::string::npos);
    return other.device().kernels().defines_of(f32, "int8");
  };
  const bool has_byte_dots = may && can_use(Instruction::avx512_vnni, info, runtime.device().handle()()),
             has_byte_tiles = may && can_use(Instruction::amx_int8, info, runtime.device().handle()());
  EXPECT_EQ(of_bytes().find("-DSAMEBYTES_INT8_TILES") != std::string::npos, has_byte_tiles);
  EXPECT_EQ(of_bytes().find("-DSAMEBYTES_INT8_DOTS") != std::string::npos, has_byte_dots && !has_byte_tiles);
  options.matrix_instructions = kNoInstructions;
  EXPECT_THAT(defines(), Not(HasSubstr("DOTS")));
  EXPECT_THAT(of_bytes(), Not(HasSubstr("INT8")));
  EXPECT_THAT(defines(), Not(HasSubstr("TILES")));
  options.matrix_instructions = bit_of(Instruction::avx512_bf16);
  EXPECT_EQ(defines().find("BF16_DOTS") != std::string::npos, has_dots);
  EXPECT_THAT(defines(), Not(HasSubstr("TILES")));

  // The option comes before the environment.
  const auto has_tiles = [](std::optional<bool> option) {
    const Engine engine({.memory = MemoryMode::copy, .matrix_instructions = option});
    return engine.context()->runtime->device().has_bf16_tiles();
  };
  const bool works = runtime.device().has_bf16_tiles();
  EXPECT_EQ(has_tiles({}), works);
  EXPECT_FALSE(has_tiles(false));
  {
    const Environment none("SAMEBYTES_MATRIX_INSTRUCTIONS", "0");
    EXPECT_FALSE(has_tiles({}));
    EXPECT_EQ(has_tiles(true), works);
  }
  const Environment word("SAMEBYTES_MATRIX_INSTRUCTIONS", "perhaps");
  EXPECT_THROW(Engine(EngineOptions{}), ArgumentError);
}

TEST(MatrixInstructions, are_chosen_by_name) {
  EXPECT_EQ(instructions_named("0"), kNoInstructions);
  EXPECT_EQ(instructions_named("1"), kAllInstructions);
  EXPECT_EQ(instructions_named(""), kAllInstructions);
  EXPECT_EQ(instructions_named("avx512_bf16"), bit_of(Instruction::avx512_bf16));
  EXPECT_EQ(instructions_named("avx_vnni,amx_int8"), bit_of(Instruction::avx_vnni) | bit_of(Instruction::amx_int8));
  for (const char* words : {"amx", "avx_vnni,", "avx_vnni, amx_int8", "2"})
    EXPECT_THROW(instructions_named(words), ArgumentError) << words;
}

}  // namespace
}  // namespace samebytes::detail

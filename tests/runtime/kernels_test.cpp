#include "runtime/kernels.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <utility>

#include "runtime/kernel_texts.h"
#include "runtime/rig.h"
#include "support/places.h"
#include "support/process.h"

namespace samebytes::detail {
namespace {

// A folder of kernels that SAMEBYTES_KERNEL_DIR points at while it lives.
class KernelFolder {
 public:
  KernelFolder() : path_(samebytes::testing::temporary_path("kernel_folder")) {
    std::filesystem::create_directories(path_);
    const std::filesystem::path kernels = std::filesystem::path(samebytes::testing::source_folder()) / "cl";
    std::filesystem::copy(kernels / "common", path_ / "common");
    std::filesystem::create_directories(path_ / "shared");
    std::filesystem::copy(kernels / "shared" / "functions.h", path_ / "shared");  // which common/ includes
    setenv("SAMEBYTES_KERNEL_DIR", path_.c_str(), 1);
  }
  ~KernelFolder() {
    unsetenv("SAMEBYTES_KERNEL_DIR");
    std::filesystem::remove_all(path_);
  }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
  }

 private:
  std::filesystem::path path_;
};

// "cpu/" or "gpu/", where the kernels of the device lie.
std::string own_folder() {
  return std::string(samebytes::name_of(choose_device(options_of_device().device).personality)) + "/";
}

TEST(KernelLibrary, builds_one_program_for_all_files_of_a_personality) {
  KernelFolder folder;
  folder.write(own_folder() + "a.cl", "__kernel void a(ARRAY(real, x)) { START(x); x[0] = 1; }\n");
  folder.write(own_folder() + "b.cl", "__kernel void b(ARRAY(real, x)) { START(x); x[0] = VW; }\n");
  Runtime runtime(options_of_device());
  KernelLibrary& kernels = runtime.device().kernels();
  auto a = kernels.make_kernel(f32, "a");
  auto b = kernels.make_kernel(f32, "b");
  EXPECT_EQ(kernels.programs_built(), 1u);
  StoragePtr storage = runtime.allocate(64, Category::value, "test");
  {
    Submission submission(runtime);
    submission.acquire(*storage, true, "b", 0, 64);
    const std::int64_t offset = 3;
    b->set_storage(0, *storage);
    b->set_bytes(1, &offset, sizeof offset);
    submission.enqueue(runtime.device(), *b, rows(1), "b");
    submission.finish();
  }
  EXPECT_EQ(read_host(*storage, 1, 3)[0], static_cast<float>(runtime.device().vector_width(f32)));
  const std::string message = message_of<ArgumentError>([&] { kernels.make_kernel(f32, "c"); });
  EXPECT_NE(message.find("'c'"), std::string::npos);
  EXPECT_NE(message.find("a;b"), std::string::npos) << message;
  EXPECT_EQ(kernels.programs_built(), 1u);
}

// Those of instructions that this CPU lacks would be seen to be wrong by their first owner.
TEST(KernelLibrary, kernels_of_every_matrix_instruction_compile_on_every_cpu) {
  Runtime runtime(options_of_device());
  const DeviceInfo& info = runtime.device().info();
  if (info.type != "cpu" || info.platform != "Portable Computing Language") GTEST_SKIP() << "of PoCL's CPUs alone";
#if !defined(__x86_64__)
  GTEST_SKIP() << "the instructions are those of x86-64";
#endif
  std::map<std::string, std::set<std::string>> programs;
  for (const auto& [stem, program] : kernel_files(Personality::cpu)) programs[program].insert(stem);
  const std::string common = "-cl-std=CL1.2 -DSAMEBYTES_CPU -DVW=16 -DSAMEBYTES_HAS_FMA ";
  const std::pair<std::string, std::string> kinds[] = {{"SAMEBYTES_BF16_DOTS", "-DSAMEBYTES_STORE_BF16 "},
                                                       {"SAMEBYTES_BF16_TILES", "-DSAMEBYTES_STORE_BF16 "},
                                                       {"SAMEBYTES_INT8_DOTS", ""},
                                                       {"SAMEBYTES_INT8_TILES", ""}};
  for (const auto& [kind, stored] : kinds) {
    int built = 0;
    for (const auto& [name, stems] : programs) {
      const std::string text = library_text(Personality::cpu, stems, !stored.empty());
      if (text.find(kind) == std::string::npos) continue;
      ++built;
      cl::Program program(runtime.device().space().context(), text);
      const std::string options =
          common + stored + "-D" + kind + runtime.device().tuning().defines(f32) + std::string(builtins_option(text));
      const cl::Device& device = runtime.device().handle();
      EXPECT_EQ(clBuildProgram(program(), 1, &device(), options.c_str(), nullptr, nullptr), CL_SUCCESS)
          << name << " with " << kind << "\n"
          << program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(device);
    }
    EXPECT_GT(built, 0) << kind;
  }
}

TEST(KernelLibrary, DISABLED_texts_with_what_builtins_lack) {
  KernelFolder folder;
  const std::string call = "(ARRAY(real, x)) { START(x); x[0] = hypot(x[0], (real)4); }\n";
  folder.write(own_folder() + "a.cl", "__kernel void a" + call);
  Runtime runtime(options_of_device());
  KernelLibrary& kernels = runtime.device().kernels();
  const auto asked = kernels.make_generated(f32, "__kernel void of_a_user" + call, "of_a_user", "a user's");
  EXPECT_TRUE(are_own_builtins_enough()) << "a user's text may call anything";
  const auto a = kernels.make_kernel(f32, "a");
  const bool is_pocl = runtime.device().info().platform == "Portable Computing Language";
  EXPECT_EQ(are_own_builtins_enough(), !is_pocl);
  StoragePtr storage = runtime.allocate(64, Category::value, "test");
  write_host(*storage, {3.0f});
  Submission submission(runtime);
  submission.acquire(*storage, true, "a", 0, 64);
  const std::int64_t offset = 0;
  a->set_storage(0, *storage);
  a->set_bytes(1, &offset, sizeof offset);
  submission.enqueue(runtime.device(), *a, rows(1), "a");
  submission.finish();
  EXPECT_EQ(read_host(*storage, 1, 0)[0], 5.0f);
}

// In a process of its own, because it is this driver's lot from then on.
TEST(KernelLibrary, a_text_that_calls_what_builtins_lack_is_built_with_all_of_them) {
  const auto outcome = samebytes::testing::run_child("KernelLibrary.DISABLED_texts_with_what_builtins_lack");
  EXPECT_EQ(outcome.status, 0) << outcome.output;
}

TEST(KernelLibrary, a_generated_body_is_compiled_once_in_a_process) {
  const auto body = [](int value) {
    return "__kernel void @NAME@(ARRAY(real, x)) { START(x); x[0] = " + std::to_string(value) + "; }\n";
  };
  Runtime runtime(options_of_device());
  KernelLibrary& kernels = runtime.device().kernels();
  StoragePtr storage = runtime.allocate(64, Category::value, "test");
  const auto run = [&](const KernelLibrary::Placed& at) {
    const auto kernel = kernels.make_generated(f32, *at.text, at.entry, kFusedProgram);
    Submission submission(runtime);
    submission.acquire(*storage, true, "fused", 0, 64);
    const std::int64_t offset = 0;
    kernel->set_storage(0, *storage);
    kernel->set_bytes(1, &offset, sizeof offset);
    submission.enqueue(runtime.device(), *kernel, rows(1), "fused");
    submission.finish();
    return read_host(*storage, 1, 0)[0];
  };
  const auto of_two = kernels.place(f32, {body(2), body(1)});
  EXPECT_EQ(of_two.at(body(1)).text, of_two.at(body(2)).text) << "one program";
  EXPECT_EQ(run(of_two.at(body(1))), 1);
  EXPECT_EQ(run(of_two.at(body(2))), 2);
  EXPECT_EQ(kernels.programs_built(), 1u);

  const auto with_another = kernels.place(f32, {body(1), body(2), body(3)});
  EXPECT_EQ(*with_another.at(body(1)).text, *of_two.at(body(1)).text) << "compiled before";
  EXPECT_EQ(with_another.at(body(3)).text->find("= 1"), std::string::npos) << "what is known is not compiled again";
  EXPECT_EQ(run(with_another.at(body(3))), 3);
  EXPECT_EQ(run(with_another.at(body(2))), 2);
  EXPECT_EQ(kernels.programs_built(), 2u);
  const auto same = kernels.place(f32, {body(2), body(1)});
  EXPECT_EQ(*same.at(body(2)).text, *of_two.at(body(2)).text);
  EXPECT_NE(kernels.place(f64, {body(1)}).at(body(1)).text, of_two.at(body(1)).text) << "of another type";
}

TEST(KernelLibrary, builds_a_program_when_the_first_kernel_of_its_files_is_made) {
  KernelFolder folder;
  const std::string kernel = "(ARRAY(real, x)) { START(x); x[0] = SCALE; }\n";
  folder.write(own_folder() + "scale.cl", "// Program: scaling\n#define SCALE 3\n__kernel void scale" + kernel);
  folder.write(own_folder() + "scale_more.cl", "// Twice.\n// Program: scaling\n__kernel void scale_more" + kernel);
  folder.write(own_folder() + "a.cl", "// Program: a \n__kernel void a(ARRAY(real, x)) {}\n");
  folder.write(own_folder() + "b.cl", "__kernel void b(ARRAY(real, x)) {}\n__kernel void other(ARRAY(real, x)) {}\n");
  folder.write(own_folder() + "wrong.cl", "// Program: wrong\n#error planted\n");
  Runtime runtime(options_of_device());
  KernelLibrary& kernels = runtime.device().kernels();
  EXPECT_NE(kernels.make_kernel(f32, "scale_more"), nullptr);
  EXPECT_NE(kernels.make_kernel(f32, "scale"), nullptr);
  EXPECT_EQ(kernels.programs_built(), 1u);
  EXPECT_NE(kernels.make_kernel(f32, "b"), nullptr);
  EXPECT_EQ(kernels.programs_built(), 2u);
  EXPECT_NE(kernels.make_kernel(f32, "a"), nullptr);
  EXPECT_EQ(kernels.programs_built(), 3u);
  EXPECT_THROW(kernels.make_kernel(f32, "other"), ArgumentError) << "found by the name of its file only";
  EXPECT_THROW(kernels.make_kernel(f32, "wrong"), BuildError);
  EXPECT_NE(kernels.make_kernel(f64, "scale"), nullptr);
}

TEST(KernelLibrary, names_file_line_and_defines_of_what_does_not_build) {
  KernelFolder folder;
  const std::string wrong = own_folder() + "wrong.cl";
  folder.write(own_folder() + "a.cl", "__kernel void a(ARRAY(real, x)) { START(x); }\n");
  folder.write(wrong, "\n\n__kernel void wrong(ARRAY(real, x)) { x[0] = nothing_here; }\n");
  Runtime runtime(options_of_device());
  try {
    runtime.device().kernels().make_kernel(f32, "a");
    FAIL();
  } catch (const BuildError& error) {
    EXPECT_EQ(error.file(), wrong) << error.log();
    EXPECT_NE(error.log().find(wrong + ":3"), std::string::npos) << error.log();
    EXPECT_NE(error.log().find("nothing_here"), std::string::npos);
    EXPECT_NE(error.defines().find(own_folder() == "cpu/" ? "-DSAMEBYTES_CPU" : "-DSAMEBYTES_GPU"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find(wrong), std::string::npos);
  }
  EXPECT_NO_THROW(test_kernel(runtime, "add_one"));  // the engine goes on
}

TEST(KernelLibrary, finds_the_files_of_a_log_that_names_lines_of_the_whole_text) {
  const std::string text = "int first;\n#line 1 \"gpu/a.cl\"\none\ntwo\n#line 7 \"gpu/b.cl\"\nseven\neight\n";
  EXPECT_EQ(with_files_of("<kernel>:7:2: error: x\n<kernel>:4: note <kernel>:6:1", text),
            "gpu/b.cl:8:2: error: x\ngpu/a.cl:2: note gpu/b.cl:7:1");
  EXPECT_EQ(with_files_of("<kernel>:1:2: <kernel>:99: <kernel>:", text), "<kernel>:1:2: <kernel>:99: <kernel>:");
  EXPECT_EQ(with_files_of("gpu/a.cl:1: error", text), "gpu/a.cl:1: error");
}

TEST(KernelLibrary, names_generated_text_that_does_not_build) {
  Runtime runtime(options_of_device());
  try {
    runtime.device().kernels().make_generated(f32, "__kernel void f(__global float* x) { x[0] = y; }", "f",
                                              "custom_op twice");
    FAIL();
  } catch (const BuildError& error) {
    EXPECT_EQ(error.file(), "custom_op twice");
  }
}

TEST(KernelLibrary, keeps_generated_programs_by_text) {
  Runtime runtime(options_of_device());
  test_kernel(runtime, "add_one");
  test_kernel(runtime, "copy");
  EXPECT_EQ(runtime.programs_built(), 1u);
}

TEST(KernelLibrary, reads_constants_from_the_kernel_file) {
  KernelFolder folder;
  folder.write("cpu/tile.cl",
               "#define TILE_ROWS 12  // of C\n#define TILE_COLUMNS_VW16 32\n#define TILE_COLUMNS_VW8 16\n"
               "#define TILE_COLUMNS SB_JOIN(TILE_COLUMNS_VW, VW)\n#define TILE_PANEL (TILE_ROWS * 4 + VW)\n#define "
               "TILE_TEXT abc\n");
  EXPECT_EQ(kernel_constant(Personality::cpu, 16, "tile", "TILE_ROWS"), 12);
  EXPECT_EQ(kernel_constant(Personality::cpu, 16, "tile", "TILE_COLUMNS"), 32);
  EXPECT_EQ(kernel_constant(Personality::cpu, 8, "tile", "TILE_COLUMNS"), 16);
  EXPECT_EQ(kernel_constant(Personality::cpu, 8, "tile", "TILE_PANEL"), 56);
  EXPECT_THROW(kernel_constant(Personality::cpu, 8, "tile", "TILE_TEXT"), ArgumentError);
  EXPECT_THROW(kernel_constant(Personality::cpu, 8, "tile", "TILE_NOTHING"), ArgumentError);
  EXPECT_THROW(kernel_constant(Personality::gpu, 1, "tile", "TILE_ROWS"), ArgumentError);
}

TEST(KernelLibrary, includes_files_of_the_kernel_folder_once) {
  KernelFolder folder;
  folder.write("shared/sizes.h", "#define SIZE_ROWS 12\nint rows_of_all;\n");
  folder.write("cpu/part.clh", "#include \"shared/sizes.h\"\n#define PART_ROWS (SIZE_ROWS / 4)\n");
  folder.write("cpu/first.cl", "#include \"cpu/part.clh\"\nfirst\n");
  folder.write("cpu/second.cl", "#include \"shared/sizes.h\"\nsecond\n");
  EXPECT_EQ(kernel_constant(Personality::cpu, 16, "first", "PART_ROWS"), 3);
  const std::string text = library_text(Personality::cpu, {"first", "second"});
  EXPECT_EQ(text.find("int rows_of_all"), text.rfind("int rows_of_all"));
  EXPECT_NE(text.find("#line 2 \"cpu/first.cl\"\nfirst\n"), std::string::npos) << text;
  EXPECT_NE(text.find("#line 2 \"cpu/second.cl\"\nsecond\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("#include \""), std::string::npos);
}

TEST(KernelLibrary, refuses_types_that_are_not_floating) {
  Runtime runtime(options_of_device());
  EXPECT_THROW(runtime.device().kernels().make_kernel(i32, "a"), ArgumentError);
}

TEST(KernelLibrary, a_16_bit_program_holds_the_files_with_stored_arrays_only) {
  KernelFolder folder;
  folder.write(own_folder() + "a.cl",
               "__kernel void a(ARRAY(const stored, src), ARRAY(stored, dst)) { STORE(LOAD(src), dst); }\n");
  folder.write(own_folder() + "b.cl",
               "__kernel void b(ARRAY(const real, src), ARRAY(real, dst)) { dst[0] = src[0]; }\n");
  Runtime runtime(options_of_device());
  auto& kernels = runtime.device().kernels();
  for (const Dtype dtype : {f16, bf16}) {
    EXPECT_NE(kernels.make_kernel(dtype, "a"), nullptr);
    EXPECT_THROW(kernels.make_kernel(dtype, "b"), ArgumentError);
  }
  EXPECT_NE(kernels.make_kernel(f32, "a"), nullptr);
  EXPECT_NE(kernels.make_kernel(f32, "b"), nullptr);
}

}  // namespace
}  // namespace samebytes::detail

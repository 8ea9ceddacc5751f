// Includes go one way: the rooms of engine/ and what each may see. docs/design.md has the picture.
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "support/source_tree.h"

namespace samebytes::testing {
namespace {

// The rooms that each room may include from besides itself and the public headers: the map in docs/design.md.
std::map<std::string, std::set<std::string>> read_map() {
  static const std::regex row("\\| `([a-z]+)` \\|[^|]*\\|([^|]*)\\|"), name("`([a-z]+)`");
  std::map<std::string, std::set<std::string>> map;
  bool is_map = false;
  for (const std::string& line : lines_of(read_text("docs/design.md"))) {
    if (line.starts_with("#")) is_map = line == "## Rooms";
    std::smatch match;
    if (!is_map || !std::regex_match(line, match, row)) continue;
    std::set<std::string>& seen = map[match[1]];
    const std::string names = match[2];
    for (std::sregex_iterator at(names.begin(), names.end(), name), end; at != end; ++at) seen.insert((*at)[1]);
  }
  return map;
}

const std::map<std::string, std::set<std::string>>& may_see() {
  static const auto map = read_map();
  return map;
}

bool is_gemm_provider(const std::string& path) {
  static const std::regex provider("engine/ops/(gemm_clblast|clblast_gemm|gemm)\\.(h|cpp)");
  return std::regex_match(path, provider);
}

std::string room_of(const std::string& path) {
  if (path.starts_with("include/samebytes/")) return "public";
  if (path.starts_with("examples/workloads/")) return "workloads";
  if (path.starts_with("examples/")) return "examples";
  if (path.starts_with("benchmarks/")) return "benchmarks";
  if (path.starts_with("engine/train/parallel/")) return "parallel";
  const std::size_t begin = std::string("engine/").size();
  const std::size_t end = path.find('/', begin);
  return end == std::string::npos ? "" : path.substr(begin, end - begin);
}

// What is wrong with one include line; empty where it is fine. `header` is what stands between the quotes or brackets.
std::string fault(const std::string& path, const std::string& header) {
  const std::string room = room_of(path);
  if (header.starts_with("CL/") && room != "runtime" && path != "include/samebytes/interop/opencl.h") {
    return "<CL/...> belongs in engine/runtime and include/samebytes/interop/opencl.h";
  }
  if (header.starts_with("clblast") && !is_gemm_provider(path)) return "<clblast.h> belongs in the gemm provider";
  if (header == "mpi.h" && path != "engine/distributed/mpi_transport.cpp")
    return "<mpi.h> belongs in engine/distributed/mpi_transport.cpp";
  if (header.starts_with("samebytes/")) return "";
  if (room == "public") {
    const bool plain = header.find('/') == std::string::npos && header.find('.') == std::string::npos;
    const bool interop = path.starts_with("include/samebytes/interop/") &&
                         (header.starts_with("CL/") || header.starts_with("Eigen/") || header.starts_with("dlpack/"));
    return plain || interop ? "" : "a public header includes public and standard headers only";
  }
  if (path == "engine/engine.cpp") return "";
  if (path == "benchmarks/sweep_ops/updates.cpp" && (header == "ops/trust.h" || header == "ops/adafactor.h")) return "";
  const std::size_t slash = header.find('/');
  const std::string other = header.starts_with("train/parallel/") ? "parallel"
                            : slash == std::string::npos          ? ""
                                                                  : header.substr(0, slash);
  if (may_see().count(room) == 0) return "no room is known for this file";
  if (may_see().count(other) == 0 || other == room) return "";  // a library's header, or one of the room's own
  if (may_see().at(room).count(other) != 0) return "";
  return room + " does not see " + other;
}

std::vector<std::string> faults(const SourceFile& file) {
  static const std::regex include("^\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"]");
  std::vector<std::string> found;
  for (const auto& line : lines_of(without_comments(file.text))) {
    std::smatch match;
    if (!std::regex_search(line, match, include)) continue;
    const std::string reason = fault(file.path, match[1]);
    if (!reason.empty()) found.push_back(file.path + ": " + line + ": " + reason);
  }
  return found;
}

TEST(Includes, the_map_has_every_room_and_no_other) {
  std::set<std::string> rooms;
  for (const auto& file : source_files({"engine", "include", "examples", "benchmarks"}, {".h", ".cpp"}))
    if (const std::string room = room_of(file.path); !room.empty() && room != "public") rooms.insert(room);
  std::set<std::string> drawn;
  for (const auto& [room, seen] : may_see()) {
    drawn.insert(room);
    for (const std::string& other : seen) EXPECT_TRUE(may_see().contains(other)) << room << " sees " << other;
  }
  EXPECT_EQ(drawn, rooms);
}

TEST(Includes, go_one_way) {
  const auto files = source_files({"engine", "include", "examples", "benchmarks"}, {".h", ".cpp"});
  ASSERT_GT(files.size(), 10u) << "the checkout was not found";
  std::vector<std::string> all;
  for (const auto& file : files) {
    for (const auto& one : faults(file)) all.push_back(one);
  }
  EXPECT_TRUE(all.empty()) << joined(all);
}

TEST(Includes, planted_violations_are_found) {
  const std::vector<SourceFile> wrong = {
      {"engine/core/text.cpp", "#include \"runtime/storage.h\"\n"},
      {"engine/runtime/queue.cpp", "#include \"graph/node.h\"\n"},
      {"engine/graph/node.cpp", "  #  include \"ops/gemm.h\"\n"},
      {"engine/ops/softmax.cpp", "#include \"plan/plan.h\"\n"},
      {"engine/ops/softmax.cpp", "#include <CL/opencl.hpp>\n"},
      {"engine/ops/softmax.cpp", "#include <clblast.h>\n"},
      {"engine/plan/order.cpp", "#include \"tune/search.h\"\n"},
      {"engine/placement/leave.cpp", "#include \"plan/plan.h\"\n"},
      {"engine/distributed/group.cpp", "#include <mpi.h>\n"},
      {"engine/distributed/jobs.cpp", "#include \"graph/op.h\"\n"},
      {"engine/train/parallel/exchange.cpp", "#include \"plan/plan.h\"\n"},
      {"engine/train/session.cpp", "#include \"train/parallel/exchange.h\"\n"},
      {"engine/nn/linear.cpp", "#include \"runtime/runtime.h\"\n"},
      {"engine/optim/adam.cpp", "#include \"runtime/runtime.h\"\n"},
      {"engine/optim/adam.cpp", "#include \"plan/plan.h\"\n"},
      {"engine/train/session.cpp", "#include \"ops/trust.h\"\n"},
      {"benchmarks/sweep_ops/updates.cpp", "#include \"ops/gemm.h\"\n"},
      {"engine/data/loader.cpp", "#include \"runtime/runtime.h\"\n"},
      {"engine/cli/main.cpp", "#include \"core/hash.h\"\n"},
      {"engine/train/session.cpp", "#include \"workloads/workload.h\"\n"},
      {"examples/workloads/gpt.cpp", "#include \"cli/text.h\"\n"},
      {"engine/profile/trace.cpp", "#include \"runtime/ticket.h\"\n"},
      {"engine/helpers.cpp", "#include \"graph/node.h\"\n"},
      {"examples/01_arrays.cpp", "#include \"graph/node.h\"\n"},
      {"include/samebytes/array.h", "#include <fmt/format.h>\n"},
      {"include/samebytes/array.h", "#include \"graph/node.h\"\n"},
  };
  for (const auto& file : wrong) EXPECT_EQ(faults(file).size(), 1u) << file.path << " " << file.text;
}

TEST(Includes, allowed_ones_are_left_alone) {
  const std::vector<SourceFile> right = {
      {"engine/engine.cpp", "#include \"plan/plan.h\"\n"},
      {"engine/runtime/opencl.h", "#include <CL/opencl.hpp>\n"},
      {"engine/ops/gemm_clblast.cpp", "#include <clblast.h>\n"},
      {"engine/plan/order.cpp", "#include \"graph/node.h\"\n#include \"profile/trace.h\"\n"},
      {"engine/data/loader.cpp", "#include \"core/mutex.h\"\n#include \"data/queue.h\"\n#include <zlib.h>\n"},
      {"engine/optim/lars.cpp", "#include \"ops/trust.h\"\n"},
      {"engine/train/session.cpp", "#include \"graph/node.h\"\n"},
      {"engine/nn/linear.cpp", "#include \"samebytes/nn/linear.h\"\n// #include \"graph/node.h\"\n"},
      {"include/samebytes/interop/eigen.h", "#include <Eigen/Core>\n"},
      {"include/samebytes/interop/dlpack.h", "#include <dlpack/dlpack.h>\n"},
  };
  for (const auto& file : right) EXPECT_TRUE(faults(file).empty()) << joined(faults(file));
}

}  // namespace
}  // namespace samebytes::testing

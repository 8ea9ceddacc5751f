// Runs one small op of a user that is wrong on purpose, on the way that every kernel of the library takes, so that it
// can be shown that the checks see such a thing:
//   planted_kernel overrun   a work-item writes one element past its array
//   planted_kernel race      all work-items write the same element without an order
//   planted_kernel unset     a work-item reads local memory that nobody wrote
//   planted_kernel clean     the same op without a mistake
// and, without any:
//   planted_kernel plan      steps of a small training, whose plans are made once and replayed (exit 4: they are not)
// SAMEBYTES_ALLOCATOR=exact gives each array a buffer of its exact size. Exit 3: guard bytes were overwritten.
#include <array>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "graph/context.h"
#include "graph/node.h"
#include "runtime/runtime.h"
#include "samebytes/samebytes.h"

namespace {

const std::map<std::string, std::string>& sources() {
  static const std::string head = "__kernel void planted(ARRAY(const real, src), ARRAY(real, dst), const int n) {\n";
  static const std::map<std::string, std::string> all{
      {"clean", head + "START(src); START(dst); dst[get_global_id(0)] = src[get_global_id(0)]; }"},
      {"overrun", head + "START(src); START(dst); dst[get_global_id(0) + 1] = src[get_global_id(0)]; }"},
      {"race", head + "START(src); START(dst); dst[0] = src[0] + get_global_id(0); }"},
      {"unset", head + "START(src); START(dst); __local real tile[64];\n"
                       "if (get_global_id(0) > 0) tile[get_local_id(0)] = 2;\n"
                       "barrier(CLK_LOCAL_MEM_FENCE);\n"
                       "dst[get_global_id(0)] = tile[get_local_id(0)] + src[get_global_id(0)]; }"}};
  return all;
}

namespace sb = samebytes;

int replay_plans() {
  const sb::Engine engine;
  sb::nn::Linear first({.in = 5, .out = 7}), second({.in = 7, .out = 3});
  std::vector<sb::Array> parameters = first.parameters();
  for (const sb::Array& each : second.parameters()) parameters.push_back(each);
  sb::optim::Adam adam(parameters, {.rate = 1e-2});
  for (int step = 0; step < 4; ++step) {
    const sb::Array y = second(sb::relu(first(sb::uniform({4, 5}))));
    adam.step(sb::gradients(sb::mse_loss(y, sb::uniform({4, 3})), adam.parameters()));
  }
  parameters.front().wait();
  return engine.plans().plans_replayed >= 2 ? 0 : 4;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && argv[1] == std::string("plan")) return replay_plans();
  if (argc != 2 || !sources().contains(argv[1])) {
    std::fprintf(stderr, "usage: planted_kernel overrun|race|unset|clean|plan\n");
    return 2;
  }
  constexpr int kItems = 64;
  sb::Engine engine;
  const sb::Array src = sb::array(std::array<float, kItems>{}, {kItems});
  const sb::CustomOp op{.name = argv[1], .entry = "planted", .source = sources().at(argv[1])};
  const sb::Array y = sb::custom_op(op, {&src, 1}, {kItems});
  y.wait();
  const auto damage = y.node()->context->runtime->check_guards();
  for (const std::string& line : damage) std::fprintf(stderr, "%s\n", line.c_str());
  return damage.empty() ? 0 : 3;
}

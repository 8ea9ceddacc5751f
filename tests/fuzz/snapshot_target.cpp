#include "fuzz/target.h"
#include "samebytes/engine.h"
#include "samebytes/memory_snapshot.h"
#include "samebytes/nn.h"
#include "samebytes/ops.h"
#include "samebytes/values.h"

namespace samebytes::fuzz {
namespace {

const Added added({
    .name = "snapshot",
    .file = "memory.json",
    .make =
        [](const std::string& folder) {
          Engine engine;
          const MemoryHistory history(engine);
          nn::Linear layer({.in = 3, .out = 2});
          const Array y = layer(ones({2, 3}));
          y.eval();
          save_memory_snapshot(folder + "/memory", take_memory_snapshot(engine));
        },
    .read =
        [](const std::string& path) {
          const MemorySnapshot snapshot = load_memory_snapshot(path);
          memory_text(snapshot);
          memory_svg(snapshot);
        },
    .words = {"-1", "1e999", "18446744073709551615", "\"plans\"", "\"events\"", "null", "[]", "{}"},
    .growth = 300,
});

}  // namespace
}  // namespace samebytes::fuzz

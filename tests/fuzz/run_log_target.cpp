#include "fuzz/target.h"
#include "samebytes/doctor.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

const Added added({
    .name = "run_log",
    .file = "run.jsonl",
    .make =
        [](const std::string& folder) {
          testing::put(folder + "/log",
                       R"({"event": "start", "workload": "digits", "batch": 64, "optimizer": "adamw", "device": "cpu"}
{"event": "step", "step": 1, "loss": 2.5, "rate": 0.001, "ms": 3.5, "grad_norm": 1.5}
{"event": "step", "step": 2, "loss": 1e30, "rate": 0.001, "ms": 3.5}
{"event": "epoch", "epoch": 1, "step": 2, "train_loss": 2.5, "test_loss": 2.75, "stall_fraction": 0.5}
{"event": "error", "kind": "OutOfMemory", "message": "no memory", "step": 2, "need_bytes": 10, "limit_bytes": 5}
{"event": "summary", "steps": 2, "seconds": 1.5}
)");
        },
    .read = [](const std::string& path) { doctor::diagnose(path); },
    .words = {"\"event\"", "\"start\"", "\"step\"", "\"epoch\"", "\"error\"", "\"summary\"", "1e308", "-1", "null",
              "\"samples_per_second\"", "\"test_accuracy\"", "[]", "{}"},
    .growth = 300,
});

}  // namespace
}  // namespace samebytes::fuzz

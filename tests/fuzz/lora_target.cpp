#include "samebytes/io/lora.h"

#include "fuzz/target.h"
#include "samebytes/engine.h"
#include "samebytes/nn.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

// The options of PEFT's adapters, which lie beside a file of them.
const Added added({
    .name = "lora",
    .file = "adapter_config.json",
    .make =
        [](const std::string& folder) {
          testing::put(folder + "/list", R"({"peft_type": "LORA", "r": 2, "lora_alpha": 4, "lora_dropout": 0.5,
"use_rslora": true, "bias": "none", "target_modules": ["0"], "modules_to_save": null, "use_dora": false,
"rank_pattern": {}})");
          testing::put(folder + "/word", R"({"r": 2, "lora_alpha": 4.5, "target_modules": "all-linear"})");
        },
    .read =
        [](const std::string& path) {
          static Engine engine;
          const EngineScope scope(engine);
          const std::string adapters = path.substr(0, path.rfind('/')) + "/adapter_model.safetensors";
          const HostArray a(Shape{2, 3}, f32), b(Shape{4, 2}, f32);
          const io::TensorView tensors[] = {{"base_model.model.0.lora_A.weight", f32, a.shape, a.bytes},
                                            {"base_model.model.0.lora_B.weight", f32, b.shape, b.bytes}};
          io::save_tensors(adapters, tensors);
          nn::Sequential net(nn::Linear({.in = 3, .out = 4}));
          io::load_lora(adapters, net);
        },
    .words = {"\"r\"", "\"lora_alpha\"", "\"target_modules\"", "\"modules_to_save\"", "\"all-linear\"", "\"use_dora\"",
              "4294967296", "1e999", "1e308", "-1", "null", "[]", "{}"},
    .growth = 300,
});

}  // namespace
}  // namespace samebytes::fuzz

// Options of adapters: engine/cli/lora.h.
#include "cli/option_groups.h"

namespace samebytes::cli {

void add_lora_training(CLI::App& app, Options& options) {
  AdapterOptions& lora = options.lora;
  app.add_option("--lora-rank", lora.rank,
                 "train low-rank adapters of this rank beside the linear layers (LoRA) and nothing else: --load\n"
                 "has the network; --save writes it with the adapters merged into its weights")
      ->option_text("R")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20));
  app.add_option("--lora-alpha", lora.alpha, "what adapters give is multiplied by alpha / rank; default: 8")
      ->option_text("X")
      ->check(CLI::PositiveNumber);
  app.add_option("--lora-dropout", lora.dropout, "of what adapters read; default: 0")
      ->option_text("P")
      ->check(CLI::Range(0.0, 0.999999));
  app.add_option("--lora-targets", lora.targets,
                 "names of layers in a comma list, such as c_attn,c_proj, or all-linear; default: attention's\n"
                 "queries, keys and values (c_attn), without attention all linear layers")
      ->option_text("LIST")
      ->delimiter(',');
}

void add_lora_saving(CLI::App& app, Options& options) {
  app.add_option("--lora-save", options.lora.save,
                 "write the adapters alone at the end (safetensors with PEFT's names; for PEFT to open the\n"
                 "folder, call it adapter_model.safetensors)")
      ->option_text("FILE");
}

void add_lora_loading(CLI::App& app, Options& options, const char* text) {
  app.add_option("--lora", options.lora.load, text)->option_text("FILE");
}

}  // namespace samebytes::cli

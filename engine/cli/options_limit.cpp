#include "cli/options_limit.h"

#include <cstdint>
#include <string>

#include "cli/option_groups.h"
#include "cli/option_verbs.h"
#include "samebytes/budget.h"
#include "samebytes/error.h"

namespace samebytes::cli {
namespace {

void add_bytes(CLI::App& app, const char* name, std::optional<std::size_t>& bytes, const char* text) {
  app.add_option_function<std::string>(
         name,
         [name, &bytes](const std::string& word) {
           try {
             bytes = parse_bytes(word);
           } catch (const ArgumentError& error) {
             throw CLI::ValidationError(name, error.what());
           }
         },
         text)
      ->option_text("BYTES");
}

}  // namespace

CLI::Option* add_batch_or_auto(CLI::App& app, Options& options) {
  const CLI::Range range(std::int64_t{1}, std::int64_t{1} << 30);
  return app
      .add_option_function<std::string>(
          "--batch",
          [&options](const std::string& text) {
            options.limit.automatic_batch = text == "auto";
            if (!options.limit.automatic_batch) options.batch = std::stoll(text);
          },
          "samples per step, or auto: as many as fit into memory, found by planning the true step, not by\n"
          "trying it (2 GiB stay free, or --memory-limit is used); default: the workload's")
      ->option_text("N|auto")
      ->check([range](const std::string& text) { return text == "auto" ? std::string() : range(text); });
}

void add_limit(CLI::App& app, Options& options) {
  add_bytes(app, "--memory-limit", options.limit.memory,
            "such as 1.5GB (10^9) or 800MiB (2^20): the step is planned so that it fits, in this order with\n"
            "recomputation, micro-batches, gradient release, 16-bit moments, 16-bit precision");
  app.add_option("--allow", options.limit.allowed,
                 "of moments, precision and pieces, in a comma list: what --memory-limit may use though results\n"
                 "change; pieces: what train may cut batches into under pressure, though batch norms see them")
      ->option_text("LIST")
      ->delimiter(',')
      ->check(CLI::IsMember({"moments", "precision", "pieces"}));
}

void add_pressure_limit(CLI::App& app, Options& options) {
  add_bytes(app, "--pressure-limit", options.limit.pressure,
            "what the process may use: at 85 % of it the run gives up its cache, then batches ahead, then\n"
            "half of its pieces at a time, and goes on; default: what the machine and its cgroups give");
}

CLI::App* add_estimate(CLI::App& app, Options& options) {
  auto* verb = app.add_subcommand("estimate", "say how much memory the steps of a workload need, before anything runs");
  add_workload(*verb, options, false);
  add_form(*verb, options);
  add_batch(*verb, options, "samples per step; default: the workload's");
  add_clip_norm(*verb, options);
  add_release(*verb, options);
  add_moments(*verb, options);
  add_checkpointing(*verb, options);
  add_head(*verb, options);
  add_accumulation(*verb, options);
  add_precision(*verb, options, "f32, f16 or bf16, as train has it; default: f32");
  add_weights(*verb, options);
  verb->add_flag("--measure", options.limit.measures,
                 "then run some steps too, and say by how much the process grew at most (VmHWM)");
  add_device_options(*verb, options, DeviceWish::one);
  verb->add_option("--slots", options.slots, "batches in memory; default: 2")
      ->option_text("N")
      ->check(CLI::Range(1, 1024));
  verb->add_flag("--json", options.json, "the estimates as one line of JSON");
  verb->footer(
      workload_table() +
      "\nThe closed form is parameters x (weight + gradient + state) + batch x (slots x sample +\n"
      "intermediate values alive at once). The exact plan is that of the training step itself.\n"
      "\nExamples:\n  samebytes estimate resnet20 --batch 256\n  samebytes estimate gpt --size small --batch 4 "
      "--context 128 --measure");
  return verb;
}

}  // namespace samebytes::cli

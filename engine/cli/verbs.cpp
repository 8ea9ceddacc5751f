#include "cli/verbs.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/workloads.h"

namespace samebytes::cli {

const std::vector<VerbRow>& verb_table() {
  static const std::vector<VerbRow> table = {
      {Verb::devices, "devices", "list the OpenCL devices, and how Samebytes uses each one", run_devices, false, ""},
      {Verb::train, "train", "train a workload, then test it", run_train, true,
       "Examples:\n"
       "  samebytes train digits\n"
       "  samebytes train cnn --data data/mnist --epochs 3 --save cnn.safetensors\n"
       "\nStatus: 0 done, 1 failed, 2 wrong usage, 130 interrupted (Ctrl-C ends after the current step)."},
      {Verb::eval, "eval", "test saved parameters on the test set", run_eval, true,
       "Example:\n  samebytes eval cnn --load cnn.safetensors --data data/mnist"},
      {Verb::bench, "bench", "measure training and inference on made-up data, against the device's own peak", run_bench,
       true,
       "Examples:\n"
       "  samebytes bench cnn --batch 128\n"
       "  samebytes bench --device all --json\n"
       "  samebytes bench mlp cnn --device all --html bench.html"},
      {Verb::generate, "generate", "write text with a trained gpt", run_generate, false,
       "Example:\n"
       "  samebytes train gpt --data data/text/tinyshakespeare.txt --save gpt.safetensors\n"
       "  samebytes generate --load gpt.safetensors --prompt ROMEO: --tokens 300"},
      {Verb::tune, "tune", "search for faster tiles and splits on a device and keep them in its store", run_tune, false,
       "The store is a JSON file for each device, driver and kernel personality, in $SAMEBYTES_TUNING, else in\n"
       "$XDG_CACHE_HOME/samebytes, else in ~/.cache/samebytes. You may edit its values. SAMEBYTES_TUNING=off\n"
       "selects the built-in choices. Other choices may change the last bits of results; the log and the\n"
       "summary of a run say which choices it used (\"tuning\").\n"
       "\nExamples:\n"
       "  samebytes tune --rapid\n"
       "  samebytes tune --only gemm,conv --seconds 600\n"
       "  samebytes tune --show"},
      {Verb::profile, "profile", "show where the time and the memory of a workload's steps go", run_profile, true,
       "Examples:\n"
       "  samebytes profile cnn\n"
       "  samebytes profile gpt --by layer --html gpt.html --trace gpt.json"},
      {Verb::estimate, "estimate", "say how much memory the steps of a workload need, before anything runs",
       run_estimate, true,
       "The closed form is parameters x (weight + gradient + state) + batch x (slots x sample +\n"
       "intermediate values alive at once). The exact plan is that of the training step itself.\n"
       "\nExamples:\n"
       "  samebytes estimate resnet20 --batch 256\n"
       "  samebytes estimate gpt --size small --batch 4 --context 128 --measure"},
      {Verb::sweep, "sweep", "train a workload with several batch sizes and say which one to take", run_sweep, true,
       "Each size starts from the same seed and parameters. The rate is the workload's for its own batch and\n"
       "follows --scale-rate (default: linear for sgd, sqrt for the others), at most 32 times; the schedule is\n"
       "constant unless --schedule says otherwise. A size ends when it has reached the target.\n"
       "\nExamples:\n"
       "  samebytes sweep digits\n"
       "  samebytes sweep cnn --data data/mnist --batch 1,8,32,128,512 --plot sweep.svg"},
      {Verb::doctor, "doctor", "read the log of a run, find its problems and say what to do about them", run_doctor,
       false,
       "Findings are ranked: what failed, what is serious, what could be better; each with the figure that was\n"
       "seen and its line, why it matters, and what to do as options of this program, the best one first.\n"
       "\nExample:\n"
       "  samebytes train digits --rate 1e4 --log run.jsonl\n"
       "  samebytes profile digits --json > profile.json\n"
       "  samebytes doctor run.jsonl profile.json\n"
       "\nStatus: 0 with or without findings, 2 for files that are no log or no profile."},
      {Verb::memory, "memory", "draw a memory snapshot: categories, timeline, layers, the op at the peak", run_memory,
       false,
       "Examples:\n"
       "  samebytes bench gpt --mode train --steps 3 --memory-snapshot gpt.json\n"
       "  samebytes memory gpt.json --svg gpt.svg\n"
       "  samebytes memory after_20_steps.json --diff after_200_steps.json"},
      {Verb::completion, "completion", "print a script that completes verbs, options and values in a shell",
       run_completion, false,
       "Examples:\n"
       "  source <(samebytes completion bash)\n"
       "  samebytes completion zsh > ~/.zfunc/_samebytes\n"
       "  samebytes completion fish > ~/.config/fish/completions/samebytes.fish"},
      {Verb::man, "man", "print the manual page", run_man, false, "Example:\n  samebytes man | man -l -"},
  };
  return table;
}

const VerbRow& row_of(Verb verb) {
  return *std::find_if(verb_table().begin(), verb_table().end(), [&](const VerbRow& row) { return row.verb == verb; });
}

std::vector<std::string> verb_names() {
  std::vector<std::string> names;
  for (const VerbRow& row : verb_table()) names.push_back(row.name);
  return names;
}

std::string footer_of(const VerbRow& row) {
  if (!row.lists_workloads) return row.footer;
  std::string text = "Workloads:\n";
  for (const WorkloadEntry& workload : workloads::all())
    text += fmt::format("  {:<9}{}\n", workload.name, workload.about);
  return text + "\n" + row.footer;
}

}  // namespace samebytes::cli

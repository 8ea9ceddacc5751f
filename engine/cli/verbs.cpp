#include "cli/verbs.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/workloads.h"

namespace samebytes::cli {

const std::vector<VerbRow>& verb_table() {
  static const std::vector<VerbRow> table = {
      {Verb::devices, "devices", "list the OpenCL devices and how Samebytes uses each one", run_devices, false, ""},
      {Verb::train, "train", "train a workload, then test it", run_train, true,
       "Examples:\n"
       "  samebytes train digits\n"
       "  samebytes train cnn --data data/mnist --epochs 3 --save cnn.safetensors\n"
       "  samebytes train resnet18.onnx --data photos --freeze 'layer[123].*' --save tuned.onnx\n"
       "\nExit status: 0 success, 1 failure, 2 wrong usage, 130 interrupted (Ctrl-C stops after the current step)."},
      {Verb::eval, "eval", "test saved parameters on the test set", run_eval, true,
       "Examples:\n"
       "  samebytes eval cnn --load cnn.safetensors --data data/mnist\n"
       "  samebytes eval tuned.onnx --data photos"},
      {Verb::bench, "bench", "measure training and inference on synthetic data against the device's peak", run_bench,
       true,
       "Examples:\n"
       "  samebytes bench cnn --batch 128\n"
       "  samebytes bench resnet18.onnx --mode infer --batch 1\n"
       "  samebytes bench --device all --json\n"
       "  samebytes bench mlp cnn --device all --html bench.html"},
      {Verb::warm, "warm", "compile the kernels of workloads now, so that their first steps do not wait", run_warm,
       true,
       "The driver keeps the kernels. They are those of one step of training and of inference with these options; "
       "other\n"
       "batch sizes share most of them.\n"
       "\nExamples:\n"
       "  samebytes warm digits cnn\n"
       "  samebytes warm resnet18.onnx --mode infer --batch 1"},
      {Verb::generate, "generate", "generate text with a trained gpt", run_generate, false,
       "Example:\n"
       "  samebytes train gpt --data data/text/tinyshakespeare.txt --save gpt.safetensors\n"
       "  samebytes generate --load gpt.safetensors --prompt ROMEO: --tokens 300"},
      {Verb::finetune, "finetune", "train adapters beside a language model on conversations (LoRA, QLoRA)",
       run_finetune, false,
       "Examples:\n"
       "  samebytes finetune SmolLM2-135M-Instruct --data chat.jsonl\n"
       "  samebytes finetune Qwen2.5-0.5B --data chat.jsonl --lora 16 --quantise q4 --memory-limit 2GB --merge tuned\n"
       "  samebytes finetune qwen2.5-0.5b-q4_k_m.gguf --data chat.jsonl --checkpoint state --resume auto\n"
       "\nExit status: 0 success, 1 failure, 2 wrong usage, 130 interrupted (Ctrl-C stops after the current step)."},
      {Verb::chat, "chat", "talk with a language model: a line each, its answer as it is written", run_chat, false,
       "/clear forgets the conversation, /quit, Ctrl-D and Ctrl-C end it.\n"
       "\nExamples:\n"
       "  samebytes chat SmolLM2-135M-Instruct\n"
       "  samebytes chat Qwen2.5-0.5B --adapter adapters --temperature 0\n"
       "  samebytes chat qwen2.5-0.5b-instruct-q8_0.gguf\n"
       "  echo 'How high is the Matterhorn?' | samebytes chat SmolLM2-135M-Instruct --json"},
      {Verb::embed, "embed", "write vectors of sentences, a text a line", run_embed, false,
       "Examples:\n"
       "  samebytes embed all-MiniLM-L6-v2 --input texts.txt --output vectors.npy\n"
       "  echo 'a text' | samebytes embed all-MiniLM-L6-v2"},
      {Verb::tune, "tune", "search for faster tiles and splits on a device and store them", run_tune, false,
       "The store is one JSON file for each device, driver and kernel personality, in $SAMEBYTES_TUNING, else in\n"
       "$XDG_CACHE_HOME/samebytes, else in ~/.cache/samebytes. You may edit its values. SAMEBYTES_TUNING=off\n"
       "selects the built-in choices. Other choices may change the last bits of results; the log and the\n"
       "summary of a run name the choices that it used (\"tuning\").\n"
       "\nExamples:\n"
       "  samebytes tune --rapid\n"
       "  samebytes tune --only gemm,conv --seconds 600\n"
       "  samebytes tune --show"},
      {Verb::profile, "profile", "show where a workload's steps spend time and memory", run_profile, true,
       "Examples:\n"
       "  samebytes profile cnn\n"
       "  samebytes profile gpt --by layer --html gpt.html --trace gpt.json"},
      {Verb::estimate, "estimate", "estimate how much memory the steps of a workload need, without running them",
       run_estimate, true,
       "The closed form is parameters x (weight + gradient + state) + batch x (slots x sample +\n"
       "intermediate values alive at the same time). The exact plan is the plan of the training step.\n"
       "\nExamples:\n"
       "  samebytes estimate resnet20 --batch 256\n"
       "  samebytes estimate gpt --size small --batch 4 --context 128 --measure"},
      {Verb::sweep, "sweep", "train a workload with several batch sizes and recommend one", run_sweep, true,
       "Each size starts from the same seed and parameters. The learning rate is that of the workload for its own\n"
       "batch, scaled by --scale-rate (default: linear for sgd, sqrt for the others), at most 32 times. The\n"
       "schedule is constant unless --schedule is given. Training with a size stops at the target.\n"
       "\nExamples:\n"
       "  samebytes sweep digits\n"
       "  samebytes sweep cnn --data data/mnist --batch 1,8,32,128,512 --plot sweep.svg"},
      {Verb::doctor, "doctor", "read the log of a run, find problems and suggest remedies", run_doctor, false,
       "Findings are ranked: failures, serious problems, possible improvements. Each shows the figure and its line\n"
       "in the log, why it matters, and the options that help, the best one first.\n"
       "\nExample:\n"
       "  samebytes train digits --rate 1e4 --log run.jsonl\n"
       "  samebytes profile digits --json > profile.json\n"
       "  samebytes doctor run.jsonl profile.json\n"
       "\nExit status: 0 with or without findings, 2 if a file is not a log or a profile."},
      {Verb::memory, "memory", "draw a memory snapshot: categories, timeline, layers, the op at the peak", run_memory,
       false,
       "Examples:\n"
       "  samebytes bench gpt --mode train --steps 3 --memory-snapshot gpt.json\n"
       "  samebytes memory gpt.json --svg gpt.svg\n"
       "  samebytes memory after_20_steps.json --diff after_200_steps.json"},
      {Verb::run, "run", "run an ONNX model on arrays of NumPy", run_run, false,
       "Examples:\n"
       "  samebytes run model.onnx --input x=x.npy --output out\n"
       "  samebytes run model.onnx --random --dim batch=1 --repeat 20"},
      {Verb::inspect, "inspect", "show what is in an ONNX model, a safetensors file, a checkpoint or a GGUF file",
       run_inspect, false,
       "Examples:\n"
       "  samebytes inspect model.onnx --batch 8\n"
       "  samebytes inspect model.gguf"},
      {Verb::convert, "convert", "convert weights between ONNX models, safetensors files and checkpoints", run_convert,
       false,
       "Examples:\n"
       "  samebytes convert model.onnx weights.safetensors --dtype f16\n"
       "  samebytes convert runs/a/checkpoint-000001200.safetensors weights.safetensors\n"
       "  samebytes convert weights.safetensors tuned.onnx --graph model.onnx"},
      {Verb::data, "data", "get a well-known data set and check it, or say where it is", run_data, false,
       "Examples:\n"
       "  samebytes data\n"
       "  samebytes data mnist\n"
       "  samebytes data mnist --from ~/Downloads"},
      {Verb::new_, "new", "write a file to begin an op of your own with", run_new, false,
       "Example:\n"
       "  samebytes new op scaled_tanh\n"
       "  g++ -std=c++20 -O2 scaled_tanh.cpp -o scaled_tanh $(pkg-config --cflags --libs samebytes) && ./scaled_tanh"},
      {Verb::completion, "completion", "print a shell script that completes verbs, options and values", run_completion,
       false,
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
  text += "  MODEL.onnx  a model of another framework; a classifier trains on a folder per class (--data)\n";
  return text + "\n" + row.footer;
}

}  // namespace samebytes::cli

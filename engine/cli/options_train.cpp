#include "cli/option_groups.h"
#include "cli/option_verbs.h"
#include "cli/options_limit.h"
#include "cli/recipe.h"
#include "cli/text.h"

namespace samebytes::cli {
void add_recipe(CLI::App& app, Options& options) {
  app.add_option("--optimizer", options.optimizer, list_text(optimizer_names()) + "; default: adamw")
      ->option_text("NAME")
      ->check(CLI::IsMember(optimizer_names()));
  app.add_option("--rate", options.rate,
                 "highest learning rate; default: the workload's for adam, adamw and lamb, else PyTorch's")
      ->option_text("R")
      ->check(CLI::PositiveNumber);
  app.add_option("--schedule", options.schedule,
                 list_text(schedule_names()) +
                     ":\nhow the rate falls after its warm-up; plateau: when the test loss does not; default: cosine")
      ->option_text("NAME")
      ->check(CLI::IsMember(schedule_names()));
  app.add_option("--warmup", options.warmup,
                 "steps in which the rate rises; default: 5 % of all, none for constant and plateau")
      ->option_text("STEPS")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 40));
  app.add_option("--gamma", options.gamma,
                 "what step, exponential and plateau multiply the rate by; default: 0.1; of\n"
                 "exponential, for each step, what leaves a hundredth at the end")
      ->option_text("X")
      ->check(CLI::Range(1e-9, 1.0));
  app.add_option("--every", options.every,
                 "steps between two falls of step or restarts of cosine, default: a third of all; tests that\n"
                 "a plateau waits for, default: 2")
      ->option_text("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40));
  app.add_option("--weight-decay", options.weight_decay,
                 "default: the workload's for adamw and lamb, PyTorch's for the others")
      ->option_text("X")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--momentum", options.momentum, "of sgd, rmsprop and lars, beta1 of the others; default: PyTorch's")
      ->option_text("X")
      ->check(CLI::Range(0.0, 0.999999));
  add_clip_norm(app, options);
  app.add_option("--ema", options.ema,
                 "average the weights with this decay, such as 0.999; tests and --save take the averages")
      ->option_text("DECAY")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--scale-rate", options.scale_rate,
                 "linear or sqrt: the rate grows with --batch, at most 32 times, from the one for --base-batch;\n"
                 "a larger one has a warm-up from the old one, of five epochs or a quarter of the run")
      ->option_text("RULE")
      ->check(CLI::IsMember({"linear", "sqrt"}));
  app.add_option("--base-batch", options.base_batch, "of --scale-rate; default: the workload's batch")
      ->option_text("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
}

CLI::App* add_train(CLI::App& app, Options& options) {
  auto* verb = app.add_subcommand("train", "train a workload, then test it");
  add_workload(*verb, options, false);
  add_data(*verb, options);
  add_form(*verb, options);
  add_tokenizer(*verb, options);
  verb->add_option("--epochs", options.epochs, "passes over the training set; default: the workload's")
      ->option_text("N")
      ->check(CLI::Range(1, 1 << 30));
  add_steps(*verb, options, "end after so many steps, whatever --epochs says");
  add_batch_or_auto(*verb, options);
  add_limit(*verb, options);
  add_pressure_limit(*verb, options);
  add_recipe(*verb, options);
  add_adaptive_batch(*verb, options);
  add_release(*verb, options);
  add_moments(*verb, options);
  add_weights(*verb, options);
  add_checkpointing(*verb, options);
  add_head(*verb, options);
  add_accumulation(*verb, options);
  add_precision(*verb, options,
                "f16 or bf16: activations, gradients and working copies of the weights in 16 bits, the weights\n"
                "themselves and all arithmetic in f32; f16 scales the loss and skips steps that overflow;\n"
                "default: f32");
  add_device_options(*verb, options, DeviceWish::together);
  add_loader_options(*verb, options);
  add_loading(*verb, options);
  add_ranks(*verb, options);
  verb->add_option("--load", options.load,
                   "begin a new run with these parameters (safetensors); --resume goes on with an old one")
      ->option_text("FILE");
  verb->add_option("--save", options.save,
                   "write the parameters at the end, also after Ctrl-C (safetensors); an older file stays\n"
                   "whole until the new one is complete; --checkpoint keeps what --resume needs")
      ->option_text("FILE");
  add_lora_training(*verb, options);
  add_lora_loading(*verb, options, "go on training these adapters instead of new ones, beside the network of --load");
  add_lora_saving(*verb, options);
  add_survival(*verb, options);
  add_shares(*verb, options);
  verb->add_option("--tensorboard", options.tensorboard,
                   "write loss, rate and test results as event files for `tensorboard --logdir DIR`")
      ->option_text("DIR");
  add_seeing(*verb, options);
  add_memory_snapshot(*verb, options);
  add_output_options(*verb, options);
  verb->footer(workload_table() +
               "\nExamples:\n"
               "  samebytes train digits\n"
               "  samebytes train cnn --data data/mnist --epochs 3 --save cnn.safetensors\n"
               "\nStatus: 0 done, 1 failed, 2 wrong usage, 130 interrupted (Ctrl-C ends after the step under way).");
  return verb;
}

CLI::App* add_eval(CLI::App& app, Options& options) {
  auto* verb = app.add_subcommand("eval", "test saved parameters on the test set");
  add_workload(*verb, options, false);
  verb->add_option("--load", options.load, "the parameters (safetensors)")->option_text("FILE")->required();
  add_lora_loading(*verb, options, "adapters that are added to them (safetensors, of train --lora-save or of PEFT)");
  add_data(*verb, options);
  add_form(*verb, options);
  add_tokenizer(*verb, options);
  add_steps(*verb, options, "end after so many batches");
  add_batch(*verb, options, "samples per batch; default: the workload's");
  add_precision(*verb, options, "f16 or bf16: activations and weights in 16 bits, arithmetic in f32; default: f32");
  add_device_options(*verb, options, DeviceWish::one);
  add_loader_options(*verb, options);
  add_output_options(*verb, options);
  verb->footer(workload_table() + "\nExample:\n  samebytes eval cnn --load cnn.safetensors --data data/mnist");
  return verb;
}

CLI::App* add_generate(CLI::App& app, Options& options) {
  auto* verb = app.add_subcommand("generate", "write text with a trained gpt");
  verb->add_option("--load", options.load, "the parameters (safetensors), of `train gpt` or as published")
      ->option_text("FILE")
      ->required();
  add_lora_loading(*verb, options, "adapters that are added to them (safetensors, of train --lora-save or of PEFT)");
  verb->add_option("--prompt", options.prompt, "text that it goes on from; default: a new line")->option_text("TEXT");
  verb->add_option("--tokens", options.tokens, "to write; default: 500")
      ->option_text("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  verb->add_option("--temperature", options.temperature,
                   "below 1 the likely tokens come more often, 0: always the most likely one; default: 0.8")
      ->option_text("X")
      ->check(CLI::NonNegativeNumber);
  verb->add_option("--top-k", options.top_k, "draw among the N most likely tokens; 0: among all; default: 0")
      ->option_text("N")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1} << 30));
  add_tokenizer(*verb, options);
  add_device_options(*verb, options, DeviceWish::one);
  verb->add_flag("--json", options.json, "the text, the number of tokens and the time as one line of JSON");
  verb->footer(
      "Example:\n"
      "  samebytes train gpt --data data/text/tinyshakespeare.txt --save gpt.safetensors\n"
      "  samebytes generate --load gpt.safetensors --prompt ROMEO: --tokens 300");
  return verb;
}

}  // namespace samebytes::cli

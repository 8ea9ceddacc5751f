// The verbs of the command: a table of them, and their functions, one file each. They print to the terminal, throw
// UsageError or an Error, and return the status.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace samebytes::cli {

struct VerbRow {
  Verb verb;
  std::string name;
  std::string about;
  int (*run)(const Options& options);
  bool lists_workloads;  // in its help
  std::string footer;    // of its help: examples, and what the exit status says
};

const std::vector<VerbRow>& verb_table();
const VerbRow& row_of(Verb verb);
std::vector<std::string> verb_names();
std::string footer_of(const VerbRow& row);  // with the list of workloads

int run_devices(const Options& options);
int run_train(const Options& options);
int run_eval(const Options& options);
int run_bench(const Options& options);
int run_generate(const Options& options);
int run_tune(const Options& options);
int run_profile(const Options& options);
int run_memory(const Options& options);
int run_doctor(const Options& options);
int run_sweep(const Options& options);
int run_estimate(const Options& options);
int run_run(const Options& options);
int run_inspect(const Options& options);
int run_new(const Options& options);
int run_convert(const Options& options);
int run_data(const Options& options);
int run_completion(const Options& options);
int run_man(const Options& options);
int run_finetune(const Options& options);
int run_chat(const Options& options);
int run_embed(const Options& options);
int run_warm(const Options& options);

}  // namespace samebytes::cli

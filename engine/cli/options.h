// What a user can say on the command line, after parsing and before anything is known about devices or data.
// An empty optional means: take the workload's default.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace samebytes::cli {

inline constexpr const char* kVersionNumber = "0.1.0";

enum class Verb : std::uint8_t {
  devices,
  train,
  eval,
  bench,
  generate,
  tune,
  profile,
  estimate,
  sweep,
  doctor,
  memory
};

// What a workload may be told about its data and its form. Each takes some of these (WorkloadEntry::takes).
struct WorkloadOptions {
  std::string data;                      // a folder or a file
  std::optional<std::string> size;       // nano, small, medium
  std::optional<std::int64_t> context;   // tokens in a window
  std::optional<std::string> tokenizer;  // a folder with vocab.json and merges.txt
  std::optional<std::string> name;       // one of the sets in a folder
};

// Of the verb memory, and of those that write the file it reads.
struct MemoryOptions {
  std::string snapshot;  // --memory-snapshot
  std::string file;
  std::string svg;
  int top = 10;
};

// Runs that survive (survive.h). Empty: not asked for.
struct SurviveOptions {
  std::string folder;                          // of checkpoints
  std::optional<std::string> every;            // "epoch", or a number of steps
  std::optional<int> keep;                     // files
  std::string resume;                          // "auto", or a file
  std::optional<std::string> on_device_error;  // stop, retry, cpu
};

struct DoctorOptions {
  std::string run;      // a log of train
  std::string profile;  // empty: none
};

// How train's loader follows what it measures, and where its workers run.
struct LoadingOptions {
  std::optional<int> most_slots;
  std::string cores = "all";  // efficiency, performance, or a list
};

// Which devices work, beside the wish itself (Options::device: a name, a comma list, or "all").
struct DeviceOptions {
  std::vector<int> split;  // --split-device: parts of one device by cores
  bool explain = false;    // the plan of a step as text, at the end
  bool fallback = false;   // another device runs what one cannot
};

// Of train: what is looked at beside the loss.
struct SeeingOptions {
  std::optional<std::int64_t> grad_norm;  // updates from one norm in the log to the next; 0: none
};

// Of train: a batch that grows with the gradient noise scale.
struct AdaptiveOptions {
  bool is_on = false;
  std::optional<std::int64_t> max_batch;
};

struct SweepOptions {
  std::vector<std::int64_t> batches = {1, 8, 32, 128};
  std::optional<double> target_loss;
  std::string plot;
};

// What a step keeps and how it is cut.
struct StepOptions {
  std::string checkpointing = "off";        // block, sqrt, or a number of blocks
  std::int64_t accumulate = 1;              // batches of an update
  std::optional<std::int64_t> micro_batch;  // samples of a piece of a batch
};

// How the product with the classes at the end of a model and its loss are made (head.h).
struct HeadOptions {
  static constexpr std::int64_t kAutomatic = -1;
  std::int64_t chunks = 1;
  bool is_late = false;  // the gradient of the weight at the end of the backward pass
  bool is_chunked() const { return chunks > 1 || chunks == kAutomatic; }
  std::string to_text() const {  // "4", "auto", "auto, late"
    return (chunks == kAutomatic ? "auto" : std::to_string(chunks)) + (is_late ? ", late" : "");
  }
};

// Adapters beside a frozen network (lora.h). Empty: not asked for.
struct AdapterOptions {
  std::optional<std::int64_t> rank;
  std::optional<double> alpha, dropout;
  std::vector<std::string> targets;
  std::string load, save;  // files with adapters alone
};

// How much memory a run may take (limit.h).
struct CoExecutionOptions {
  std::string host = "automatic";  // --host-execution
};

struct LimitOptions {
  bool automatic_batch = false;         // --batch auto
  std::optional<std::size_t> memory;    // --memory-limit
  std::vector<std::string> allowed;     // techniques that change results: moments, precision, pieces
  std::optional<std::size_t> pressure;  // --pressure-limit: of the process (relief.h)
  bool measures = false;                // of estimate
  double recompute = 0.05;              // share of a step's cost, EngineOptions::recompute
  bool rehearses = false;               // the engine of this run is a dry one
};

// Of train in several processes (ranks.h).
struct RankOptions {
  std::optional<double> timeout;  // seconds; 10 where nothing is said
  bool shard_state = false;       // each rank keeps its share of the optimizer's state
  bool gives_state = false;       // of a rank other than 0, to checkpoints that rank 0 writes
};

// A batch over several devices (shares.h).
struct ShareOptions {
  std::vector<double> shares;  // of each device; empty: measured
  bool rebalance = false;
  bool sync_batch_norm = false;
  std::optional<double> timeout;  // seconds
};

struct Options {
  Verb verb = Verb::devices;
  std::vector<std::string> workloads;  // one for train and eval, any number for bench
  WorkloadOptions form;
  std::optional<int> epochs;
  std::optional<std::int64_t> steps;
  std::optional<std::int64_t> batch;
  std::optional<double> rate;
  std::string optimizer = "adamw";
  std::optional<std::string> schedule;
  std::optional<std::int64_t> warmup;  // steps
  std::optional<double> gamma;         // of some schedules: what the rate is multiplied by
  std::optional<std::int64_t> every;   // ... and after how many steps, or tests of a plateau
  std::optional<double> weight_decay;
  std::optional<double> momentum;         // or beta1
  std::optional<double> clip_norm;        // 0: off
  std::optional<double> ema;              // decay of averaged weights
  std::optional<std::string> scale_rate;  // linear, sqrt
  std::optional<std::int64_t> base_batch;
  bool release_gradients = false;
  std::string moments = "f32";  // what optimizers remember: f32, bf16
  std::string weights = "f32";  // how weights are stored: f32, bf16
  StepOptions step;
  HeadOptions head;
  LimitOptions limit;
  CoExecutionOptions co_execution;
  AdapterOptions lora;
  std::string device;
  DeviceOptions devices;
  std::optional<int> workers;
  std::optional<int> slots;
  LoadingOptions loading;
  std::uint64_t seed = 1;
  int threads = 0;
  std::string mode = "both";  // of bench: train, infer or both
  bool fixed_batch = false;
  bool finds_largest_batch = false;
  int profile_wait = 0;    // of profile: steps before anything is recorded
  int profile_warmup = 5;  // recorded and thrown away
  std::string profile_by;  // kernel, op or layer; empty: kernel and layer
  std::string profile_sort = "time";
  int profile_top = 15;
  std::string trace;
  std::string html;
  std::string command_line;  // as it was typed
  MemoryOptions memory;
  bool serve = false;
  std::string prompt = "\n";
  std::int64_t tokens = 500;
  double temperature = 0.8;
  std::int64_t top_k = 0;
  std::string load;
  std::string save;
  std::string log;
  std::string tensorboard;
  SeeingOptions seeing;
  SurviveOptions survive;
  RankOptions ranks;
  ShareOptions shares;
  bool tune_rapid = false;
  std::optional<double> tune_seconds;
  std::vector<std::string> tune_only;  // gemm, conv, clblast
  bool tune_dry_run = false;
  bool tune_show = false;
  bool tune_reset = false;
  std::string precision = "f32";  // f16, bf16
  AdaptiveOptions adaptive;
  SweepOptions sweep;
  bool check_nan = false;
  bool json = false;
  bool quiet = false;
  DoctorOptions doctor;
  bool print_config = false;  // of verbs that take a run file (run_file.h)
};

// What parsing came to: options to run with, or a text to print (help, version) and the status to end with.
struct Parsed {
  std::optional<Options> options;
  std::string text;
  int status = 0;
  std::string note = {};  // a line for standard error before the run
};

// Never throws for what a user typed; never prints.
Parsed parse_options(int argc, char** argv);

}  // namespace samebytes::cli

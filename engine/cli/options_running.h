// Where a run works and what it leaves behind: the options of devices, loader, processes, checkpoints and output.
// Members first, then the row of each (option_row.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/option_row.h"

namespace samebytes::cli {

// Which devices work, beside Options::device (a name, a comma list, or "all").
struct DeviceOptions {
  std::vector<int> split;      // --split-device: parts of one device by cores
  bool fallback = false;       // another device runs what one cannot
  double stall_seconds = 300;  // EngineOptions::stall_seconds
  // What is printed of the plan of a step at the end: all, plan or passes.
  std::optional<std::string> explain;
};

// What the host does of a device's work: EngineOptions::host_execution.
struct CoExecutionOptions {
  std::string host = "automatic";  // --host-execution
};

// How train's loader follows what it measures, and where its workers run.
struct LoadingOptions {
  std::optional<int> most_slots;
  std::string cores = "all";  // efficiency, performance, or a list
};

// Of train in several processes (parallel.h).
struct RankOptions {
  std::optional<double> timeout;  // seconds; 10 without it
  bool shard_state = false;       // each rank keeps its share of the optimizer's state
  bool gives_state = false;       // of a rank other than 0, to checkpoints that rank 0 writes
};

// A batch over several devices (parallel.h).
struct ShareOptions {
  std::vector<double> shares;  // of each device; empty: measured
  bool rebalance = false;
  bool sync_batch_norm = false;
  std::optional<double> timeout;  // seconds
};

// Runs that survive (survive.h). Empty: not used.
struct SurviveOptions {
  std::string folder;                          // of checkpoints
  std::optional<std::string> every;            // "epoch", or a number of steps
  std::optional<int> keep;                     // files
  std::string resume;                          // "auto", or a file
  std::optional<std::string> on_device_error;  // stop, retry, cpu
};

// Of the verb memory, and of those that write the file it reads.
struct MemoryOptions {
  std::string snapshot;  // --memory-snapshot
  std::string file;
  std::string svg;
  int top = 10;
};

struct RunningOptions {
  std::string device;
  DeviceOptions devices;
  CoExecutionOptions co_execution;
  std::optional<int> workers;
  std::optional<int> slots;
  LoadingOptions loading;
  std::uint64_t seed = 1;
  int threads = 0;
  RankOptions ranks;
  ShareOptions shares;
  SurviveOptions survive;
  MemoryOptions memory;
  std::string log;
  std::string tensorboard;
  std::optional<std::int64_t> log_grad_norm;  // updates from one norm in the log to the next; 0: none
  bool check_nan = false;
  bool json = false;
  bool quiet = false;
  bool print_config = false;  // of verbs that take a run file (run_file.h)
};

inline std::string checkpoint_every_fault(const std::string& text) {
  const bool is_number =
      !text.empty() && text.size() < 16 && text[0] != '0' && text.find_first_not_of("0123456789") == std::string::npos;
  return is_number || text == "epoch" ? "" : "expected epoch or a number of steps, got " + text;
}

// clang-format off
template <class Row>
void describe_devices(Row& row, RunningOptions& o) {
  using enum Verb;
  constexpr Verbs kSeveral = train | profile | bench;
  const auto device = [&](Verbs verbs, const std::string& several) {
    row(o.device, {.flag = several.empty() ? "--device DEVICE" : "--device DEVICES", .group = group::device,
        .verbs = verbs,
        .help = "cpu:0, gpu:0, an index, a part of a name, cpu or gpu (see `samebytes devices`); " + several + "default: the best device found"});
  };
  device(train | profile, "a comma-separated list of devices works together; all: every device found; ");
  device(bench, "a comma-separated list of devices works together; all: measure each device in turn; ");
  device(eval | generate | tune | estimate | sweep | warm | kModelVerbs | kLanguageVerbs, "");
  row(o.devices.split, {.flag = "--split-device CORES", .group = group::device, .verbs = kSeveral,
      .check = whole(1, 4096),
      .help = "split one device into parts with these numbers of cores, such as 1,1, which work together; default: no "
              "split"});
  row(o.devices.explain, {.flag = "--explain [PART]", .group = group::device, .verbs = kSeveral | Verb::run,
      .choices = {"all", "plan", "passes"}, .alone = "all",
      .help = "print the plan of a step at the end. plan: each launch with its device, transfers and waits; passes: "
              "what each pass of the planner did; all: both, and the reason for each placement; --explain without a "
              "word is all"});
  row(o.devices.fallback, {.flag = "--fallback", .group = group::device, .verbs = kDeviceVerbs, .log = Log::if_given,
      .help = "let another device, if need be a CPU, run what a device cannot (a kernel that does not build, f64 "
              "without double), and count this in the summary; default: fail with an error"});
  row(o.devices.stall_seconds, {.flag = "--stall-seconds S", .group = group::device, .verbs = kDeviceVerbs,
      .check = number(0, 1e6),
      .help = "stop with an error that says what was pending if a device has not answered for this long; 0: wait for "
              "ever"});
  row(o.threads, {.flag = "--threads N", .group = group::device, .verbs = kDeviceVerbs, .check = whole(1, 4096),
      .log = Log::always, .help = "cores that a CPU device may use; default: all of them"});
  row(o.co_execution.host, {.flag = "--host-execution MODE", .group = group::device, .verbs = kDeviceVerbs,
      .choices = {"automatic", "queued", "off", "always"},
      .help = "automatic: run small launches on the host, over the same memory, if the measured costs of the device "
              "favour it; queued: the same, but always through the device's queue; off; always; the results are the "
              "same bytes"});
  row(o.seed, {.flag = "--seed N", .group = group::run, .verbs = kDeviceVerbs, .resume = Resume::must_agree,
      .log = Log::always, .help = "random seed; the same seed gives the same bytes"});
  row(o.workers, {.flag = "--workers N", .also = {"--num-workers"}, .group = group::loader,
      .verbs = train | eval | bench | profile | sweep | finetune, .check = whole(0, 1024), .log = Log::if_given,
      .help = "threads that prepare batches; 0: prepare them in the training loop; default: 1, more from 8 cores on"});
  row(o.slots, {.flag = "--slots N", .group = group::loader, .verbs = kWorkloadVerbs, .check = whole(1, 1024),
      .log = Log::if_given,
      .help = "batches held in memory; the device reads one while workers fill the others; default: 2"});
  row(o.loading.most_slots, {.flag = "--max-slots N", .group = group::loader, .verbs = train, .check = whole(1, 1024),
      .help = "add slots, up to N and 256 MB, while the loop waits for batches and more slots would help; the results "
              "stay the same; default: 8, or no growth with --slots, --memory-limit or --batch auto"});
  row(o.loading.cores, {.flag = "--loader-cores WHICH", .group = group::loader, .verbs = train,
      .help = "cores for the loader's workers: efficiency, performance, all, or a list such as 0,2-3; without "
              "--workers they also set the number of workers; all if the machine has one class of cores"});
}

template <class Row>
void describe_parallel(Row& row, RunningOptions& o) {
  using enum Verb;
  row(o.shares.shares, {.flag = "--shares N,N,...", .group = group::parallel, .verbs = train | bench,
      .check = at_least_zero(),
      .help = "share of the batch for each device, in any unit, such as 3,1, fixed for the run; default: measured with "
              "all devices at work before the first step, equal for identical devices"});
  row(o.shares.rebalance, {.flag = "--rebalance", .group = group::parallel, .verbs = train | bench,
      .help = "adjust the shares to the measured step times during the run, which is then not reproducible bit for "
              "bit"});
  row(o.shares.sync_batch_norm, {.flag = "--sync-batch-norm", .group = group::parallel, .verbs = train | bench,
      .help = "compute batch norm statistics over all shares, under mpirun over all processes; default: over each "
              "share"});
  row(o.shares.timeout, {.flag = "--device-timeout SECONDS", .group = group::parallel, .verbs = train | bench,
      .check = above_zero(),
      .help = "give up a device that has not answered for this long and for the time of 20 steps; default: 10"});
  row(o.ranks.timeout, {.flag = "--rank-timeout SECONDS", .group = group::parallel, .verbs = train,
      .check = number(2, 86400),
      .help = "under mpirun: treat a process as lost after this much silence and end the others; default: 10"});
  row(o.ranks.shard_state, {.flag = "--shard-state", .group = group::parallel, .verbs = train,
      .help = "under mpirun: each process keeps and updates only its share of the optimizer's state (ZeRO, stage 1)"});
}

template <class Row>
void describe_checkpoints(Row& row, RunningOptions& o) {
  using enum Verb;
  row(o.survive.folder, {.flag = "--checkpoint DIR", .group = group::checkpoint, .verbs = train | finetune,
      .writes = Writes::folder, .in_rehearsal = false,
      .help = "write the whole state of the run to this folder; --resume continues from it bit for bit, even after "
              "kill -9 in the middle of an epoch; Ctrl-C writes one more checkpoint"});
  row(o.survive.every, {.flag = "--checkpoint-every N|epoch", .group = group::checkpoint, .verbs = train | finetune,
      .check = checkpoint_every_fault, .in_rehearsal = false,
      .help = "write a checkpoint after each test (epoch) or after every N steps; default: epoch"});
  row(o.survive.keep, {.flag = "--keep N", .group = group::checkpoint, .verbs = train | finetune, .check = whole(0, 1 << 30),
      .needs = "--checkpoint", .in_rehearsal = false, .help = "keep the newest N checkpoints; 0: all; default: 3"});
  row(o.survive.resume, {.flag = "--resume auto|FILE", .group = group::checkpoint, .verbs = train | finetune,
      .in_rehearsal = false,
      .help = "auto: continue from the newest intact checkpoint in the --checkpoint folder, or start a new run if "
              "there is none; FILE: continue from this checkpoint"});
  row(o.survive.on_device_error, {.flag = "--on-device-error WHAT", .group = group::checkpoint, .verbs = train | finetune,
      .choices = {"stop", "retry", "cpu"}, .in_rehearsal = false,
      .help = "stop; retry: continue from the last checkpoint on the same device, at most 3 times; cpu: continue on "
              "the CPU; without --checkpoint, the state is kept in host memory; default: stop"});
}

template <class Row>
void describe_output(Row& row, RunningOptions& o) {
  using enum Verb;
  constexpr Verbs kRuns = train | eval | bench | finetune;
  row(o.log, {.flag = "--log FILE.jsonl", .group = group::output, .verbs = kRuns, .writes = Writes::file,
      .in_rehearsal = false, .help = "write one line of JSON for each step and each epoch during the run"});
  row(o.log_grad_norm, {.flag = "--log-grad-norm N", .group = group::output, .verbs = train,
      .check = whole(0, std::int64_t{1} << 40), .log = Log::if_given,
      .help = "log the global gradient norm before clipping every N updates; 0: never; default: 1 if --clip-norm "
              "computes it anyway and --memory-limit is not given, else 0, since it costs a pass"});
  row(o.tensorboard, {.flag = "--tensorboard DIR", .group = group::output, .verbs = train, .writes = Writes::folder,
      .in_rehearsal = false,
      .help = "write loss, rate and test results as event files for `tensorboard --logdir DIR`"});
  row(o.memory.snapshot, {.flag = "--memory-snapshot FILE.json", .group = group::output,
      .verbs = train | bench | profile, .writes = Writes::file,
      .help = "write a snapshot of memory use, for `samebytes memory FILE`"});
  row(o.check_nan, {.flag = "--check-nan", .group = group::output, .verbs = kRuns, .log = Log::always,
      .in_rehearsal = false,
      .help = "stop at the first NaN or infinity and name the op that produced it; runs and checks every op "
              "separately, so the run is several times slower"});
  const auto json = [&](Verbs verbs, const char* help) {
    row(o.json, {.flag = "--json", .group = group::output, .verbs = verbs, .help = help});
  };
  json(kRuns, "print the summary as one line of JSON, the last line of standard output");
  json(tune | kModelVerbs, "print the result as one line of JSON, the last line of standard output");
  json(profile, "print the tables as one line of JSON, the last line of standard output");
  json(sweep, "print the table and the advice as one line of JSON, the last line of standard output");
  json(estimate, "print the estimates as one line of JSON");
  json(generate, "print the text, the number of tokens and the time as one line of JSON");
  json(chat, "print each answer with its numbers of tokens and its time as one line of JSON");
  json(devices, "print the list as JSON");
  json(doctor, "print the findings as one line of JSON");
  json(memory, "print categories, peak and layers as one line of JSON; with --diff, the changes");
  row(o.quiet, {.flag = "--quiet", .group = group::output,
      .verbs = kRuns | tune | profile | sweep | chat | embed | warm,
      .help = "print only the result, no progress"});
  row(o.print_config, {.flag = "--print-config", .group = group::output, .verbs = kWorkloadVerbs, .in_run_file = false,
      .help = "print the options as a run file, which can replace WORKLOAD, and exit without running"});
}
// clang-format on

}  // namespace samebytes::cli

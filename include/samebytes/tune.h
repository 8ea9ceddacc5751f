// The tuner: finds tiles, splits, providers and CLBlast's parameters for a device, and keeps them in the device's
// store, a JSON file that people can read and edit. `samebytes tune` runs it. Nothing is ever tuned unasked, and no run
// times anything: an engine reads the store when it opens (EngineOptions::tuning), and the hash of what it read
// (Engine::tuning) says which choices gave which bytes.
//
// The store lies in $SAMEBYTES_TUNING, else $XDG_CACHE_HOME/samebytes, else ~/.cache/samebytes, one file for each
// device, driver and kernel personality. SAMEBYTES_TUNING=off means the built-in choices, and no store.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace samebytes {

struct TuneProgress {
  std::string what;     // "gemm: GEMM_MR = 12"
  double fraction = 0;  // of the work or of the time, whichever is further on; 0 to 1
  double seconds = 0;   // since the start
};

struct TuneOptions {
  std::string device = {};             // as EngineOptions::device
  double seconds = 180;                // time box: no candidate is begun after it
  bool rapid = false;                  // the shapes and candidates that matter most; nothing that compiles for long
  std::vector<std::string> only = {};  // of gemm, conv, clblast; empty: all of them
  bool dry_run = false;                // measure, but leave the store as it is
  // Called before each candidate and between measurements; false ends the search and keeps what was found.
  std::function<bool(const TuneProgress&)> progress = {};
};

// One problem that was timed, with built-in and with found choices.
struct TunedProblem {
  std::string group;   // gemm, conv, clblast
  std::string kernel;  // "conv_bwd_filter"
  std::string shape;   // "16x32x32x16 3x3 to 16"
  double built_in_ms = 0;
  double best_ms = 0;
  double gain = 1;  // median of paired ratios, built-in to best
  int tried = 0;    // candidates that were to run this problem
  int refused = 0;  // of them: wrong results, or did not build
};

// One entry of the table of choices.
struct TuningChoice {
  std::string key;       // its place in the store: "tiles.f32.gemm.GEMM_MR"
  std::string value;     // what holds
  std::string built_in;  // what holds without a store
  std::string legal;     // "a multiple of 2 from 2 to 16"
};

struct TuneReport {
  std::string device;  // "cpu:0 pthread-..."
  std::string file;    // the store
  std::string hash;    // of its choices now
  double seconds = 0;
  bool is_interrupted = false;
  bool is_written = false;
  int tried = 0, wrong = 0, not_built = 0;  // candidates
  std::vector<std::string> refusals;        // one line for each candidate that was wrong or did not build
  std::vector<TunedProblem> problems;
  std::vector<TuningChoice> found;  // that differ from the built-in ones
};

// Searches and writes the store, after each group and atomically. Groups that are not asked for keep what the store
// says of them. Blocks; makes engines of its own, so other engines of the process should rest meanwhile. Throws as
// Engine does, ArgumentError for an unknown group, IoError where the store cannot be written.
TuneReport tune(const TuneOptions& options = {});

// Where the store of a device lies, whether or not there is one. Empty where there is no place for it.
std::string tuning_file(const std::string& device = {});
// Every choice there is for a device, as an engine would open with now.
std::vector<TuningChoice> tuning_table(const std::string& device = {});
// Removes the store of a device; false where there is none.
bool reset_tuning(const std::string& device = {});

}  // namespace samebytes

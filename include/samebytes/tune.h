// The tuner: finds tiles, splits, providers and CLBlast's parameters for a device, and keeps them in the device's
// store, a JSON file that people can read and edit. `samebytes tune` runs it. Nothing else tunes or times kernels: an
// engine reads the store when it opens (EngineOptions::tuning), and the hash of what it read (Engine::tuning)
// identifies the choices behind its results.
//
// The store is in $SAMEBYTES_TUNING if set, otherwise in $XDG_CACHE_HOME/samebytes or ~/.cache/samebytes, one file per
// device, driver and kernel personality. SAMEBYTES_TUNING=off selects the built-in choices and no store.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace samebytes {

struct TuneProgress {
  std::string what;     // "gemm: GEMM_MR = 12"
  double fraction = 0;  // the larger of work done and time used; 0 to 1
  double seconds = 0;   // since the start
};

struct TuneOptions {
  std::string device = {};             // as EngineOptions::device
  double seconds = 180;                // time limit: starts no candidate after it
  bool rapid = false;                  // only the most important shapes and candidates; nothing that compiles slowly
  std::vector<std::string> only = {};  // a subset of gemm, conv, clblast; empty: all
  bool dry_run = false;                // measures without writing the store
  // Called before each candidate and between measurements; false ends the search and keeps what was found.
  std::function<bool(const TuneProgress&)> progress = {};
};

// A problem that was timed with built-in and with found choices.
struct TunedProblem {
  std::string group;   // gemm, conv, clblast
  std::string kernel;  // "conv_bwd_filter"
  std::string shape;   // "16x32x32x16 3x3 to 16"
  double built_in_ms = 0;
  double best_ms = 0;
  double gain = 1;  // median of paired ratios, built-in to best
  int tried = 0;    // candidates tried on this problem
  int refused = 0;  // of these: wrong results or build failures
};

// One entry of the table of choices.
struct TuningChoice {
  std::string key;       // its key in the store: "tiles.f32.gemm.GEMM_MR"
  std::string value;     // the current value
  std::string built_in;  // the value without a store
  std::string legal;     // "a multiple of 2 from 2 to 16"
};

struct TuneReport {
  std::string device;  // "cpu:0 pthread-..."
  std::string file;    // the store
  std::string hash;    // of its current choices
  double seconds = 0;
  bool is_interrupted = false;
  bool is_written = false;
  int tried = 0, wrong = 0, not_built = 0;  // candidates
  std::vector<std::string> refusals;        // one line per candidate that was wrong or did not build
  std::vector<TunedProblem> problems;
  std::vector<TuningChoice> found;  // choices that differ from the built-in ones
};

// Searches, and writes the store atomically after each group. Groups that are not selected keep their entries. Blocks;
// it makes its own engines, so the process's other engines should be idle. Throws as Engine does, ArgumentError for an
// unknown group, IoError if the store cannot be written.
TuneReport tune(const TuneOptions& options = {});
std::string tune_text(const TuneReport& report);  // a table of the problems, and what was found
std::string tune_json(const TuneReport& report);  // one line, without its end

// The path of a device's store, which need not exist. Empty if no folder is available for it.
std::string tuning_file(const std::string& device = {});
// All choices for a device, with the values that a new engine would use.
std::vector<TuningChoice> tuning_table(const std::string& device = {});
// Both for people and as one line of JSON.
std::string tuning_text(const std::string& file, const std::vector<TuningChoice>& choices);
std::string tuning_json(const std::string& file, const std::vector<TuningChoice>& choices);
// Removes the store of a device; returns false if it does not exist.
bool reset_tuning(const std::string& device = {});

}  // namespace samebytes

// What is wrong with a training, read from the log that it left behind: divergence, overfitting, exploding or vanishing
// gradients, a loader that is too slow, memory, device errors ... `samebytes doctor` prints it.
//   for (const doctor::Finding& finding : doctor::diagnose("run.jsonl").findings) ...
// The log is that of train::RunLog ("train --log FILE.jsonl"). No device is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace samebytes::doctor {

enum class Severity : std::uint8_t { advice, serious, failure };
const char* name_of(Severity severity);

struct Action {
  std::string options;  // "--batch 32" of `samebytes train`, or a whole command "samebytes tune"; empty: see text
  std::string text;     // what it does here
};

struct Finding {
  std::string rule;    // "not_finite"
  std::string source;  // the rows of the feature list that the rule is from
  Severity severity = Severity::advice;
  double weight = 0;  // the order among findings of one severity
  std::string seen;   // figures ...
  std::string file;   // ... and where they stand
  int line = 0;       // from 1; 0: the whole file
  std::string why;
  std::vector<Action> actions;
};

struct Diagnosis {
  std::vector<Finding> findings = {};  // the most severe first; empty: no rule had anything to say
  std::size_t rules = 0;               // how many looked
  std::string heading = {};            // the run in a line: workload, batch, precision, optimizer, device, steps
  std::string workload = {};
  std::string run = {}, profile = {};  // the files
};

// `profile` is a file with the output of `samebytes profile --json`; empty: without. Of a log with several runs or
// folds the last one counts. Throws IoError for a file that cannot be read, is no such log or profile, or has a broken
// line before its last one; the last line of a run that was killed may be cut.
Diagnosis diagnose(const std::string& log, const std::string& profile = {});

std::string to_text(const Diagnosis& diagnosis);  // a numbered list: what was seen, why it matters, what to do
std::string to_json(const Diagnosis& diagnosis);  // one line, without its end

}  // namespace samebytes::doctor

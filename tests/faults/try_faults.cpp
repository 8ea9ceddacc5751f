// Lets every call of OpenCL and of the system that the command makes fail, one at a time: its first, its second, one in
// the middle and its last one. What a run makes of it is one of
//   said      the same result, or a recovery, and a line says what was overcome
//   same      the same result: nothing hung on that call
//   clean     status 1 and one line that names the call, its status and the device, of a launch also the kernel; of a
//             call of the system the file or what it was for
//   bad       anything else: another result, a signal, a hang, a line that names nothing
//   unmet     the run made fewer calls this time
// try_faults [--share K/N] [--run NAME] [--call NAME] [--table FILE] [--page FILE] [--planted]; the last line counts,
// the status is 1 if any is bad. --page puts the table into a document, in place of the one that is there. --planted
// tries one launch that is left out without a word, as an unchecked status would: that must be bad.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "support/process.h"

namespace {

using samebytes::testing::built_program;
using samebytes::testing::Outcome;
using samebytes::testing::run_program;
namespace fs = std::filesystem;

constexpr const char* kMostSeconds = "60";
constexpr const char* kStall = "8";

std::string device_name;

struct Run {
  std::string name;
  std::vector<std::string> words;    // @ stands for the folder of the trial
  std::vector<std::string> results;  // files that must be the same
  std::map<std::string, std::string> environment = {};
  int ranks = 1;
};

struct Trial {
  std::size_t run;
  std::string fault, call;
};

struct Reference {
  std::map<std::string, long> calls;
  std::string result;
};

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// What must be the same: the files, or the words of the output that are no times.
std::string result_of(const Run& run, const fs::path& folder, const std::string& output) {
  std::string result;
  for (const std::string& name : run.results) result += text_of(folder / name) + "|";
  if (!run.results.empty()) return result;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);)
    if (line.find("test accuracy") != std::string::npos || run.name == "generate") result += line + "\n";
  return result;
}

std::vector<Run> all_runs(const fs::path& prepared) {
  const std::string state = (prepared / "state").string(), net = (prepared / "net.safetensors").string();
  const std::string gpt = (prepared / "gpt.safetensors").string();
  const std::vector<std::string> train{"train", "digits", "--steps", "8", "--batch", "32", "--quiet"};
  const auto with = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::vector<std::string> saves{"--save", "@/net.safetensors"};
  const std::map<std::string, std::string> separate{{"SAMEBYTES_CONTEXTS", "separate"}};
  return {
      {"train",
       with(train, with(saves, {"--checkpoint", "@/state", "--checkpoint-every", "4", "--log", "@/log.jsonl"})),
       {"net.safetensors"}},
      {"resume", with(train, with(saves, {"--checkpoint", "@/state", "--resume", "auto"})), {"net.safetensors"}},
      {"eval", {"eval", "digits", "--load", net}, {}},
      {"bench", {"bench", "mlp", "--steps", "3", "--batch", "8"}, {}},
      {"generate", {"generate", "--load", gpt, "--prompt", "to be", "--tokens", "4"}, {}},
      {"two contexts", with(train, with(saves, {"--split-device", "1,1"})), {"net.safetensors"}, separate},
      {"two devices", with(train, with(saves, {"--split-device", "1,1"})), {"net.safetensors"}},
      {"copies", with(train, saves), {"net.safetensors"}, {{"SAMEBYTES_MEMORY", "copy"}}},
      {"two ranks", with(train, saves), {"net.safetensors"}, {}, 2},
  };
}

Outcome start(const Run& run, const fs::path& folder, const fs::path& prepared,
              std::map<std::string, std::string> environment) {
  fs::create_directories(folder);
  if (run.name == "resume") fs::copy(prepared / "state", folder / "state", fs::copy_options::recursive);
  std::vector<std::string> words;
  std::string assignments;
  for (const auto& [name, value] : run.environment) environment[name] = value;
  environment["LD_PRELOAD"] = built_program("libfaults_preload.so");
  // The variables reach the command alone, neither timeout nor mpirun.
  words = {"timeout", "-s", "KILL", kMostSeconds};
  if (run.ranks > 1)
    for (const char* word : {"mpirun", "--oversubscribe", "--allow-run-as-root", "-n", "2"}) words.emplace_back(word);
  words.emplace_back("env");
  for (const auto& [name, value] : environment) words.push_back(name + "=" + value);
  words.push_back(built_program("samebytes"));
  for (std::string word : run.words) {
    if (const auto at = word.find('@'); at != std::string::npos) word.replace(at, 1, folder.string());
    words.push_back(word);
  }
  for (const char* word : {"--stall-seconds", kStall}) words.emplace_back(word);
  return run_program(words);
}

std::map<std::string, long> read_counts(const fs::path& path) {
  std::map<std::string, long> counts;
  std::ifstream file(path);
  std::string name;
  for (long count = 0; file >> name >> count;) counts[name] = std::max(counts[name], count);
  return counts;
}

// The kinds of faults of a call, besides an error.
std::vector<std::string> kinds_of(const std::string& call) {
  if (call == "clWaitForEvents") return {"error", "lost"};
  if (call == "clEnqueueNDRangeKernel") return {"error", "negative", "silent", "slow"};
  if (call == "clEnqueueMarkerWithWaitList" || call == "clFinish") return {"error", "lost"};
  if (call == "clSetEventCallback") return {"error", "late", "silent"};
  if (call == "clock_gettime") return {"jump"};
  return {"error"};
}

std::string verdict_of(const Run& run, const Trial& trial, const Outcome& outcome, const std::string& result,
                       const std::string& expected) {
  const std::string& text = outcome.output;
  const auto says = [&](const std::string& word) { return text.find(word) != std::string::npos; };
  if (says("terminate called") || says("pure virtual") || says("Assertion")) return "bad";
  const bool is_said = says("recovered:") || says("the step is made again") || says("passed over");
  if (outcome.status == 0) {
    if (result != expected) return says("the step is made again") ? "said" : "bad";
    return is_said ? "said" : "same";
  }
  const bool is_opencl = trial.call.rfind("cl", 0) == 0;
  const bool has_line = says("samebytes: ");
  const bool finds_devices = trial.call.rfind("clGetPlatform", 0) == 0 || trial.call == "clGetDeviceIDs" ||
                             trial.call == "clGetDeviceInfo" || trial.call == "clCreateSubDevices";
  const bool is_launch = trial.call == "clSetKernelArg" || trial.call == "clSetKernelArgSVMPointer" ||
                         trial.call == "clCreateKernel" || trial.call == "clEnqueueNDRangeKernel";
  const bool has_place = (finds_devices || says(device_name)) && (!is_launch || says("kernel "));
  const bool names_call = says(trial.call) && says("CL_") && has_place;
  const bool names =
      is_opencl ? names_call || says("stall_seconds") || (says("the launch failed on") && has_place) : says(": ");
  if (run.ranks > 1) return has_line && names ? "clean" : "bad";
  return outcome.status == 1 && has_line && names ? "clean" : "bad";
}

struct Table {
  std::map<std::string, std::map<std::string, int>> rows;  // by call
  std::vector<std::string> bad;
};

std::string to_markdown(const Table& table) {
  std::ostringstream text;
  text << "| call | tried | recovered and said | same result | clean error | bad |\n|---|---|---|---|---|---|\n";
  std::map<std::string, int> all;
  const auto row = [&](const std::string& name, std::map<std::string, int> counts) {
    const int tried = counts["said"] + counts["same"] + counts["clean"] + counts["bad"];
    text << "| " << name << " | " << tried << " | " << counts["said"] << " | " << counts["same"] << " | "
         << counts["clean"] << " | " << counts["bad"] << " |\n";
  };
  for (const auto& [name, counts] : table.rows) {
    row("`" + name + "`", counts);
    for (const auto& [verdict, count] : counts) all[verdict] += count;
  }
  row("all", all);
  return text.str();
}

// Puts the table where the page has one, else at its end.
void write_page(const std::string& path, const std::string& table) {
  std::istringstream lines(text_of(path));
  std::string page;
  bool is_in = false, is_written = false;
  for (std::string line; std::getline(lines, line);) {
    is_in = line.rfind("| call | tried", 0) == 0 || (is_in && line.rfind('|', 0) == 0);
    if (!is_in) page += line + "\n";
    if (is_in && !is_written) page += table;
    is_written = is_written || is_in;
  }
  if (!is_written) page += "\n" + table;
  std::ofstream(path) << page;
}

std::string first_device() {
  std::istringstream words(run_program({built_program("samebytes"), "devices", "--json"}).output);
  const std::string text = words.str(), key = "\"name\":\"";
  const std::size_t begin = text.find(key);
  return begin == std::string::npos
             ? ""
             : text.substr(begin + key.size(), text.find('"', begin + key.size()) - begin - key.size());
}

}  // namespace

int main(int argc, char** argv) {
  std::string wanted_run, wanted_call, table_file, page;
  bool is_planted = false;
  unsigned long part = 0, parts = 1;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--planted") {
      is_planted = true;
      wanted_run = "train";
      --i;
      continue;
    }
    if (flag == "--page") page = value;
    if (flag == "--run") wanted_run = value;
    if (flag == "--call") wanted_call = value;
    if (flag == "--table") table_file = value;
    if (flag == "--share") {
      part = std::strtoul(value.c_str(), nullptr, 10);
      parts = std::strtoul(value.c_str() + value.find('/') + 1, nullptr, 10);
    }
  }
  const fs::path work = samebytes::testing::temporary_path("faults"), prepared = work / "prepared";
  fs::create_directories(prepared);
  const std::string command = built_program("samebytes");
  const auto prepare = [&](const std::vector<std::string>& words) {
    std::vector<std::string> all{command, "train"};
    all.insert(all.end(), words.begin(), words.end());
    const Outcome outcome = run_program(all);
    if (outcome.status != 0) std::cerr << "try_faults: cannot prepare:\n" << outcome.output;
    return outcome.status == 0;
  };
  const std::string corpus = (prepared / "text.txt").string();
  {
    std::ofstream out(corpus);
    for (int i = 0; i < 200; ++i) out << "to be or not to be, line " << i << "\n";
  }
  if (!prepare({"digits", "--steps", "8", "--batch", "32", "--quiet", "--checkpoint", (prepared / "state").string(),
                "--checkpoint-every", "4", "--keep", "0", "--save", (prepared / "net.safetensors").string()}) ||
      !prepare({"gpt", "--data", corpus, "--context", "16", "--steps", "2", "--batch", "2", "--quiet", "--save",
                (prepared / "gpt.safetensors").string()}))
    return 1;
  fs::remove(prepared / "state" / "checkpoint-000000008.safetensors");  // as if the run had ended in its middle
  device_name = first_device();
  const std::vector<Run> runs = all_runs(prepared);
  std::vector<Reference> references(runs.size());
  std::vector<Trial> trials;
  for (std::size_t r = 0; r < runs.size(); ++r) {
    if (!wanted_run.empty() && runs[r].name != wanted_run) continue;
    const fs::path folder = work / ("reference" + std::to_string(r)), counts = work / ("counts" + std::to_string(r));
    start(runs[r], work / ("warm" + std::to_string(r)), prepared, {});  // builds kernels, measures contexts
    const Outcome whole = start(runs[r], folder, prepared, {{"SAMEBYTES_FAULTS_COUNT", counts.string()}});
    if (whole.status != 0) {
      std::cerr << "try_faults: " << runs[r].name << " fails without a fault:\n" << whole.output;
      return 1;
    }
    references[r] = {read_counts(counts), result_of(runs[r], folder, whole.output)};
    if (is_planted) {
      const long launches = references[r].calls["clEnqueueNDRangeKernel"];
      trials.push_back({r, "planted clEnqueueNDRangeKernel " + std::to_string(launches / 2), "clEnqueueNDRangeKernel"});
      continue;
    }
    for (const auto& [call, count] : references[r].calls) {
      if (!wanted_call.empty() && call != wanted_call) continue;
      std::set<long> numbers{1, 2, (count + 1) / 2, count};
      for (const long number : numbers)
        for (const std::string& kind : kinds_of(call)) {
          if (number < 1 || number > count) continue;
          std::string fault = kind + " " + call + " " + std::to_string(number);
          if (kind == "slow") fault += " us=200";
          if (kind == "late") fault += " us=3000";
          trials.push_back({r, fault, call});
        }
    }
  }
  std::vector<Trial> chosen;
  for (const Trial& trial : trials)
    if (std::hash<std::string>{}(trial.fault + runs[trial.run].name) % parts == part) chosen.push_back(trial);
  Table table;
  std::mutex mutex;
  std::atomic<std::size_t> next{0};
  const auto work_off = [&] {
    for (std::size_t i = next++; i < chosen.size(); i = next++) {
      const Trial& trial = chosen[i];
      const Run& run = runs[trial.run];
      const fs::path folder = work / ("trial" + std::to_string(i)), seen = work / ("seen" + std::to_string(i));
      const Outcome outcome =
          start(run, folder, prepared, {{"SAMEBYTES_FAULTS", trial.fault}, {"SAMEBYTES_FAULTS_SEEN", seen.string()}});
      const std::string verdict =
          fs::exists(seen)
              ? verdict_of(run, trial, outcome, result_of(run, folder, outcome.output), references[trial.run].result)
              : "unmet";
      std::error_code ignored;
      fs::remove_all(folder, ignored);
      fs::remove(seen, ignored);
      const std::lock_guard lock(mutex);
      ++table.rows[trial.call][verdict];
      if (verdict != "bad") continue;
      std::cout << "bad: " << run.name << ", " << trial.fault << ": status " << outcome.status << "\n"
                << outcome.output.substr(outcome.output.size() > 600 ? outcome.output.size() - 600 : 0) << std::endl;
      table.bad.push_back(trial.fault);
    }
  };
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) workers.emplace_back(work_off);
  for (std::thread& worker : workers) worker.join();
  std::error_code ignored;
  fs::remove_all(work, ignored);
  const std::string text = to_markdown(table);
  if (!table_file.empty()) std::ofstream(table_file) << text;
  if (!page.empty()) write_page(page, text);
  std::cout << text << chosen.size() << " faults, " << table.bad.size() << " bad\n";
  return table.bad.empty() ? 0 : 1;
}

// Lets every call of OpenCL and of the system that the command makes fail, one at a time: its first, its second, one in
// the middle and its last one. What a run makes of it is one of
//   said      the same result, or a recovery, and a line says what was overcome
//   same      the same result: nothing hung on that call
//   clean     status 1 and one line that names the call, its status and the device, of a launch also the kernel; of a
//             call of the system the file or what it was for
//   bad       anything else: another result, a signal, a hang, a line that names nothing
//   unmet     the run made fewer calls than that in each of five tries, the last ones at earlier calls
// `try_faults --help` lists the options. As many processes run at once as there are cores, each in a folder of its own.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <stdexcept>
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
constexpr const char* kStall = "4";
constexpr int kMostAttempts = 5;

constexpr const char* kUsage =
    "try_faults lets every call of OpenCL and of the system that the command makes fail, one in each run.\n"
    "Its last line counts, and its status is 1 if any verdict is bad.\n"
    "  --quarter WORD   try the quarter of each run's faults that WORD puts first, such as a commit's hash\n"
    "  --run NAME       try the faults of one run alone, such as train or 'two ranks'\n"
    "  --call NAME      try the faults of one call alone\n"
    "  --page FILE      put the table into a document, in place of the one that is there\n"
    "  --planted        try one launch that is left out without a word, as an unchecked status would: must be bad\n"
    "  --help           print this\n";

std::string device_name;

struct Run {
  std::string name;
  std::vector<std::string> words;    // @ stands for the folder of the trial
  std::vector<std::string> results;  // files that must be the same
  std::map<std::string, std::string> environment = {};
  int ranks = 1;
};

struct Trial {
  const Run* run;
  std::string kind, call;
  long number;      // of the call, from 1
  std::string key;  // says which call, not by its number: runs do not make equally many

  std::string fault() const {  // as faults_preload.cpp reads it
    std::string text = kind + " " + call + " " + std::to_string(number);
    if (kind == "slow") text += " us=200";
    if (kind == "late") text += " us=3000";
    return text;
  }
};

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

constexpr const char* kOutput = "output";  // a result: the standard output, apart from what is said beside it

// What must be the same: the files, or the words of the output that are no times.
std::string result_of(const Run& run, const fs::path& folder, const std::string& output) {
  std::string result;
  for (const std::string& name : run.results) result += text_of(folder / name) + "|";
  if (!run.results.empty()) return result;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);)
    if (line.find("test accuracy") != std::string::npos) result += line + "\n";
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
      {"generate", {"generate", "--load", gpt, "--prompt", "to be", "--tokens", "4"}, {kOutput}},
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
  if (run.results == std::vector<std::string>{kOutput})
    for (const std::string& word :
         {std::string("sh"), std::string("-c"), std::string("exec \"$@\" >\"$0\""), (folder / kOutput).string()})
      words.push_back(word);
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
  const bool names = is_opencl ? names_call || says("stall_seconds") ||
                                     ((says("the launch failed on") || says("has not answered for")) && has_place)
                               : says(": ");
  if (run.ranks > 1) return has_line && names ? "clean" : "bad";
  return outcome.status == 1 && has_line && names ? "clean" : "bad";
}

using Rows = std::map<std::string, std::map<std::string, int>>;  // verdicts by call

std::string to_markdown(const Rows& rows) {
  std::ostringstream text;
  text << "| call | tried | recovered and said | same result | clean error | bad | not met "
          "|\n|---|---|---|---|---|---|---|\n";
  std::map<std::string, int> all;
  const auto row = [&](const std::string& name, std::map<std::string, int> counts) {
    const int tried = counts["said"] + counts["same"] + counts["clean"] + counts["bad"];
    text << "| " << name << " | " << tried << " | " << counts["said"] << " | " << counts["same"] << " | "
         << counts["clean"] << " | " << counts["bad"] << " | " << counts["unmet"] << " |\n";
  };
  for (const auto& [name, counts] : rows) {
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

struct Options {
  std::string run, call, quarter, page;
  bool is_planted = false, is_help = false;
};

// Throws std::invalid_argument, which names the word that is none of its own.
Options options_of(const std::vector<std::string>& words) {
  Options options;
  const std::map<std::string, std::string*> texts{
      {"--run", &options.run}, {"--call", &options.call}, {"--quarter", &options.quarter}, {"--page", &options.page}};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& flag = words[i];
    if (flag == "--help") {
      options.is_help = true;
    } else if (flag == "--planted") {
      options.is_planted = true;
      options.run = "train";
    } else if (texts.count(flag) == 0) {
      throw std::invalid_argument("unknown option " + flag + "; see --help");
    } else if (++i == words.size()) {
      throw std::invalid_argument(flag + " needs a value");
    } else {
      *texts.at(flag) = words[i];
    }
  }
  return options;
}

// Calls f(0) to f(n - 1), as many at once as there are cores.
void for_each_at_once(std::size_t n, const std::function<void(std::size_t)>& f) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i)
    workers.emplace_back([&] {
      for (std::size_t k = next++; k < n; k = next++) f(k);
    });
  for (std::thread& worker : workers) worker.join();
}

std::vector<Trial> trials_of(const Run& run, const std::map<std::string, long>& calls, const Options& options) {
  if (options.is_planted) {
    const std::string call = "clEnqueueNDRangeKernel";
    return {{&run, "planted", call, calls.at(call) / 2, "planted"}};
  }
  std::vector<Trial> trials;
  for (const auto& [call, count] : calls) {
    if (!options.call.empty() && call != options.call) continue;
    std::set<long> numbers;
    for (const auto& [which, number] : std::vector<std::pair<std::string, long>>{
             {"first", 1}, {"second", 2}, {"middle", (count + 1) / 2}, {"last", count}}) {
      if (number < 1 || number > count || !numbers.insert(number).second) continue;
      for (const std::string& kind : kinds_of(call))
        trials.push_back({&run, kind, call, number, run.name + ": " + kind + ", " + which + " " + call});
    }
  }
  std::sort(trials.begin(), trials.end(), [&](const Trial& a, const Trial& b) {
    return std::hash<std::string>{}(a.key + options.quarter) < std::hash<std::string>{}(b.key + options.quarter);
  });
  if (!options.quarter.empty()) trials.resize((trials.size() + 3) / 4);
  return trials;
}

// Networks and a state that the runs begin with; empty if all is well, else what went wrong.
std::string prepare(const fs::path& prepared) {
  const std::string corpus = (prepared / "text.txt").string();
  {
    std::ofstream out(corpus);
    for (int i = 0; i < 200; ++i) out << "to be or not to be, line " << i << "\n";
  }
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"digits", "--steps", "8", "--batch", "32", "--quiet", "--checkpoint", (prepared / "state").string(),
            "--checkpoint-every", "4", "--keep", "0", "--save", (prepared / "net.safetensors").string()},
           {"gpt", "--data", corpus, "--context", "16", "--steps", "2", "--batch", "2", "--quiet", "--save",
            (prepared / "gpt.safetensors").string()}}) {
    std::vector<std::string> all{built_program("samebytes"), "train"};
    all.insert(all.end(), words.begin(), words.end());
    if (const Outcome outcome = run_program(all); outcome.status != 0) return "cannot prepare:\n" + outcome.output;
  }
  fs::remove(prepared / "state" / "checkpoint-000000008.safetensors");  // as if the run had ended in its middle
  return "";
}

}  // namespace

int main(int argc, char** argv) {
  const fs::path work = samebytes::testing::temporary_path("faults"), prepared = work / "prepared";
  const auto fail = [&](const std::string& why) {
    std::cerr << "try_faults: " << why << "\n";
    fs::remove_all(work);
    return 1;
  };
  Options options;
  try {
    options = options_of({argv + 1, argv + argc});
  } catch (const std::invalid_argument& error) {
    return fail(error.what());
  }
  if (options.is_help) {
    std::cout << kUsage;
    return 0;
  }
  fs::create_directories(prepared);
  if (const std::string why = prepare(prepared); !why.empty()) return fail(why);
  device_name = first_device();
  std::mutex mutex;  // of what both loops write, and of the output
  std::vector<Run> runs = all_runs(prepared);
  std::erase_if(runs, [&](const Run& run) { return !options.run.empty() && run.name != options.run; });
  if (runs.empty()) return fail("there is no run " + options.run);

  // What each run ends with undisturbed, and how often it makes each call then.
  std::map<const Run*, std::string> expected;
  std::vector<Trial> trials;
  std::string trouble;
  for_each_at_once(runs.size(), [&](std::size_t i) {
    const Run& run = runs[i];
    const fs::path folder = work / ("whole" + std::to_string(i)), counts = work / ("counts" + std::to_string(i));
    start(run, folder / "warm", prepared, {});  // builds kernels, measures contexts
    const Outcome whole = start(run, folder / "reference", prepared, {{"SAMEBYTES_FAULTS_COUNT", counts.string()}});
    const std::lock_guard lock(mutex);
    if (whole.status != 0) trouble += run.name + " fails without a fault:\n" + whole.output;
    expected[&run] = result_of(run, folder / "reference", whole.output);
    for (Trial& trial : trials_of(run, read_counts(counts), options)) trials.push_back(std::move(trial));
    fs::remove_all(folder);
  });
  if (!trouble.empty()) return fail(trouble);
  Rows rows;
  for_each_at_once(trials.size(), [&](std::size_t i) {
    Trial trial = trials[i];
    const Run& run = *trial.run;
    const fs::path folder = work / ("trial" + std::to_string(i)), seen = work / ("seen" + std::to_string(i));
    std::string verdict = "unmet";
    Outcome outcome;
    // How often some calls are made depends on who waits for whom, so the last one of the undisturbed run may not come.
    for (int attempt = 0; attempt < kMostAttempts && verdict == "unmet"; ++attempt) {
      if (attempt > 0) trial.number = std::max(1L, trial.number * 3 / 4);
      outcome =
          start(run, folder, prepared, {{"SAMEBYTES_FAULTS", trial.fault()}, {"SAMEBYTES_FAULTS_SEEN", seen.string()}});
      if (fs::exists(seen))
        verdict = verdict_of(run, trial, outcome, result_of(run, folder, outcome.output), expected.at(&run));
      std::error_code ignored;
      fs::remove_all(folder, ignored);
      fs::remove(seen, ignored);
    }
    const std::lock_guard lock(mutex);
    if (verdict == "bad")
      std::cout << "bad: " << trial.key << " (" << trial.fault() << "): status " << outcome.status << "\n"
                << outcome.output.substr(outcome.output.size() > 600 ? outcome.output.size() - 600 : 0) << std::endl;
    ++rows[trial.call][verdict];
  });
  std::error_code ignored;
  fs::remove_all(work, ignored);
  int bad = 0;
  for (auto& [call, verdicts] : rows) bad += verdicts["bad"];
  const std::string text = to_markdown(rows);
  if (!options.page.empty()) write_page(options.page, text);
  std::cout << text << trials.size() << " faults, " << bad << " bad\n";
  return bad == 0 ? 0 : 1;
}

// Lets every call of OpenCL and of the system that the command makes fail, one at a time: its first, its second, one in
// the middle and its last one. What a run makes of it is one of
//   said      the same result, and a line says what was overcome
//   rounding  the same result but for rounding, and a line says that other devices made a step again
//   same      the same result: nothing hung on that call
//   clean     status 1 and one line that names the call, its status and the device, of a launch also the op and the
//             kernel; of a call of the system the file or what it was for
//   bad       anything else: another result, a signal, a hang, a line that names nothing
//   unmet     the run made fewer calls than that in each of five tries, the last ones at earlier calls
// `try_faults --help` lists the options. Two processes more run at once than there are cores, each in a folder of its
// own. Over 400 lines because the runs, the verdicts and what is planted to see the verdicts belong together.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <regex>
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
constexpr const char* kStall = "3";
constexpr const char* kColdStall = "40";  // the first launch may compile for some seconds
constexpr int kMostAttempts = 5;
constexpr std::size_t kParts = 4;     // of --quarter
constexpr long kPlanted = 60;         // a launch of the first or second step
constexpr int kFirstBadStatus = 124;  // of timeout, then of those that a shell gives, then 128 and the signal

// Of a number of a network of size 1: where other devices make a step of the runs below again, the sums of the
// gradients round in another order, 1.2e-7 at most (a launch that is left out: 1.7e-3 and more).
constexpr float kRounding = 1e-5F;

constexpr const char* kUsage =
    "try_faults lets every call of OpenCL and of the system that the command makes fail, one in each run.\n"
    "Its last line counts, and its status is 1 if any verdict is bad.\n"
    "  --quarter WORD   try the quarter of each run's faults that WORD puts first, such as a commit's hash\n"
    "  --run NAME       try the faults of one run alone, such as train or 'two ranks'\n"
    "  --call NAME      try the faults of one call alone\n"
    "  --page FILE      put the table into a document, in place of the one that is there\n"
    "  --planted        judge what must be bad, such as a launch that is left out without a word, and nothing else:\n"
    "                   its status is 0 if all of it is\n"
    "  --help           print this\n";

const std::map<std::string, std::string> kTwoDrivers{{"POCL_DEVICES", "pthread basic"}};

// What must be the same in what a run says.
using Reader = std::function<std::string(const std::string& output)>;

struct Run {
  std::string name;
  std::vector<std::string> words;                       // @ stands for the folder of the trial
  std::string file = {};                                // must be the same
  Reader said = {};                                     // where there is no file
  std::map<std::string, std::string> environment = {};  // likewise with @
  std::set<std::string> calls = {};                     // the only ones that fail; empty: all
  std::string faults = {};                              // that each trial has, besides its own
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

struct Ending {
  Outcome outcome;
  std::string result;
  std::string about = {};  // what the call was about, as faults_preload.cpp says it
};

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

constexpr const char* kOutput = "output";  // a file: the standard output, apart from what is said beside it

std::string result_of(const Run& run, const fs::path& folder, const std::string& output) {
  return run.said ? run.said(output) : text_of(folder / run.file);
}

std::string found_in(const std::string& output, const std::string& pattern) {
  std::smatch found;
  return std::regex_search(output, found, std::regex(pattern)) ? found.str() : "";
}

// These words of each object in the last line, which is JSON.
std::string words_of(const std::string& output, const std::string& list, const std::vector<std::string>& words) {
  std::istringstream lines(output);
  std::string last;
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("[{", 0) == 0 || line.rfind("{\"", 0) == 0) last = line;
  const auto json = nlohmann::json::parse(last, nullptr, false);
  if (json.is_discarded()) return "";
  std::multiset<std::string> rows;  // some tables are sorted by time
  for (const auto& row : list.empty() ? json : json.at(list)) {
    std::string text;
    for (const std::string& word : words) text += word + " " + row.at(word).dump() + "\n";
    rows.insert(text);
  }
  std::string text;
  for (const std::string& row : rows) text += row;
  return text;
}

constexpr const char* kCold = "cold";  // some of its kernels are compiled in each trial

// How many generated kernels PoCL keeps in a program's folder of its cache.
long generated_kernels(const fs::path& program) {
  return std::count_if(fs::directory_iterator(program), fs::directory_iterator(), [](const fs::directory_entry& each) {
    return each.path().filename().string().rfind("fused", 0) == 0;
  });
}

// Takes one program out of a cache that holds all of them: of those whose kernels the compiler processes share, the one
// that compiles soonest.
void make_cold(const fs::path& cache) {
  constexpr long kFewest = 2;
  fs::path least;
  for (const fs::directory_entry& part : fs::recursive_directory_iterator(cache)) {
    if (!fs::exists(part.path() / "program.bc") || generated_kernels(part) < kFewest) continue;
    if (least.empty() || generated_kernels(part) < generated_kernels(least)) least = part.path();
  }
  fs::remove_all(least);
}

std::vector<Run> all_runs(const fs::path& prepared) {
  const std::string net = (prepared / "net.safetensors").string(), gpt = (prepared / "gpt.safetensors").string();
  const std::string text = (prepared / "text.txt").string(), saved = "net.safetensors";
  const auto with = [](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::vector<std::string> saves{"--save", "@/net.safetensors"}, logs{"--log", "@/log.jsonl"};
  const std::vector<std::string> train = with({"train", "digits", "--steps", "8", "--batch", "32", "--quiet"}, saves);
  // Two thirds of the time of digits, most of which goes into loading kernels.
  const std::vector<std::string> small = with(
      {"train", "mlp", "--data", (prepared / "images").string(), "--steps", "8", "--batch", "32", "--quiet"}, saves);
  // Without batch norm, whose statistics are those of each device's part, and with a rate at which what is missing
  // shows.
  const std::vector<std::string> share =
      with({"train", "gpt", "--data", text, "--context", "16", "--steps", "4", "--batch", "8", "--optimizer", "sgd",
            "--rate", "0.5", "--schedule", "constant", "--quiet"},
           saves);
  const std::vector<std::string> halves = with(share, {"--split-device", "1,1"});
  const Reader rows = [](const std::string& output) {
    return words_of(output, "", {"workload", "mode", "batch", "steps", "parameters", "train_loss"});
  };
  const Reader kernels = [](const std::string& output) { return words_of(output, "by_kernel", {"name", "count"}); };
  const Reader sizes = [](const std::string& output) { return found_in(output, "\"exact\":.*"); };
  const Reader accuracy = [](const std::string& output) { return found_in(output, "test accuracy.*"); };
  const Reader names = [](const std::string& output) {
    return words_of(output, "devices", {"name", "memory_mode", "personality"});
  };
  const std::set<std::string> of_system{"close",
                                        "flock",
                                        "fopen64",
                                        "fsync",
                                        "mkdir",
                                        "mkostemp",
                                        "open",
                                        "poll",
                                        "pread",
                                        "posix_spawn",
                                        "pthread_create",
                                        "read",
                                        "recv",
                                        "rename",
                                        "send",
                                        "socketpair",
                                        "unlink",
                                        "write",
                                        "clGetProgramBuildInfo",
                                        "clGetProgramInfo"};
  return {
      // First, since nothing takes longer than compiling all of its kernels.
      {.name = kCold,
       .words = {"generate", "--load", gpt, "--prompt", "to be", "--tokens", "1"},
       .file = kOutput,
       .environment = {{"POCL_CACHE_DIR", "@/cache"}},
       .calls = of_system},
      {.name = "train",
       .words =
           with(with(train, logs), {"--checkpoint", "@/state", "--checkpoint-every", "4", "--tensorboard", "@/curves"}),
       .file = saved},
      {.name = "resume",
       .words = with(with(train, logs), {"--checkpoint", "@/state", "--resume", "auto"}),
       .file = saved},
      {.name = "eval", .words = {"eval", "digits", "--load", net}, .said = accuracy},
      {.name = "bench", .words = {"bench", "mlp", "--steps", "3", "--batch", "8", "--json"}, .said = rows},
      {.name = "generate", .words = {"generate", "--load", gpt, "--prompt", "to be", "--tokens", "4"}, .file = kOutput},
      {.name = "profile",
       .words = {"profile", "digits", "--steps", "2", "--warmup", "1", "--top", "0", "--json"},
       .said = kernels},
      {.name = "two contexts", .words = halves, .file = saved, .environment = {{"SAMEBYTES_CONTEXTS", "separate"}}},
      {.name = "two contexts of copies",
       .words = halves,
       .file = saved,
       .environment = {{"SAMEBYTES_CONTEXTS", "separate"}, {"SAMEBYTES_MEMORY", "copy"}},
       .calls = {"clEnqueueReadBuffer", "clEnqueueWriteBuffer", "clRetainMemObject", "clRetainContext"}},
      {.name = "two devices", .words = halves, .file = saved},
      {.name = "two drivers",
       .words = with(share, {"--device", "cpu:0,cpu:1"}),
       .file = saved,
       .environment = kTwoDrivers},
      {.name = "copies", .words = small, .file = saved, .environment = {{"SAMEBYTES_MEMORY", "copy"}}},
      {.name = "buffers of the host", .words = small, .file = saved, .environment = {{"SAMEBYTES_MEMORY", "hostptr"}}},
      {.name = "coarse memory",
       .words = small,
       .file = saved,
       .environment = {{"SAMEBYTES_MEMORY", "coarse"}},
       .faults = "coarse clGetDeviceInfo 1"},
      {.name = "two contexts of coarse memory",
       .words = halves,
       .file = saved,
       .environment = {{"SAMEBYTES_CONTEXTS", "separate"}, {"SAMEBYTES_MEMORY", "coarse"}},
       .calls = {"clEnqueueSVMMap", "clEnqueueSVMUnmap", "clEnqueueSVMMemcpy"},
       .faults = "coarse clGetDeviceInfo 1"},
      {.name = "estimate",
       .words = {"estimate", "digits", "--batch", "32", "--json"},
       .said = sizes,
       .calls = {"mmap"}},
      {.name = "devices",
       .words = {"devices", "--json"},
       .said = names,
       .calls = {"clCreateBuffer", "clEnqueueMapBuffer", "clEnqueueUnmapMemObject", "unlink"}},
      {.name = "two ranks", .words = small, .file = saved, .ranks = 2},
  };
}

std::string placed(std::string word, const fs::path& folder) {
  if (const auto at = word.find('@'); at != std::string::npos) word.replace(at, 1, folder.string());
  return word;
}

// Whether a run finds its kernels in the cache; compiling them takes longer than a stall does.
enum class Kernels : std::uint8_t { cached, missing };

Outcome start(const Run& run, const fs::path& folder, const fs::path& prepared, std::string fault,
              std::map<std::string, std::string> environment, Kernels kernels = Kernels::cached) {
  fs::create_directories(folder);
  if (run.name == "resume") fs::copy(prepared / "run", folder, fs::copy_options::recursive);
  if (run.name == kCold && fs::exists(prepared / "cache"))
    fs::copy(prepared / "cache", folder / "cache", fs::copy_options::recursive);
  std::vector<std::string> words;
  if (!run.faults.empty()) fault = run.faults + (fault.empty() ? "" : ";") + fault;
  environment["SAMEBYTES_FAULTS"] = fault;
  for (const auto& [name, value] : run.environment) environment[name] = placed(value, folder);
  environment["LD_PRELOAD"] = built_program("libfaults_preload.so");
  if (fs::exists(prepared / "vendors")) environment["OCL_ICD_VENDORS"] = (prepared / "vendors").string();
  // The variables reach the command alone, neither timeout nor mpirun.
  words = {"timeout", "-s", "KILL", kMostSeconds};
  // Two processes of one machine share memory; looking for networks takes a quarter of the run.
  if (run.ranks > 1)
    for (const char* word : {"mpirun", "--oversubscribe", "--allow-run-as-root", "--mca", "pml", "ob1", "--mca", "btl",
                             "self,vader", "-n", "2"})
      words.emplace_back(word);
  if (run.file == kOutput)
    for (const std::string& word :
         {std::string("sh"), std::string("-c"), std::string("exec \"$@\" >\"$0\""), (folder / kOutput).string()})
      words.push_back(word);
  words.emplace_back("env");
  for (const auto& [name, value] : environment) words.push_back(name + "=" + value);
  words.push_back(built_program("samebytes"));
  for (const std::string& word : run.words) words.push_back(placed(word, folder));
  // A program of fused kernels that fails to build is compiled in parts, from nothing.
  const bool compiles =
      kernels == Kernels::missing || run.name == kCold || fault.find("clBuildProgram") != std::string::npos;
  if (run.words.front() != "devices")
    for (const char* word : {"--stall-seconds", compiles ? kColdStall : kStall}) words.emplace_back(word);
  return run_program(words);
}

std::map<std::string, long> read_counts(const fs::path& path) {
  std::map<std::string, long> counts;
  std::ifstream file(path);
  std::string name;
  for (long count = 0; file >> name >> count;) counts[name] = std::max(counts[name], count);
  return counts;
}

// Made again where they fail, so that only a fault that stays shows what follows.
const std::set<std::string> kMadeAgain{"clEnqueueBarrierWithWaitList",
                                       "clEnqueueMarkerWithWaitList",
                                       "clEnqueueReadBuffer",
                                       "clEnqueueSVMMemcpy",
                                       "clEnqueueWriteBuffer",
                                       "clFinish",
                                       "clFlush",
                                       "clGetDeviceIDs",
                                       "clGetDeviceInfo",
                                       "clGetEventInfo",
                                       "clGetPlatformIDs",
                                       "clGetPlatformInfo",
                                       "clSetUserEventStatus"};

std::vector<std::string> kinds_of(const std::string& call) {
  std::vector<std::string> kinds{"error"};
  if (call == "clock_gettime") kinds = {"jump"};
  if (call == "clEnqueueMarkerWithWaitList" || call == "clFinish") kinds.emplace_back("lost");
  if (call == "clEnqueueNDRangeKernel") kinds.insert(kinds.end(), {"negative", "silent", "slow"});
  if (call == "clSetEventCallback") kinds.insert(kinds.end(), {"late", "silent"});
  if (kMadeAgain.count(call) != 0) kinds.emplace_back("always");
  return kinds;
}

// The numbers behind the header of a safetensors file; false where the files are not of one form.
bool differs_by_rounding(const std::string& one, const std::string& other) {
  std::uint64_t header = 0;
  if (one.size() != other.size() || one.size() < sizeof header) return false;
  std::memcpy(&header, one.data(), sizeof header);
  if (header > one.size() - sizeof header) return false;
  const std::size_t begin = sizeof header + static_cast<std::size_t>(header);
  if (one.compare(0, begin, other, 0, begin) != 0) return false;
  for (std::size_t at = begin; at + sizeof(float) <= one.size(); at += sizeof(float)) {
    float a = 0, b = 0;
    std::memcpy(&a, one.data() + at, sizeof a);
    std::memcpy(&b, other.data() + at, sizeof b);
    if (!(std::abs(a - b) <= kRounding)) return false;
  }
  return true;
}

// True if the text has the file's path, or that of the file which a temporary one was to become.
bool names_file(const std::string& text, const std::string& path) {
  if (path.empty() || path.front() != '/') return false;
  return text.find(path) != std::string::npos || text.find(path.substr(0, path.find(".tmp-"))) != std::string::npos;
}

// What a call of the system was for, where that is no file.
bool names_purpose(const std::string& text) {
  static const std::regex purpose("starts no (thread|process)|[0-9] ([kMG]i?B|bytes)");
  return std::regex_search(text, purpose);
}

// An op before its kernel, the op whose launch failed, or what a device that does not answer had still to do.
bool names_op(const std::string& text) {
  static const std::regex op(
      "(^|[ (])(?!samebytes:)[a-z_][^ :]*: (kernel |the launch failed)|pending: [0-9]+ commands?, (the first of "
      ")?[a-z]");
  return std::regex_search(text, op);
}

// Generated kernels have a number behind the name that errors use. Behind a launch that never ends others wait, too,
// and it is one of theirs that may be named.
bool names_kernel(const Trial& trial, const std::string& text, const std::string& name) {
  const std::string kernel = trial.kind == "silent" ? "" : name.substr(0, name.find_last_not_of("0123456789_") + 1);
  return text.find("kernel " + kernel) != std::string::npos;
}

// The lines that say why a run ends.
std::string errors_of(const std::string& output) {
  std::istringstream lines(output);
  std::string errors;
  for (std::string line; std::getline(lines, line);)
    if (line.rfind("samebytes: ", 0) == 0 && line.find("recovered:") == std::string::npos) errors += line + "\n";
  return errors;
}

using Names = std::vector<std::string>;

bool names_cause(const Trial& trial, const std::string& errors, const std::string& about, const Names& devices) {
  const auto says = [&](const std::string& word) { return !word.empty() && errors.find(word) != std::string::npos; };
  if (trial.call.rfind("cl", 0) != 0) return names_file(errors, about) || names_purpose(errors);
  const bool finds_devices = trial.call.rfind("clGetPlatform", 0) == 0 || trial.call == "clGetDeviceIDs" ||
                             trial.call == "clGetDeviceInfo" || trial.call == "clCreateSubDevices";
  const bool is_launch = trial.call == "clSetKernelArg" || trial.call == "clSetKernelArgSVMPointer" ||
                         trial.call == "clCreateKernel" || trial.call == "clEnqueueNDRangeKernel";
  if (!finds_devices && std::none_of(devices.begin(), devices.end(), says)) return false;
  if (is_launch && !(names_kernel(trial, errors, about) && names_op(errors))) return false;
  return (says(trial.call) && says("CL_")) || says("stall_seconds") || says("the launch failed on") ||
         says("has not answered for");
}

std::string verdict_of(const Trial& trial, const Ending& ending, const std::string& expected, const Names& devices) {
  const auto& [status, text] = ending.outcome;
  const auto says = [&text = text](const char* word) { return text.find(word) != std::string::npos; };
  if (says("terminate called") || says("pure virtual") || says("Assertion")) return "bad";
  const bool is_made_again = says("the step is made again");
  if (status == 0) {
    if (ending.result != expected)
      return is_made_again && differs_by_rounding(ending.result, expected) ? "rounding" : "bad";
    return is_made_again || says("recovered:") || says("passed over") ? "said" : "same";
  }
  const bool is_error = trial.run->ranks > 1 ? status < kFirstBadStatus : status == 1;  // mpirun has its own
  return is_error && names_cause(trial, errors_of(text), ending.about, devices) ? "clean" : "bad";
}

using Rows = std::map<std::string, std::map<std::string, int>>;  // verdicts by call

std::string to_markdown(const Rows& rows) {
  std::ostringstream text;
  text << "| call | tried | recovered and said | same but for rounding | same result | clean error | "
          "bad | not met |\n|---|---|---|---|---|---|---|---|\n";
  std::map<std::string, int> all;
  const auto row = [&](const std::string& name, std::map<std::string, int> counts) {
    const int tried = counts["said"] + counts["rounding"] + counts["same"] + counts["clean"] + counts["bad"];
    text << "| " << name << " | " << tried << " | " << counts["said"] << " | " << counts["rounding"] << " | "
         << counts["same"] << " | " << counts["clean"] << " | " << counts["bad"] << " | " << counts["unmet"] << " |\n";
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

// Of PoCL both drivers for processors.
Names device_names() {
  const Outcome outcome = run_program({built_program("samebytes"), "devices", "--json"}, kTwoDrivers);
  const std::regex name("\"name\":\"([^\"]+)\"");
  const std::string& text = outcome.output;
  return {std::sregex_token_iterator(text.begin(), text.end(), name, 1), {}};
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

// Calls f(0) to f(n - 1), two more at once than there are cores: some only wait for a watchdog.
void for_each_at_once(std::size_t n, const std::function<void(std::size_t)>& f) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> workers;
  for (unsigned i = 0; i < std::thread::hardware_concurrency() + 2; ++i)
    workers.emplace_back([&] {
      for (std::size_t k = next++; k < n; k = next++) f(k);
    });
  for (std::thread& worker : workers) worker.join();
}

std::vector<Trial> trials_of(const Run& run, const std::map<std::string, long>& calls, const Options& options) {
  if (options.is_planted) {
    const std::string call = "clEnqueueNDRangeKernel";
    return {{&run, "planted", call, kPlanted, run.name + " without a launch"}};
  }
  std::vector<Trial> trials;
  for (const auto& [call, count] : calls) {
    if (!run.calls.empty() && run.calls.count(call) == 0) continue;
    if (!options.call.empty() && call != options.call) continue;
    std::set<long> numbers;
    for (const auto& [which, number] : std::vector<std::pair<std::string, long>>{
             {"first", 1}, {"second", 2}, {"middle", (count + 1) / 2}, {"last", count}}) {
      if (number < 1 || number > count || !numbers.insert(number).second) continue;
      for (const std::string& kind : kinds_of(call))
        trials.push_back({&run, kind, call, number, run.name + ": " + kind + ", " + which + " " + call});
    }
  }
  return trials;
}

// Those that the word puts first.
void keep_part(std::vector<Trial>& trials, const std::string& word) {
  const std::hash<std::string> hash;
  std::sort(trials.begin(), trials.end(),
            [&](const Trial& a, const Trial& b) { return hash(a.key + word) < hash(b.key + word); });
  trials.resize((trials.size() + kParts - 1) / kParts);
}

// Preloaded calls that no run makes.
const std::map<std::string, std::string> kInNoRun{
    {"clCreateCommandQueueWithProperties", "compiler processes make it, where nothing is preloaded"},
    {"clGetCommandQueueInfo", "asks about a program's own queue"},
    {"clGetContextInfo", "compiler processes make it, where nothing is preloaded"},
    {"clGetKernelWorkGroupInfo", "a spare device is asked at a launch that the first one refuses"},
    {"clGetMemObjectInfo", "asks about a program's own buffer"},
    {"clReleaseDevice", "the handles of parts of devices are never copied"},
    {"clRetainCommandQueue", "copies a program's own queue"},
    {"clRetainDevice", "the handles of parts of devices are never copied"},
    {"clWaitForEvents", "its errors say nothing about the command: no wait relies on one"},
};

// Endings that are made up: what a verdict must not let pass. Empty if none does.
std::string what_passes(const std::vector<Run>& runs) {
  const auto run = [&](const std::string& name) {
    return &*std::find_if(runs.begin(), runs.end(), [&](const Run& each) { return each.name == name; });
  };
  const std::string launch = "clEnqueueNDRangeKernel";
  const Names devices{"a device"};
  const std::string named =
      "samebytes: step 2: add: kernel pointwise cannot be enqueued (" + launch + ") on a device: CL_OUT_OF_RESOURCES\n";
  const std::string again = "step 2: cpu:0.1 failed; the step is made again\n";
  const std::string zeros(64, '\0');
  std::string ones = zeros;
  ones.back() = '\x3f';  // the last number is 0.5
  const auto trial = [&](const std::string& name, const std::string& call) {
    return Trial{run(name), "error", call, 1, ""};
  };
  std::string passing;
  const auto must_be = [&](const std::string& wanted, const std::string& what, const Trial& of, int status,
                           const std::string& output, const std::string& result, const std::string& expected,
                           const Names& known) {
    Ending ending;
    ending.outcome.status = status;
    ending.outcome.output = output;
    ending.result = result;
    ending.about = of.call == launch ? "pointwise" : "/tmp/a";
    if (const std::string verdict = verdict_of(of, ending, expected, known); verdict != wanted && passing.empty())
      passing = what + " counts as " + verdict;
  };
  const Trial one = trial("train", launch), shared = trial("two devices", launch), ranks = trial("two ranks", launch);
  must_be("clean", "a whole error", one, 1, named, "", "", devices);
  must_be("bad", "a rank that a signal ends", ranks, 137, named, "", "", devices);
  must_be("bad", "a rank that hangs", ranks, 124, named, "", "", devices);
  must_be("bad", "a file that is not named", trial("train", "write"), 1,
          "samebytes: writing failed: No space left on device\n", "", "", devices);
  must_be("bad", "a step made again with other numbers", shared, 0, again, ones, zeros, devices);
  must_be("bad", "other numbers without a step made again", shared, 0, "", ones, zeros, devices);
  must_be("bad", "a bench that leaves out a row", trial("bench", launch), 0, "", "workload mlp\n",
          "workload mlp\nworkload mlp\n", devices);
  must_be("bad", "an error without its op", one, 1, "samebytes: kernel " + named.substr(named.find("pointwise")), "",
          "", devices);
  must_be("bad", "an error without its kernel", one, 1,
          "samebytes: add: " + launch + " on a device: CL_INVALID_VALUE\n", "", "", devices);
  must_be("bad", "an error where no device is known", one, 1, named, "", "", {});
  return passing;
}

// Other drivers only load, and take a tenth of each run.
void leave_pocl_alone(const fs::path& vendors) {
  const fs::path pocl = "/etc/OpenCL/vendors/pocl.icd";
  if (std::getenv("OCL_ICD_VENDORS") != nullptr || !fs::exists(pocl)) return;
  fs::create_directory(vendors);
  fs::copy_file(pocl, vendors / "pocl.icd");
}

// Writes a folder as MNIST's, whose pixels are made up.
void write_images(const fs::path& folder) {
  fs::create_directory(folder);
  const auto write = [&](const std::string& name, const std::vector<std::uint8_t>& sizes, unsigned values,
                         unsigned below) {
    std::string text{0, 0, 8, static_cast<char>(sizes.size() / 4)};
    text.append(sizes.begin(), sizes.end());
    for (unsigned i = 0, random = 1; i < values; ++i) {
      random = random * 1664525 + 1013904223;
      text += static_cast<char>((random >> 16) % below);
    }
    std::ofstream(folder / (name + "-ubyte"), std::ios::binary) << text;
  };
  for (const std::string part : {"train", "t10k"}) {
    constexpr unsigned kImages = 256, kPixels = 28 * 28;
    write(part + "-images-idx3", {0, 0, 1, 0, 0, 0, 0, 28, 0, 0, 0, 28}, kImages * kPixels, 256);
    write(part + "-labels-idx1", {0, 0, 1, 0}, kImages, 10);
  }
}

// Networks and a state that the runs begin with; empty if all is well, else what went wrong.
std::string prepare(const fs::path& prepared) {
  const std::string corpus = (prepared / "text.txt").string();
  const fs::path run = prepared / "run";
  fs::create_directory(run);
  leave_pocl_alone(prepared / "vendors");
  write_images(prepared / "images");
  {
    std::ofstream out(corpus);
    for (int i = 0; i < 200; ++i) out << "to be or not to be, line " << i << "\n";
  }
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"digits", "--steps", "8", "--batch", "32", "--quiet", "--checkpoint", (run / "state").string(),
            "--checkpoint-every", "4", "--keep", "0", "--log", (run / "log.jsonl").string(), "--save",
            (prepared / "net.safetensors").string()},
           {"gpt", "--data", corpus, "--context", "16", "--steps", "2", "--batch", "2", "--quiet", "--save",
            (prepared / "gpt.safetensors").string()}}) {
    std::vector<std::string> all{built_program("samebytes"), "train"};
    all.insert(all.end(), words.begin(), words.end());
    if (const Outcome outcome = run_program(all); outcome.status != 0) return "cannot prepare:\n" + outcome.output;
  }
  fs::remove(run / "state" / "checkpoint-000000008.safetensors");  // as if the run had ended in its middle
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
  const Names devices = device_names();
  if (devices.empty()) return fail("samebytes finds no device");
  fs::create_directories(prepared);
  if (const std::string why = prepare(prepared); !why.empty()) return fail(why);
  std::mutex mutex;  // of what both loops write, and of the output
  std::vector<Run> runs = all_runs(prepared);
  if (options.is_planted)
    if (const std::string what = what_passes(runs); !what.empty()) return fail(what);
  std::erase_if(runs, [&](const Run& run) {
    if (options.is_planted) return run.name != "train" && run.name != "bench";
    return !options.run.empty() && run.name != options.run;
  });
  if (runs.empty()) return fail("there is no run " + options.run);

  // What each run ends with undisturbed, and how often it makes each call then.
  std::map<const Run*, std::string> expected;
  std::vector<Trial> trials;
  std::string trouble;
  std::set<std::string> preloaded, tried;
  for_each_at_once(runs.size(), [&](std::size_t i) {
    const Run& run = runs[i];
    const fs::path folder = work / ("whole" + std::to_string(i)), counts = work / ("counts" + std::to_string(i));
    start(run, folder / "warm", prepared, "", {}, Kernels::missing);  // builds kernels, measures contexts
    if (run.name == kCold) {
      make_cold(folder / "warm" / "cache");
      fs::rename(folder / "warm" / "cache", prepared / "cache");
    }
    const Outcome whole = start(run, folder / "reference", prepared, "", {{"SAMEBYTES_FAULTS_COUNT", counts.string()}});
    const std::map<std::string, long> calls = read_counts(counts);
    std::vector<Trial> own = trials_of(run, calls, options);
    const std::lock_guard lock(mutex);
    expected[&run] = result_of(run, folder / "reference", whole.output);
    if (whole.status != 0 || expected[&run].empty()) trouble += run.name + " fails without a fault:\n" + whole.output;
    for (const auto& [call, count] : calls) preloaded.insert(call);
    for (const Trial& trial : own) tried.insert(trial.call);
    if (!options.quarter.empty()) keep_part(own, options.quarter);
    trials.insert(trials.end(), own.begin(), own.end());
    fs::remove_all(folder);
  });
  if (options.run.empty() && options.call.empty() && !options.is_planted)
    for (const std::string& call : preloaded)
      if (tried.count(call) == kInNoRun.count(call))
        trouble +=
            call + (tried.count(call) == 0 ? " is in no run\n" : " is in a run, though it is said to be in none\n");
  if (!trouble.empty()) return fail(trouble);
  // What takes longest begins first, so that nothing waits for it alone in the end.
  std::stable_partition(trials.begin(), trials.end(), [](const Trial& trial) { return trial.run->name == kCold; });
  Rows rows;
  for_each_at_once(trials.size(), [&](std::size_t i) {
    Trial trial = trials[i];
    const Run& run = *trial.run;
    const fs::path folder = work / ("trial" + std::to_string(i)), seen = work / ("seen" + std::to_string(i));
    std::string verdict = "unmet";
    Ending ending;
    // How often some calls are made depends on who waits for whom, so the last one of the undisturbed run may not come.
    for (int attempt = 0; attempt < kMostAttempts && verdict == "unmet"; ++attempt) {
      if (attempt > 0) trial.number = std::max(1L, trial.number * 3 / 4);
      ending = {start(run, folder, prepared, trial.fault(), {{"SAMEBYTES_FAULTS_SEEN", seen.string()}}), "", ""};
      if (fs::exists(seen)) {
        ending.result = result_of(run, folder, ending.outcome.output);
        std::istringstream words(text_of(seen));
        std::string skipped;
        words >> skipped >> skipped >> skipped >> ending.about;
        verdict = verdict_of(trial, ending, expected.at(&run), devices);
      }
      std::error_code ignored;
      fs::remove_all(folder, ignored);
      fs::remove(seen, ignored);
    }
    const std::string& said = ending.outcome.output;
    const std::lock_guard lock(mutex);
    if (verdict == "bad" && !options.is_planted)
      std::cout << "bad: " << trial.key << " (" << trial.fault() << "): status " << ending.outcome.status << "; about '"
                << ending.about << "'\n"
                << errors_of(said) << said.substr(said.size() > 600 ? said.size() - 600 : 0) << std::endl;
    if (verdict != "bad" && options.is_planted) trouble += trial.key + " counts as " + verdict + "\n";
    ++rows[trial.call][verdict];
  });
  std::error_code ignored;
  fs::remove_all(work, ignored);
  if (options.is_planted) {
    if (!trouble.empty()) return fail(trouble);
    std::cout << "what is planted counts as bad\n";
    return 0;
  }
  int bad = 0;
  for (auto& [call, verdicts] : rows) bad += verdicts["bad"];
  const std::string text = to_markdown(rows);
  if (!options.page.empty()) write_page(options.page, text);
  std::cout << text << trials.size() << " faults, " << bad << " bad\n";
  return bad == 0 ? 0 : 1;
}

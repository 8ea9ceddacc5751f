// Calls that fail under the command, from outside: what is overcome is said, what is not is one line. try_faults lets
// every call fail; these are the ones that once gave other numbers, hung or ended by a signal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "cli/command.h"
#include "samebytes/device.h"
#include "support/files.h"
#include "support/quirks.h"

namespace samebytes::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

struct Trial {
  CommandResult result;
  std::string saved;  // the bytes of the network
  std::string log;
};

Trial try_fault(const std::string& fault, const Words& more = {}, std::map<std::string, std::string> environment = {}) {
  const TemporaryFolder folder;
  const std::string net = folder / "net.safetensors", log = folder / "log.jsonl";
  if (!fault.empty()) {
    environment["LD_PRELOAD"] = built_program("libfaults_preload.so");
    environment["SAMEBYTES_FAULTS"] = fault;
  }
  Words words{"train",  "digits", "--steps", "8", "--batch",         "32", "--quiet",
              "--save", net,      "--log",   log, "--stall-seconds", "5"};
  words.insert(words.end(), more.begin(), more.end());
  Trial trial;
  CommandRun run;
  run.arguments = words;
  run.environment = environment;
  trial.result = run_command(run);
  if (std::filesystem::exists(net)) trial.saved = get(net);
  if (std::filesystem::exists(log)) trial.log = get(log);
  return trial;
}

class FaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (is_sanitized()) GTEST_SKIP() << "LD_PRELOAD does not go with sanitizers";
  }
  static const Trial& undisturbed() {
    static const Trial trial = try_fault("");
    return trial;
  }
};

TEST_F(FaultsTest, a_failed_query_of_an_event_is_asked_again_and_said) {
  ASSERT_EQ(undisturbed().result.status, 0) << undisturbed().result.err;
  for (const char* number : {"1", "40", "200"}) {
    const Trial trial = try_fault(std::string("error clGetEventInfo ") + number);
    ASSERT_EQ(trial.result.status, 0) << trial.result.err;
    EXPECT_TRUE(trial.saved == undisturbed().saved) << number;
    EXPECT_THAT(trial.result.err, HasSubstr("recovered: clGetEventInfo failed once on "));
    EXPECT_THAT(trial.result.err, HasSubstr("CL_OUT_OF_RESOURCES"));
  }
}

TEST_F(FaultsTest, a_recovery_of_a_step_is_in_the_log) {
  EXPECT_THAT(try_fault("error clGetEventInfo 200").log,
              AllOf(HasSubstr("\"event\":\"recovered\",\"step\":"), HasSubstr("\"call\":\"clGetEventInfo\"")));
}

TEST_F(FaultsTest, a_driver_that_refuses_callbacks_or_makes_none_changes_nothing) {
  for (const char* fault :
       {"error clSetEventCallback 1", "silent clSetEventCallback 1", "late clSetEventCallback 2 us=3000"}) {
    const Trial trial = try_fault(fault);
    ASSERT_EQ(trial.result.status, 0) << fault << trial.result.err;
    EXPECT_TRUE(trial.saved == undisturbed().saved) << fault;
  }
}

// The driver's threads may still compile or run when the process ends, so that its libraries must not take themselves
// down: the preloaded one would write its counts then, as it does in the driver's linker, which calls none.
TEST_F(FaultsTest, a_launch_that_never_ends_is_an_error_that_names_it) {
  const TemporaryFolder folder;
  const std::string counts = folder / "counts";
  const Trial trial =
      try_fault("silent clEnqueueNDRangeKernel 100", {"--host-execution", "off"}, {{"SAMEBYTES_FAULTS_COUNT", counts}});
  if (std::filesystem::exists(counts)) {
    EXPECT_THAT(get(counts), Not(ContainsRegex("clEnqueueNDRangeKernel [1-9]")));
  }
  EXPECT_EQ(trial.result.status, 1);
  EXPECT_THAT(trial.result.err,
              AllOf(HasSubstr("has not answered for 5 s"), HasSubstr("pending: "), HasSubstr("step ")));
}

// The transfer that waits for it must neither give up the whole engine nor wait once its step is made again.
TEST_F(FaultsTest, a_launch_of_a_second_context_that_never_ends_costs_that_device_alone) {
  SAMEBYTES_NEEDS_PARTS();
  const Words split{"--split-device", "1,1"};
  for (const char* number : {"1", "20", "100"}) {
    const Trial trial = try_fault(std::string("silent clEnqueueNDRangeKernel ") + number + " queue=1", split,
                                  {{"SAMEBYTES_CONTEXTS", "separate"}});
    EXPECT_EQ(trial.result.status, 0) << number << trial.result.err;
    EXPECT_THAT(trial.result.out, HasSubstr("the step is made again")) << number;
  }
}

// Taken for one that does not, PoCL's basic device waits in the other driver's thread, which waits for itself.
TEST_F(FaultsTest, a_device_that_does_not_say_whether_it_works_inside_the_calls_is_taken_for_one_that_does) {
  if (list_devices().front().platform.find("Portable") == std::string::npos) GTEST_SKIP() << "needs_pocl: POCL_DEVICES";
  const std::map<std::string, std::string> drivers{{"POCL_DEVICES", "pthread basic"}};
  const Words both{"--device", "cpu:0,cpu:1", "--host-execution", "off"};
  // It is asked where one device has to wait for the other, which in eight steps need not happen.
  constexpr int kMostRuns = 12;
  std::string said;
  for (int run = 0; run < kMostRuns && said.empty(); ++run) {
    const Trial once = try_fault("error clEnqueueNativeKernel 1", both, drivers);
    EXPECT_EQ(once.result.status, 0) << once.result.err;
    said = once.result.err;
  }
  EXPECT_THAT(said, HasSubstr("recovered: clEnqueueNativeKernel failed once"));
  const Trial always = try_fault("always clEnqueueNativeKernel 1", both, drivers);
  EXPECT_EQ(always.result.status, 0) << always.result.err;
}

TEST_F(FaultsTest, errors_name_the_call_the_kernel_and_the_device) {
  const Trial launch = try_fault("error clEnqueueNDRangeKernel 60", {"--host-execution", "off"});
  EXPECT_EQ(launch.result.status, 1);
  EXPECT_THAT(launch.result.err, AllOf(HasSubstr("kernel "), HasSubstr("clEnqueueNDRangeKernel"),
                                       HasSubstr(list_devices().front().name), HasSubstr("CL_OUT_OF_RESOURCES")));
  const Trial argument = try_fault("error clSetKernelArg 50");
  EXPECT_EQ(argument.result.status, 1);
  EXPECT_THAT(argument.result.err,
              AllOf(HasSubstr("samebytes: full: kernel fill"), HasSubstr(": clSetKernelArg of argument"),
                    HasSubstr(list_devices().front().name)));
}

TEST_F(FaultsTest, two_contexts_end_where_they_once_hung_or_read_freed_memory) {
  const std::map<std::string, std::string> separate{{"SAMEBYTES_CONTEXTS", "separate"}};
  const Words split{"--split-device", "1,1"};
  SAMEBYTES_NEEDS_PARTS();
  const Trial plain = try_fault("", split, separate);
  ASSERT_EQ(plain.result.status, 0) << plain.result.err;
  for (const char* fault : {"error clSetUserEventStatus 1", "error clSetUserEventStatus 20"}) {
    const Trial trial = try_fault(fault, split, separate);
    ASSERT_EQ(trial.result.status, 0) << fault << trial.result.err;
    EXPECT_TRUE(trial.saved == plain.saved) << fault;
    EXPECT_THAT(trial.result.err, HasSubstr("recovered: ")) << fault;
  }
  const Trial retained = try_fault("error clRetainEvent 30", split, separate);
  EXPECT_EQ(retained.result.status, 1);
  EXPECT_THAT(retained.result.err, AllOf(HasSubstr("clRetain"), HasSubstr(list_devices().front().name)));
  const Trial launch = try_fault("negative clEnqueueNDRangeKernel 1", split, separate);
  EXPECT_EQ(launch.result.status, 1);
  // Whoever asks first says it: the step that shares its work, or what reads the array that the launch should have
  // written.
  EXPECT_THAT(launch.result.err, AllOf(HasSubstr(": the launch failed on "), HasSubstr(", kernel "),
                                       HasSubstr(list_devices().front().name)));
  EXPECT_THAT(launch.result.err, AnyOf(AllOf(HasSubstr("failed: "), HasSubstr("no other device can do its work")),
                                       AllOf(HasSubstr("the array is lost, because a queued write to it failed"),
                                             HasSubstr("write it anew"))));
  const std::map<std::string, std::string> copies{{"SAMEBYTES_CONTEXTS", "separate"}, {"SAMEBYTES_MEMORY", "copy"}};
  for (const char* fault : {"error clEnqueueReadBuffer 3", "error clEnqueueWriteBuffer 3"}) {
    const Trial trial = try_fault(fault, split, copies);
    EXPECT_LE(trial.result.status, 1) << fault << trial.result.err;
    EXPECT_TRUE(trial.result.status == 1 || trial.saved == plain.saved) << fault;
  }
}

TEST_F(FaultsTest, a_user_event_that_cannot_be_ended_ends_the_run) {
  SAMEBYTES_NEEDS_PARTS();
  for (const char* fault : {"always clSetUserEventStatus 1", "always clSetUserEventStatus 20"}) {
    const Trial trial = try_fault(fault, {"--split-device", "1,1"}, {{"SAMEBYTES_CONTEXTS", "separate"}});
    EXPECT_EQ(trial.result.status, 1) << fault;
    EXPECT_THAT(trial.result.err, AllOf(HasSubstr("clSetUserEventStatus"), HasSubstr("CL_OUT_OF_RESOURCES"),
                                        HasSubstr(list_devices().front().name)));
  }
}

TEST_F(FaultsTest, a_loader_that_lists_no_platform_at_first_is_asked_again) {
  const Trial trial = try_fault("error clGetPlatformIDs 1");
  ASSERT_EQ(trial.result.status, 0) << trial.result.err;
  EXPECT_TRUE(trial.saved == undisturbed().saved);
}

TEST_F(FaultsTest, a_loader_that_never_lists_a_platform_is_named) {
  for (const char* number : {"1", "3"}) {
    const Trial trial = try_fault(std::string("always clGetPlatformIDs ") + number);
    EXPECT_EQ(trial.result.status, 1) << number;
    EXPECT_THAT(trial.result.err, AllOf(HasSubstr("clGetPlatformIDs"), HasSubstr("CL_OUT_OF_RESOURCES"))) << number;
  }
}

TEST_F(FaultsTest, a_driver_that_never_says_what_its_devices_are_is_named) {
  for (const char* call : {"clGetDeviceIDs", "clGetDeviceInfo"}) {
    const Trial trial = try_fault(std::string("always ") + call + " 1");
    EXPECT_EQ(trial.result.status, 1) << call;
    EXPECT_THAT(trial.result.err, AllOf(HasSubstr(call), HasSubstr("CL_OUT_OF_RESOURCES")));
  }
}

TEST_F(FaultsTest, a_profile_whose_times_the_driver_refuses_asks_again_or_says_what_it_lacks) {
  const auto profile = [](const std::string& fault) {
    CommandRun run;
    run.arguments = {"profile", "digits", "--steps", "2", "--host-execution", "off"};
    run.environment = {{"LD_PRELOAD", built_program("libfaults_preload.so")}, {"SAMEBYTES_FAULTS", fault}};
    return run_command(run);
  };
  const CommandResult once = profile("error clGetEventProfilingInfo 40");
  EXPECT_EQ(once.status, 0) << once.err;
  EXPECT_THAT(once.err, HasSubstr("recovered: clGetEventProfilingInfo failed once on "));
  EXPECT_THAT(once.out, Not(HasSubstr("does not say when they ran")));
  const CommandResult never = profile("always clGetEventProfilingInfo 40");
  EXPECT_THAT(never.out, HasSubstr(" launches: the driver does not say when they ran (clGetEventProfilingInfo)"));
}

TEST_F(FaultsTest, a_question_about_a_device_that_fails_is_asked_again) {
  for (const char* number : {"1", "2"}) {
    const Trial trial = try_fault(std::string("error clGetDeviceInfo ") + number);
    ASSERT_EQ(trial.result.status, 0) << trial.result.err;
    EXPECT_TRUE(trial.saved == undisturbed().saved) << number;
    EXPECT_THAT(trial.result.err, HasSubstr("recovered: a query for devices failed at first"));
  }
}

TEST_F(FaultsTest, a_thread_that_the_system_does_not_start_is_done_without_or_named) {
  for (const char* number : {"1", "2", "3"}) {
    const Trial trial = try_fault(std::string("error pthread_create ") + number);
    if (trial.result.status == 0)
      EXPECT_TRUE(trial.saved == undisturbed().saved) << number;
    else
      EXPECT_THAT(trial.result.err, HasSubstr("the system starts no thread: ")) << number;
    EXPECT_LE(trial.result.status, 1) << trial.result.err;
  }
}

// Its kernels are in a folder of its own: cold, as they were, then with one bit flipped, and cut off.
TEST_F(FaultsTest, a_damaged_kernel_cache_is_found_and_its_kernels_are_compiled_again) {
  if (list_devices().front().platform != "Portable Computing Language") GTEST_SKIP() << "its driver keeps no kernels";
  namespace fs = std::filesystem;
  const TemporaryFolder cache;
  const std::map<std::string, std::string> own{{"POCL_CACHE_DIR", cache.string()}};
  const auto run = [&] {
    const TemporaryFolder folder;
    const std::string net = folder / "net.safetensors";
    const CommandResult result = run_command(
        {"train", "digits", "--steps", "4", "--batch", "8", "--quiet", "--host-execution", "off", "--save", net}, own);
    return std::make_pair(result, fs::exists(net) ? get(net) : std::string());
  };
  const auto [cold, expected] = run();
  ASSERT_EQ(cold.status, 0) << cold.err;
  const auto [warm, same] = run();
  EXPECT_TRUE(same == expected);
  EXPECT_THAT(warm.err, Not(HasSubstr("recovered")));
  std::vector<std::string> objects;
  for (const auto& entry : fs::recursive_directory_iterator(cache.string()))
    if (entry.path().extension() == ".so") objects.push_back(entry.path().string());
  std::sort(objects.begin(), objects.end());
  ASSERT_GE(objects.size(), 4u);
  int damage = 0;
  for (std::size_t i = 0; i < objects.size(); i += (objects.size() + 1) / 2, ++damage) {
    const std::string bytes = get(objects[i]);
    std::string damaged = bytes;
    for (std::size_t place = bytes.size() / 4; place < bytes.size(); place += 512)
      damaged[place] = static_cast<char>(damaged[place] ^ 0x10);
    put(objects[i], damage == 0 ? damaged : bytes.substr(0, bytes.size() / 2));
    const auto [found, again] = run();
    EXPECT_EQ(found.status, 0) << found.err;
    EXPECT_TRUE(again == expected) << objects[i];
    EXPECT_THAT(found.err, AllOf(HasSubstr("recovered: the kernel cache"), HasSubstr(objects[i])));
  }
}

TEST_F(FaultsTest, a_log_and_curves_that_cannot_be_written_do_not_end_the_run_but_its_success) {
  const TemporaryFolder folder;
  const std::string net = folder / "net.safetensors";
  const CommandResult full =
      run_command({"train", "digits", "--steps", "8", "--batch", "32", "--quiet", "--save", net, "--log", "/dev/full"});
  EXPECT_EQ(full.status, 1);
  EXPECT_THAT(full.err, HasSubstr("log: writing /dev/full failed: No space left on device"));
  EXPECT_TRUE(get(net) == undisturbed().saved);
  const TemporaryFolder curves;
  const Trial events = try_fault("error fwrite 12", {"--tensorboard", curves.string()});
  EXPECT_EQ(events.result.status, 1);
  EXPECT_THAT(events.result.err, AnyOf(HasSubstr("tensorboard: writing "), HasSubstr("log: writing ")));
  EXPECT_TRUE(events.saved == undisturbed().saved);
}

TEST(Command, a_full_standard_output_is_no_success) {
  const Outcome outcome = run_program({"/bin/sh", "-c", built_program("samebytes") + " devices > /dev/full"});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.output, HasSubstr("No space left on device"));
}

// The page shows the harness's options in one line; try_faults says each of them, and refuses others.
TEST(TryFaults, its_page_and_its_help_have_the_same_options) {
  const std::string page = get(source_folder() + "/docs/faults.md"), begin = "\nbuild/try_faults [";
  const std::size_t at = page.find(begin);
  ASSERT_NE(at, std::string::npos);
  const std::string shown = page.substr(at, page.find('\n', at + 1) - at);
  const Outcome help = run_program({built_program("try_faults"), "--help"});
  EXPECT_EQ(help.status, 0);
  const auto options_in = [](const std::string& text) {
    const std::regex option("--[a-z]+");
    return std::set<std::string>(std::sregex_token_iterator(text.begin(), text.end(), option), {});
  };
  EXPECT_EQ(options_in(shown), options_in(help.output));
  const Outcome other = run_program({built_program("try_faults"), "--halves"});
  EXPECT_EQ(other.status, 1);
  EXPECT_THAT(other.output, HasSubstr("unknown option --halves"));
}

TEST(TryFaults, it_does_not_start_without_a_device) {
  const TemporaryFolder drivers;
  const Outcome outcome =
      run_program({built_program("try_faults"), "--planted"}, {{"OCL_ICD_VENDORS", drivers.string()}});
  EXPECT_EQ(outcome.status, 1);
  EXPECT_THAT(outcome.output, HasSubstr("samebytes finds no device"));
}

TEST(Command, closed_streams_take_no_text_into_files) {
  const TemporaryFolder folder;
  const std::string log = folder / "log.jsonl";
  const Outcome outcome = run_program(
      {"/bin/sh", "-c", built_program("samebytes") + " train digits --steps 2 --log " + log + " <&- >&- 2>&-"});
  EXPECT_EQ(outcome.status, 0);
  std::istringstream lines(get(log));
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(nlohmann::json::parse(line, nullptr, false).is_object()) << line;
}

TEST(Command, two_runs_in_one_checkpoint_folder_are_refused) {
  const TemporaryFolder folder;
  const std::string kept = folder / "state", samebytes = built_program("samebytes");
  const std::string first =
      samebytes + " train digits --steps 4000 --quiet --checkpoint " + kept + " --checkpoint-every 2";
  const Outcome outcome = run_program({"/bin/bash", "-c",
                                       first + " & p=$!; for i in $(seq 600); do ls " + kept +
                                           "/*.safetensors >/dev/null 2>&1 && break; sleep 0.05; done; " + samebytes +
                                           " train digits --steps 4 --quiet --checkpoint " + kept +
                                           " --resume auto; s=$?; kill -9 $p; exit $s"});
  EXPECT_NE(outcome.status, 0);
  EXPECT_THAT(outcome.output, HasSubstr("another process writes to"));
}

}  // namespace
}  // namespace samebytes::testing

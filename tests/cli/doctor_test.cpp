// samebytes doctor: logs written by hand get the right advice first (doctor_runs_test.cpp has runs that were really
// broken).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/doctor_findings.h"
#include "support/files.h"

namespace samebytes::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::ordered_json;

// The line that opens a log of a run that is well.
Json healthy() {
  return {{"event", "start"},
          {"workload", "cnn"},
          {"device", "cpu:0 pthread"},
          {"memory_mode", "fine"},
          {"precision", "f32"},
          {"optimizer", "adamw"},
          {"schedule", "cosine"},
          {"rate", 1e-3},
          {"warmup", 10},
          {"batch", 64},
          {"steps", 200},
          {"workload_rate", 1e-3},
          {"workload_batch", 64},
          {"weight_decay", 0.01},
          {"clip_norm", 0},
          {"batch_norms", 0},
          {"check_nan", false},
          {"release_gradients", false},
          {"cores", 4},
          {"threads", 0},
          {"memory_limit_bytes", 1e10}};
}

struct Script {
  Json start = healthy();
  std::vector<double> losses = {};                     // of steps; falling where none are given
  std::vector<double> norms = {};                      // of their gradients
  std::vector<std::pair<double, double>> epochs = {};  // training and test loss
  Json last = {{"event", "summary"}, {"steps", 200}, {"peak_bytes", 1e8}, {"stall_fraction", 0.01}};
  std::string write(const TemporaryFolder& folder) const {
    std::ostringstream text;
    text << start.dump() << '\n';
    std::vector<double> values = losses;
    for (int i = 0; losses.empty() && i < 40; ++i) values.push_back(2.0 / (1 + 0.1 * i));
    for (std::size_t i = 0; i < values.size(); ++i) {
      Json step{{"event", "step"}, {"step", i + 1}, {"epoch", 1}, {"loss", values[i]}, {"rate", 1e-3}, {"ms", 1.0}};
      if (i < norms.size()) step["grad_norm"] = norms[i];
      text << step.dump() << '\n';
    }
    for (std::size_t i = 0; i < epochs.size(); ++i)
      text << Json{{"event", "epoch"},
                   {"epoch", i + 1},
                   {"step", i},
                   {"train_loss", epochs[i].first},
                   {"test_loss", epochs[i].second}}
                  .dump()
           << '\n';
    if (!last.is_null()) text << last.dump() << '\n';
    put(folder / "run.jsonl", text.str());
    return folder / "run.jsonl";
  }
};

TEST(Doctor, a_run_that_is_well_gets_no_advice) {
  const TemporaryFolder folder;
  const std::string log = folder / "run.jsonl";
  ASSERT_EQ(run_command({"train", "digits", "--steps", "60", "--log", log, "--quiet"}).status, 0);
  for (const auto& finding : findings_of(log)) EXPECT_EQ(finding["rule"], "loader_starves") << finding.dump();
  const auto text = run_command({"doctor", Script{}.write(folder)});
  EXPECT_EQ(text.status, 0);
  EXPECT_THAT(text.out, HasSubstr("Nothing to complain about"));
}

TEST(Doctor, scripted_troubles_get_the_right_advice_first) {
  struct Case {
    const char* rule;
    const char* options;  // of the first action: what they match from their beginning on
    Script script;
  };
  std::vector<Case> cases;
  const auto add = [&](const char* rule, const char* options) -> Script& {
    cases.push_back({rule, options, {}});
    return cases.back().script;
  };
  const auto fail = [](Script& script, const char* kind, const char* message, int step) {
    script.last = {{"event", "error"}, {"kind", kind}, {"message", message}, {"step", step}};
  };
  {
    Script& script = add("out_of_memory", "--(micro-)?batch 32");
    fail(script, "OutOfMemory", "matmul: needs 12 MB", 1);
    script.last["need_bytes"] = 12'000'000;
    script.last["limit_bytes"] = 1'000'000'000;
    script.losses = {2.3};
  }
  fail(add("out_of_memory", "--(micro-)?batch 32"), "DeviceError",
       "clEnqueueNDRangeKernel: CL_MEM_OBJECT_ALLOCATION_FAILURE", 7);
  {
    Script& script = add("not_finite", "--precision bf16");
    script.start["precision"] = "f16";
    fail(script, "NotFinite", "the loss is nan", 9);
  }
  {
    Script& script = add("not_finite", "--clip-norm 1");
    fail(script, "NotFinite", "the loss is inf", 9);
  }
  fail(add("not_finite", "--check-nan"), "NotFinite", "the loss is nan", 1);
  fail(add("device_failed", "(--on-device-error|--checkpoint|--device cpu)"), "DeviceError",
       "clFinish: CL_OUT_OF_RESOURCES", 12);
  fail(add("other_error", ""), "IoError", "npy: a.npy is cut off", 12);
  add("cut_off", "(--checkpoint|--(micro-)?batch 32)").last = nullptr;
  add("memory_pressure", "--(micro-)?batch 32").last["peak_bytes"] = 9e9;
  add("batch_norm_starves", "--batch 64").start.update({{"batch_norms", 3}, {"batch", 8}});
  add("rate_too_large", "--rate 0.001").start["rate"] = 0.5;
  add("rate_not_scaled", "--scale-rate linear --base-batch 64").start["batch"] = 512;
  add("loss_does_not_fall", "--rate 0.003").losses = std::vector<double>(40, 2.3);
  {
    Script& script = add("loss_does_not_fall", "--rate 0.0001");
    for (int i = 0; i < 40; ++i) script.losses.push_back(1 + i);
  }
  {
    Script& script = add("loss_does_not_fall", "--warmup 10");
    script.losses = std::vector<double>(40, 2.3);
    script.start["warmup"] = 150;
  }
  {
    Script& script = add("skipped_steps", "--precision bf16");
    script.start["precision"] = "f16";
    script.last.update({{"skipped_steps", 60}, {"loss_scale", 1.0}});
  }
  {
    Script& script = add("gradients_explode", "--clip-norm 2");
    script.norms = std::vector<double>(40, 1.0);
    script.norms[30] = 70;
  }
  {
    Script& script = add("gradients_explode", "--rate 0.000333");
    script.norms = std::vector<double>(40, 1.0);
    script.norms[30] = 70;
    script.start["clip_norm"] = 5;
  }
  {
    Script& script = add("gradients_vanish", "--rate 0.0001");
    script.losses = std::vector<double>(40, 2.3);
    for (int i = 0; i < 40; ++i) script.norms.push_back(i < 10 ? 3 : 1e-9);
  }
  {
    Script& script = add("clips_nearly_always", "--clip-norm 4");
    script.norms = std::vector<double>(40, 4.0);
    script.start["clip_norm"] = 1;
  }
  add("overfitting", "--epochs 2").epochs = {{1.0, 1.0}, {0.7, 0.8}, {0.4, 0.9}, {0.2, 1.3}};
  add("loader_starves", "--workers 2").last["stall_fraction"] = 0.6;
  {
    Script& script = add("loader_starves", "--workers 1");
    script.start["workers"] = 0;
    script.last["stall_fraction"] = 0.6;
  }
  add("checks_everything", "").start["check_nan"] = true;
  add("copies_bytes", "samebytes devices").last["bytes_copied_per_step"] = 4096;
  add("slow_device", "--device cpu").start["device"] = "gpu:0 llvmpipe";
  add("few_threads", "").start["threads"] = 1;
  const TemporaryFolder folder;
  for (const Case& c : cases) {
    const Json findings = findings_of(c.script.write(folder));
    const auto [rule, options] = first_of(findings);
    EXPECT_EQ(rule, c.rule) << findings.dump();
    EXPECT_THAT(options, ContainsRegex(std::string("^") + c.options)) << c.rule << findings.dump();
  }
}

TEST(Doctor, a_profile_says_why_there_is_no_speed_up) {
  struct Case {
    const char* rule;
    double busy, product_share, share_of_bound;
    const char* precision;
  };
  const TemporaryFolder folder;
  for (const Case& c : {Case{"device_idles", 0.2, 0.7, 0.9, "f32"}, Case{"slow_kernel", 0.9, 0.7, 0.1, "f32"},
                        Case{"sixteen_bits_gain_nothing", 0.9, 0.7, 0.9, "bf16"},
                        Case{"bound_by_memory", 0.9, 0.3, 0.9, "f32"}, Case{"", 0.9, 0.7, 0.9, "f32"}}) {
    const auto row = [&](const char* name, double share) -> Json {
      return {{"name", name}, {"seconds", share}, {"share", share}, {"share_of_bound", c.share_of_bound}};
    };
    const Json rows = {row("conv2d", c.product_share), row("fused", 1 - c.product_share)};
    const Json profile = {{"steps", 10},       {"seconds", 1.0}, {"busy_seconds", c.busy}, {"launches", 200},
                          {"by_kernel", rows}, {"by_op", rows},  {"by_layer", rows}};
    put(folder / "profile.json", "a table\n" + profile.dump() + "\n");
    Script script;
    script.start["precision"] = c.precision;
    EXPECT_EQ(first_of(findings_of(script.write(folder), folder / "profile.json")).first, c.rule);
  }
}

TEST(Doctor, reads_what_profile_prints) {
  const TemporaryFolder folder;
  const auto profile = run_command({"profile", "digits", "--steps", "3", "--warmup", "1", "--json", "--quiet"});
  ASSERT_EQ(profile.status, 0) << profile.err;
  put(folder / "profile.json", profile.out);
  findings_of(Script{}.write(folder), folder / "profile.json");
}

TEST(Doctor, tells_people_what_was_seen_why_it_matters_and_what_to_do) {
  const TemporaryFolder folder;
  Script script;
  script.start["rate"] = 0.5;
  const auto result = run_command({"doctor", script.write(folder)});
  EXPECT_EQ(result.status, 0);
  for (const char* part : {"run.jsonl: cnn, batch 64, f32, adamw at 0.5", "1. rate too large (advice)\n", "   seen  ",
                           "run.jsonl:1: the rate is 0.5", "   why   ", "   do    --rate 0.001  "})
    EXPECT_THAT(result.out, HasSubstr(part));
}

TEST(Doctor, the_last_line_of_a_killed_run_may_be_cut_but_no_other) {
  const TemporaryFolder folder;
  const std::string start = healthy().dump() + "\n";
  put(folder / "cut.jsonl", start + R"({"event":"step","step":1,"lo)");
  EXPECT_EQ(first_of(findings_of(folder / "cut.jsonl")).first, "cut_off");
  put(folder / "broken.jsonl", "not JSON\n" + start);
  put(folder / "other.jsonl", "{\"a\": 1}\n");
  put(folder / "empty.jsonl", "");
  put(folder / "good.jsonl", start);
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong = {
      {{folder / "broken.jsonl"}, "broken.jsonl:1: at byte 1: expected JSON, found"},
      {{folder / "other.jsonl"}, "other.jsonl is no log of `samebytes train"},
      {{folder / "empty.jsonl"}, "empty.jsonl is no log"},
      {{folder / "none.jsonl"}, "none.jsonl cannot be read"},
      {{folder / "good.jsonl", folder / "other.jsonl"}, "other.jsonl is no profile"},
      {{}, "doctor needs RUN.jsonl"},
  };
  for (const auto& [files, message] : wrong) {
    std::vector<std::string> words = {"doctor"};
    words.insert(words.end(), files.begin(), files.end());
    const auto result = run_command(words);
    EXPECT_EQ(result.status, 2) << message;
    EXPECT_THAT(result.err, HasSubstr(message));
  }
}

TEST(Doctor, deep_logs_and_profiles_are_refused) {
  const TemporaryFolder folder;
  const std::string start = healthy().dump() + "\n";
  const std::string deep = R"({"event":"start","x":)" + std::string(100000, '[') + std::string(100000, ']') + "}\n";
  put(folder / "good.jsonl", start);
  for (const auto& [second, message] : std::vector<std::pair<std::string, std::string>>{
           {deep, ":2: expected JSON of at most 64 levels, found more"},
           {R"({"event":"step","loss":1e999})", ":2: expected JSON, found number overflow"},
           {"{\"event\":\"\xff\"}", ":2: at byte " + std::to_string(start.size() + 10) + ": expected JSON"},
           {"[1]", ":2: at byte " + std::to_string(start.size()) + ": expected a JSON object, found array"}}) {
    put(folder / "log.jsonl", start + second + "\n" + start);
    put(folder / "profile.json", start + second);
    for (const auto& words : {std::vector<std::string>{"doctor", folder / "log.jsonl"},
                              std::vector<std::string>{"doctor", folder / "good.jsonl", folder / "profile.json"}}) {
      const auto result = run_command(words);
      EXPECT_EQ(result.status, 2) << message;
      EXPECT_THAT(result.err, HasSubstr(words.back() + message));
      EXPECT_THAT(result.err, Not(HasSubstr("json.exception")));
    }
  }
}

TEST(Doctor, a_log_whose_name_is_no_utf8_gets_a_diagnosis) {
  const TemporaryFolder folder;
  Script script;
  script.start["rate"] = 0.5;
  const std::string path = folder / "a\xff.jsonl";
  std::filesystem::rename(script.write(folder), path);
  const auto result = run_command({"doctor", path, "--json"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.json()["findings"][0]["file"].get<std::string>(), HasSubstr("a\ufffd.jsonl"));
}

}  // namespace
}  // namespace samebytes::testing

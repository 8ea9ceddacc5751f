// A row of the option table (option_table.h): everything that the command knows about one option. The rows stand below
// the members that they fill, in options_training.h, options_running.h and options_tools.h, so a new option is a member
// with its row, the code that reads the member, and a test.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace samebytes::cli {

// Null where there is no value.
template <class T>
nlohmann::ordered_json json_of(const std::optional<T>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json();
}

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
  memory,
  completion,
  man,
  run,
  inspect,
  convert,
  data,
  new_,
  finetune,
  chat,
  embed,
  warm
};

// A set of verbs: Verb::train | Verb::bench.
class Verbs {
 public:
  constexpr Verbs() = default;
  constexpr Verbs(Verb verb) : bits_(1U << static_cast<unsigned>(verb)) {}
  constexpr bool has(Verb verb) const { return (bits_ & Verbs(verb).bits_) != 0; }
  constexpr bool overlaps(Verbs other) const { return (bits_ & other.bits_) != 0; }
  constexpr bool is_empty() const { return bits_ == 0; }
  friend constexpr Verbs operator|(Verbs a, Verbs b) {
    a.bits_ |= b.bits_;
    return a;
  }

 private:
  std::uint32_t bits_ = 0;
};
constexpr Verbs operator|(Verb a, Verb b) { return Verbs(a) | Verbs(b); }

inline constexpr Verbs kStepVerbs = Verb::train | Verb::bench | Verb::warm | Verb::profile | Verb::estimate;
inline constexpr Verbs kWorkloadVerbs = kStepVerbs | Verb::eval | Verb::sweep;  // those that take a run file
inline constexpr Verbs kModelVerbs = Verb::run | Verb::inspect;                 // those of a model's file
inline constexpr Verbs kLanguageVerbs =
    Verb::finetune | Verb::chat | Verb::embed;  // those of a language model's folder
inline constexpr Verbs kDeviceVerbs =
    kWorkloadVerbs | kModelVerbs | kLanguageVerbs | Verb::convert | Verb::generate | Verb::tune;

// Why an option refuses a text; empty where it takes it.
using Check = std::function<std::string(const std::string& text)>;
Check whole(std::int64_t low, std::int64_t high);   // a whole number from low to high
Check natural();                                    // a whole number, at least 0, of 64 bits
Check number(double low, double high);              // a number from low to high
Check above_zero();                                 // a number above 0
Check at_least_zero();                              // a number, at least 0
Check identifier();                                 // letters, digits and _, a letter first
Check or_word(std::string_view word, Check check);  // `word`, or what `check` takes

// What an option's value is, known from its member.
enum class ValueKind : std::uint8_t { flag, whole, number, text };

// Whether a run that goes on from a checkpoint must have the value of the run that wrote it.
enum class Resume : std::uint8_t {
  may_differ,
  must_agree,
  must_agree_if_given  // a value other than the default is part of the checkpoint
};

// Whether the line that opens the log of a training has the value.
enum class Log : std::uint8_t { never, always, if_given };

// Whether the option names a file or a folder that the run writes. All are checked before anything runs.
enum class Writes : std::uint8_t { nothing, file, folder };

struct OptionRow {
  std::string flag;  // with its value: "--clip-norm X"; without dashes it stands by itself: "workload WORKLOAD"
  std::vector<std::string> also = {};     // flags that other programs use for it: "--max-grad-norm"
  std::string_view group = {};            // heading of the help, and section of a run file
  Verbs verbs = {};                       // no two rows of a verb have the same flag
  std::vector<std::string> choices = {};  // all values that there are; else:
  std::string alone = {};                 // the choice that the flag stands for where none follows; empty: one must
  Check check = {};                       // without one the type of the member decides
  std::string needs = {};                 // flag of an option that must be given too
  std::string excludes = {};              // flag of an option that must not be given too
  bool is_required = false;
  Resume resume = Resume::may_differ;
  Log log = Log::never;
  Writes writes = Writes::nothing;
  bool in_run_file = true;
  bool in_rehearsal = true;  // false: a rehearsal of the step (limit.h) goes without it, since it reads or writes files
  // It is wrapped where it is printed; the choices and "default: ..." are added where it does not say them.
  std::string help = {};

  // Filled in from `flag`, which loses it, and from the member.
  std::string value = {};  // in a help text: "N|auto"; empty for a flag
  ValueKind kind = ValueKind::text;
  bool takes_many = false;
  std::string default_text = {};

  bool is_positional() const { return !flag.starts_with("--"); }
  bool takes_file() const {
    for (const char* part : {"FILE", "PATH", "DIR", "LATER", ".json", ".svg"})
      if (value.find(part) != value.npos) return true;
    return false;
  }
  bool takes_folder() const { return value == "DIR"; }
  std::string name() const { return is_positional() ? flag : flag.substr(2); }  // in a run file: clip-norm
  std::vector<std::string> flags() const;                                       // its own, then its aliases
  bool has_name(std::string_view word) const;  // with or without dashes, one of its aliases too; "_" is "-"
  std::string log_name() const;                // in a log: clip_norm
  // Why the option refuses this text; empty where it takes it.
  std::string fault(const std::string& text) const;
};

// Stands in a row's place of a member where a value is written in a way of its own.
struct Written {
  std::function<void(const std::string&)> read;  // a text that the row's check takes
  std::function<std::string()> text;
  std::function<nlohmann::ordered_json()> json;
};

// Headings of help texts, which are sections of run files too.
namespace group {
inline constexpr std::string_view run = "run", model = "model", data = "data", loader = "loader", training = "training",
                                  optimizer = "optimizer", schedule = "schedule", precision = "precision",
                                  memory = "memory", adapters = "adapters", device = "device", parallel = "parallel",
                                  checkpoint = "checkpoint", measurement = "measurement", output = "output";
inline constexpr std::string_view all[] = {run,       model,    data,       loader,      training,
                                           optimizer, schedule, precision,  memory,      adapters,
                                           device,    parallel, checkpoint, measurement, output};
}  // namespace group

}  // namespace samebytes::cli

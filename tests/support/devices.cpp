#include "support/devices.h"

#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <utility>

#include "graph/context.h"
#include "runtime/runtime.h"
#include "samebytes/error.h"
#include "support/environment.h"

namespace samebytes::testing {
namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

template <class T, class... Candidates>
T parse(const char* variable, const std::string& word, Candidates... candidates) {
  for (T candidate : {candidates...})
    if (word == name_of(candidate)) return candidate;
  throw ArgumentError(std::string(variable) + ": unknown word '" + word + "'");
}

MemoryMode parse_mode(const char* variable, const std::string& word) {
  return parse<MemoryMode>(variable, word, MemoryMode::system, MemoryMode::fine, MemoryMode::coarse,
                           MemoryMode::hostptr, MemoryMode::copy);
}

std::vector<std::optional<MemoryMode>> modes() {
  if (const std::string only = environment("SAMEBYTES_MEMORY"); !only.empty())
    return {parse_mode("SAMEBYTES_MEMORY", only)};
  std::vector<std::optional<MemoryMode>> result;
  std::istringstream list(environment("SAMEBYTES_TEST_MODES"));
  for (std::string word; std::getline(list, word, ',');)
    if (!word.empty()) result.push_back(parse_mode("SAMEBYTES_TEST_MODES", word));
  if (result.empty()) result.push_back(std::nullopt);
  return result;
}

// None where there is no device, or where a child process must not open one before its test does: then the tests say
// what is missing.
std::optional<Personality> own_personality() {
  if (!environment("SAMEBYTES_TEST_LATE_DEVICE").empty()) return {};
  try {
    return detail::choose_device(environment("SAMEBYTES_TEST_DEVICE")).personality;
  } catch (const Error&) {
    return {};
  }
}

std::vector<Personality> personalities() {
  if (const std::string only = environment("SAMEBYTES_PERSONALITY"); !only.empty())
    return {parse<Personality>("SAMEBYTES_PERSONALITY", only, Personality::cpu, Personality::gpu)};
  const std::string asked = environment("SAMEBYTES_TEST_PERSONALITIES");
  if (asked == "own") {  // an engine would open a context of the driver for each fixture of the program
    static const std::optional<Personality> own = own_personality();
    if (own) return {*own};
    return {Personality::cpu, Personality::gpu};
  }
  if (!asked.empty() && asked != "all")
    throw ArgumentError("SAMEBYTES_TEST_PERSONALITIES: expected 'all' or 'own', got '" + asked + "'");
  return {Personality::cpu, Personality::gpu};
}

using Engines = std::map<std::string, std::unique_ptr<Engine>>;
Engines& engines() {
  static Engines shared;
  return shared;
}

// Engines go before static objects of the OpenCL driver do.
class EnginesEnvironment : public ::testing::Environment {
 public:
  void TearDown() override { engines().clear(); }
};
[[maybe_unused]] const ::testing::Environment* const kEnvironment =
    ::testing::AddGlobalTestEnvironment(new EnginesEnvironment);

}  // namespace

std::string name_of_case(const DeviceCase& device_case) {
  std::string name = name_of(device_case.personality);
  if (device_case.memory) name += std::string("_") + name_of(*device_case.memory);
  return name;
}

std::vector<DeviceCase> device_cases() {
  std::vector<DeviceCase> cases;
  for (Personality personality : personalities())
    for (const std::optional<MemoryMode>& mode : modes()) cases.push_back({personality, mode});
  return cases;
}

std::unique_ptr<Engine> make_engine(const DeviceCase& device_case, EngineOptions options) {
  // The engine reads it in its constructor only.
  const Environment personality("SAMEBYTES_PERSONALITY", name_of(device_case.personality));
  if (options.device.empty()) options.device = environment("SAMEBYTES_TEST_DEVICE");
  if (device_case.memory) options.memory = device_case.memory;
  return std::make_unique<Engine>(options);
}

Engine& engine_of(const DeviceCase& device_case) {
  std::unique_ptr<Engine>& engine = engines()[name_of_case(device_case)];
  if (!engine) engine = make_engine(device_case);
  return *engine;
}

void check_guards(Engine& engine) {
  if (environment("SAMEBYTES_ALLOCATOR") != "exact") return;
  engine.wait();
  for (const std::string& damage : engine.context()->runtime->check_guards()) ADD_FAILURE() << damage;
}

}  // namespace samebytes::testing

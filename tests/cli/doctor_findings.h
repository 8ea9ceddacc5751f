// What samebytes doctor says of a log: shared by its tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "cli/command.h"

namespace samebytes::testing {

inline std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

// The findings; every option that they name is one of train's, every verb one of the command's.
inline nlohmann::ordered_json findings_of(const std::string& log, const std::string& profile = {}) {
  static const std::string train = run_command({"train", "--help"}).out, verbs = run_command({"--help"}).out;
  std::vector<std::string> arguments = {"doctor", log, "--json"};
  if (!profile.empty()) arguments.push_back(profile);
  const auto result = run_command(arguments);
  EXPECT_EQ(result.status, 0) << result.err;
  const nlohmann::ordered_json json = result.json();
  if (!json.is_object()) return nlohmann::ordered_json::array();
  for (const auto& finding : json["findings"])
    for (const auto& action : finding["actions"]) {
      const auto words = words_of(action["options"]);
      for (std::size_t i = 0; i < words.size(); ++i)
        if (words[0] == "samebytes") {
          if (i == 1) {
            EXPECT_THAT(verbs, ::testing::HasSubstr("\n  " + words[i] + " ")) << finding.dump();
          }
        } else if (words[i].starts_with("--")) {
          EXPECT_THAT(train, ::testing::HasSubstr(words[i])) << finding.dump();
        }
    }
  return json["findings"];
}

// rule of the first finding, and the options of its first action
inline std::pair<std::string, std::string> first_of(const nlohmann::ordered_json& findings) {
  if (findings.empty()) return {};
  const auto& actions = findings[0]["actions"];
  return {findings[0]["rule"], actions.empty() ? "" : actions[0]["options"].get<std::string>()};
}

}  // namespace samebytes::testing

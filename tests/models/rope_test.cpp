// Frequencies of the scaled forms of rotary positions against transformers' (modeling_rope_utils.py, version 5.24).
#include "models/rope.h"

#include <gtest/gtest.h>

#include "models/folders.h"

namespace samebytes::models {
namespace {

std::vector<double> of(const std::string& section, std::int64_t length, std::int64_t depth = 8) {
  const Config config =
      Config::parse("config.json", "{\"max_position_embeddings\": 64, \"rope_parameters\": " + section + "}");
  return Rope(config, rope_section(config), depth).frequencies(length);
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 2e-6 * expected[i]) << i;
}

// The numbers are those of ROPE_INIT_FUNCTIONS[type](config, seq_len=length).
TEST(Rope, forms_have_the_frequencies_of_transformers) {
  expect_near(of(R"({"rope_type": "linear", "rope_theta": 500.0, "factor": 2.5})", 1),
              {0.40000001, 0.084589697, 0.017888544, 0.0037829664});
  expect_near(of(R"({"rope_type": "dynamic", "rope_theta": 500.0, "factor": 3.0})", 40),
              {1, 0.21147424, 0.044721361, 0.0094574159});
  expect_near(of(R"({"rope_type": "dynamic", "rope_theta": 500.0, "factor": 3.0})", 100),
              {1, 0.15210426, 0.023135701, 0.0035190387});
  expect_near(
      of(R"({"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 32})",
         1),
      {1, 0.031185457, 0.0055901702, 0.001182177});
  expect_near(
      of(R"({"rope_type": "yarn", "rope_theta": 500.0, "factor": 4.0, "original_max_position_embeddings": 16})", 1),
      {1, 0.05286856, 0.01118034, 0.002364354});
  expect_near(
      of(R"({"rope_type": "longrope", "rope_theta": 500.0, "short_factor": [1.0, 1.1, 1.2, 1.3], "long_factor": [2.0, 3.0, 4.0, 5.0], "original_max_position_embeddings": 16})",
         16),
      {1, 0.19224931, 0.037267797, 0.0072749355});
  expect_near(
      of(R"({"rope_type": "longrope", "rope_theta": 500.0, "short_factor": [1.0, 1.1, 1.2, 1.3], "long_factor": [2.0, 3.0, 4.0, 5.0], "original_max_position_embeddings": 16})",
         17),
      {0.5, 0.070491411, 0.01118034, 0.0018914831});
}

TEST(Rope, a_part_of_a_head_has_as_many_frequencies) {
  EXPECT_EQ(of(R"({"rope_type": "default", "partial_rotary_factor": 0.5})", 1).size(), 2u);
  EXPECT_EQ(of(R"({"rope_type": "default"})", 1).size(), 4u);
}

}  // namespace
}  // namespace samebytes::models

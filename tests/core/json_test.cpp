// JSON that anybody may have written.
#include "core/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/errors.h"

namespace samebytes::detail {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string error_of(std::string_view text) {
  return message_of<IoError>([&] { parse_json("reader", "file.json", text); });
}

TEST(Json, what_is_whole_is_read) {
  EXPECT_EQ(parse_json("reader", "file.json", R"({"a": [1, 2.5, "x"]})")["a"][1], 2.5);
  const std::string deepest = std::string(kMostJsonLevels, '[') + std::string(kMostJsonLevels, ']');
  EXPECT_TRUE(parse_json("reader", "file.json", deepest).is_array());
}

TEST(Json, damage_names_file_and_place_and_not_the_library) {
  EXPECT_THAT(error_of(R"({"a": 1,)"),
              AllOf(HasSubstr("reader: file.json: at byte 8: expected JSON"), Not(HasSubstr("json.exception"))));
  EXPECT_THAT(error_of("\"\xff\""), AllOf(HasSubstr("file.json: at byte 1"), Not(HasSubstr("json.exception"))));
  try {
    parse_json<nlohmann::json>("reader", "file.json", "[1 2]", 100, [](const std::string&, int) {});
    ADD_FAILURE();
  } catch (const IoError& error) {
    EXPECT_EQ(error.offset(), 103) << "of the file, in which the text begins at byte 100";
    EXPECT_EQ(error.path(), "file.json");
  }
}

TEST(Json, numbers_that_no_double_holds_are_refused) {
  EXPECT_THAT(error_of("[1e999]"), AllOf(HasSubstr("reader: file.json: expected JSON"), Not(HasSubstr("json.exc"))));
}

TEST(Json, nesting_ends_before_the_stack_does) {
  const std::string deep(100000, '[');
  EXPECT_EQ(error_of(deep), "reader: file.json: expected JSON of at most 64 levels, found more");
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_EQ(error_of(objects), "reader: file.json: expected JSON of at most 64 levels, found more");
}

TEST(Json, size_has_a_limit) {
  const auto read = [](std::size_t most) {
    return parse_json<nlohmann::json>(
        "reader", "file.json", "[1,2]", 8, [](const std::string&, int) {}, most);
  };
  EXPECT_EQ(read(5).size(), 2u);
  EXPECT_EQ(message_of<IoError>([&] { read(4); }),
            "reader: file.json: at byte 8: expected JSON of at most 4 bytes, found 5");
}

TEST(Json, an_error_does_not_repeat_a_long_text) { EXPECT_LT(error_of("\"" + std::string(100000, 'a')).size(), 300u); }

TEST(Json, a_text_that_is_no_file_is_read_within_the_same_limits) {
  EXPECT_EQ(parse_json("[1]").value()[0], 1);
  for (const std::string& text : {std::string(100000, '['), std::string("{"), std::string("[1e999]")})
    EXPECT_FALSE(parse_json(text)) << text.substr(0, 20);
}

TEST(Json, values_of_another_type_are_faults_of_the_file) {
  const nlohmann::json json = parse_json("reader", "file.json", R"({"a": "text"})");
  EXPECT_THAT(
      message_of<IoError>([&] { reading_json("reader", "file.json", [&] { return json.at("a").get<double>(); }); }),
      AllOf(HasSubstr("reader: file.json: expected values of the types that belong there"),
            Not(HasSubstr("json.exception"))));
}

TEST(Json, names_that_are_no_utf8_do_not_hide_the_line) {
  EXPECT_EQ(to_line(nlohmann::json{{"path", "a\xff"}}), "{\"path\":\"a\xef\xbf\xbd\"}");
}

TEST(Json, a_file_whose_texts_must_come_back_says_which_one_is_no_utf8) {
  EXPECT_EQ(to_text("writer", nlohmann::json{{"\u00fc", {"\ufffd", 1}}}), "{\"\u00fc\":[\"\ufffd\",1]}");
  const nlohmann::json key{{"a", 1}, {"b", {{"key\xff", 2}}}}, value{"a", {{"k", "value\xc3"}}};
  const std::string expected = "writer: expected names and texts in UTF-8, got ";
  EXPECT_EQ(message_of<ArgumentError>([&] { to_text("writer", key); }), expected + "\"key\ufffd\"");
  EXPECT_EQ(message_of<ArgumentError>([&] { to_text("writer", value); }), expected + "\"value\ufffd\"");
}

}  // namespace
}  // namespace samebytes::detail

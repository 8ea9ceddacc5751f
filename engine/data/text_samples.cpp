#include "samebytes/data/text_samples.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/io_error.h"
#include "core/json.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"

namespace samebytes::data {
namespace {

using Json = nlohmann::ordered_json;  // templates see the keys in their order
constexpr const char* kReader = "read_text_samples";

std::vector<std::int32_t> ids_of(const Json& json) {
  if (!json.is_array()) throw std::invalid_argument("a list of token ids");
  std::vector<std::int32_t> ids;
  for (const Json& one : json) {
    if (!one.is_number_unsigned() || one.get<std::uint64_t>() > std::numeric_limits<std::int32_t>::max())
      throw std::invalid_argument("token ids from 0 to 2^31 - 1");
    ids.push_back(one.get<std::int32_t>());
  }
  return ids;
}

TextSample sample_of(const Json& json) {
  if (json.is_object() && json.contains("prompt") && json.contains("answer"))
    return prompt_and_answer(ids_of(json["prompt"]), ids_of(json["answer"]));
  if (!json.is_object() || !json.contains("pieces") || !json["pieces"].is_array())
    throw std::invalid_argument("an object with prompt and answer, or with pieces");
  TextSample sample;
  for (const Json& piece : json["pieces"]) {
    if (!piece.is_object() || !piece.contains("ids") || !piece.value("counts", Json(false)).is_boolean())
      throw std::invalid_argument("pieces with ids and counts");
    sample.pieces.push_back({ids_of(piece["ids"]), piece.value("counts", false)});
  }
  return sample;
}

const std::string* text_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || !found->is_string() ? nullptr : &found->get_ref<const std::string&>();
}

// A question and its answer, in the words of the template or without one.
TextSample question_and_answer(const std::string& prompt, const std::string& answer, const ChatReader& reader) {
  if (reader.chat_template)
    return chat_sample(
        Json::array({{{"role", "user"}, {"content", prompt}}, {{"role", "assistant"}, {"content", answer}}}).dump(),
        reader);
  std::vector<std::int32_t> ids = reader.tokenizer.encode(answer, {.add_special_tokens = false}).ids;
  if (reader.end) ids.push_back(*reader.end);
  return prompt_and_answer(reader.tokenizer.encode(prompt).ids, std::move(ids));
}

TextSample chat_of(const Json& json, const ChatReader& reader) {
  if (json.is_object() && json.contains("messages")) return chat_sample(json["messages"].dump(), reader);
  if (json.is_object()) {
    const std::string* prompt = text_in(json, "prompt");
    const std::string* answer =
        text_in(json, "answer") != nullptr ? text_in(json, "answer") : text_in(json, "completion");
    if (prompt != nullptr && answer != nullptr) return question_and_answer(*prompt, *answer, reader);
    const std::string *instruction = text_in(json, "instruction"), *output = text_in(json, "output"),
                      *input = text_in(json, "input");
    if (instruction != nullptr && output != nullptr)
      return question_and_answer(*instruction + (input == nullptr || input->empty() ? "" : "\n\n" + *input), *output,
                                 reader);
    if (const std::string* text = text_in(json, "text")) {
      std::vector<std::int32_t> ids = reader.tokenizer.encode(*text).ids;
      if (reader.end) ids.push_back(*reader.end);
      return {.pieces = {{.ids = std::move(ids), .counts = true}}};
    }
  }
  throw std::invalid_argument(
      "an object with messages, with prompt and answer, with instruction and output, or with text");
}

// A sample from each line that is not empty.
template <class SampleOf>
std::vector<TextSample> samples_of_lines(const std::string& path, const char* reader, const SampleOf& sample_of_line) {
  const std::vector<std::byte> bytes = io::read_file(path);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<TextSample> samples;
  std::int64_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    ++number;
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      const Json json =
          detail::parse_json<Json>(reader, path, line, static_cast<std::int64_t>(at), [](const std::string&, int) {});
      const auto fail = [&](const std::string& expected) {
        detail::throw_io(reader, path, static_cast<std::int64_t>(at), expected,
                         "line " + std::to_string(number) + ": " + json.dump().substr(0, 60));
      };
      try {
        samples.push_back(sample_of_line(json));
      } catch (const std::invalid_argument& error) {
        fail(error.what());
      } catch (const Error& error) {
        fail(std::string("a conversation for the template (") + error.what() + ")");
      }
    }
    at = end + 1;
  }
  if (samples.empty()) detail::throw_io(reader, path, 0, "samples, one a line", "none");
  return samples;
}

// The first tokens of a sample, and their labels.
struct Tokens {
  std::vector<std::int32_t> ids, labels;
  bool is_cut = false;
  std::int64_t counted = 0;
};
Tokens tokens_of(const TextSample& sample, std::int64_t context) {
  Tokens tokens;
  for (const TextSample::Piece& piece : sample.pieces)
    for (const std::int32_t id : piece.ids) {
      if (static_cast<std::int64_t>(tokens.ids.size()) == context) {
        tokens.is_cut = true;
        return tokens;
      }
      const bool counts = piece.counts && !tokens.ids.empty();
      tokens.ids.push_back(id);
      tokens.labels.push_back(counts ? id : kIgnoredLabel);
      tokens.counted += counts;
    }
  return tokens;
}

}  // namespace

TextSample prompt_and_answer(std::vector<std::int32_t> prompt, std::vector<std::int32_t> answer) {
  return {.pieces = {{.ids = std::move(prompt), .counts = false}, {.ids = std::move(answer), .counts = true}}};
}

std::vector<TextSample> read_text_samples(const std::string& path) {
  return samples_of_lines(path, kReader, sample_of);
}

TextSample chat_sample(std::string_view messages, const ChatReader& reader) {
  if (!reader.chat_template) throw ArgumentError("chat_sample: expected a chat template for messages, got none");
  const text::ChatTemplate& chat = *reader.chat_template;
  const Json all = detail::parse_json<Json>(messages).value_or(nullptr);
  if (!all.is_array() || all.empty()) throw ArgumentError("chat_sample: expected a JSON list of messages");
  const std::string whole = chat.apply_json(messages);
  TextSample sample;
  const auto add = [&](const std::string& text, bool counts) {
    if (!text.empty())
      sample.pieces.push_back({reader.tokenizer.encode(text, {.add_special_tokens = false}).ids, counts});
  };
  std::size_t at = 0;
  const auto part_of_whole = [&](const std::string& begin) {
    if (begin.size() < at || !whole.starts_with(begin))
      throw Error("chat_sample: the template writes a conversation differently when more follows, so the answers in " +
                  std::string("it have no place: ") + begin.substr(std::min(at, begin.size()), 40));
    return begin.size();
  };
  Json before = Json::array();
  for (const Json& message : all) {
    const bool is_answer = message.is_object() && message.value("role", Json()) == "assistant";
    if (is_answer) {
      const std::size_t begin = part_of_whole(chat.apply_json(before.dump(), {.add_generation_prompt = true}));
      add(whole.substr(at, begin - at), false);
      at = begin;
    }
    before.push_back(message);
    if (is_answer) {
      const std::size_t end =
          before.size() == all.size() ? whole.size() : part_of_whole(chat.apply_json(before.dump()));
      add(whole.substr(at, end - at), true);
      at = end;
    }
  }
  add(whole.substr(at), false);
  return sample;
}

std::vector<TextSample> read_chats(const std::string& path, const ChatReader& reader) {
  return samples_of_lines(path, "read_chats", [&](const Json& json) { return chat_of(json, reader); });
}

TextRows text_rows(const std::vector<TextSample>& samples, const TextRowOptions& options) {
  if (options.context < 2)
    throw ArgumentError("text_rows: context must be 2 or more, got " + std::to_string(options.context));
  if (options.padding < 0)
    throw ArgumentError("text_rows: padding must be 0 or more, got " + std::to_string(options.padding));
  TextRows rows;
  std::vector<Tokens> all;
  for (const TextSample& sample : samples) {
    Tokens tokens = tokens_of(sample, options.context);
    if (tokens.counted == 0) {
      ++rows.dropped;
      continue;
    }
    rows.cut += tokens.is_cut;
    rows.tokens += static_cast<std::int64_t>(tokens.ids.size());
    rows.counted += tokens.counted;
    all.push_back(std::move(tokens));
  }
  if (all.empty())
    throw ArgumentError("text_rows: none of " + std::to_string(samples.size()) + " samples has a token that counts " +
                        "within the context of " + std::to_string(options.context));
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto context = static_cast<std::size_t>(options.context);
  std::vector<std::vector<std::size_t>> members;  // of each row
  if (options.packs) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return all[a].ids.size() > all[b].ids.size(); });
    // Rows by their room: the first of them that a sample fits into.
    std::vector<std::size_t> room;
    std::size_t first = 0;  // rows before it are full
    for (const std::size_t sample : order) {
      std::size_t row = first;
      while (row < room.size() && room[row] < all[sample].ids.size()) ++row;
      if (row == room.size()) {
        room.push_back(context);
        members.emplace_back();
      }
      room[row] -= all[sample].ids.size();
      members[row].push_back(sample);
      while (first < room.size() && room[first] < 2) ++first;
    }
  } else {
    for (const std::size_t sample : order) members.push_back({sample});
  }
  rows.rows = static_cast<std::int64_t>(members.size());
  rows.samples = static_cast<std::int64_t>(all.size());
  const std::size_t count = members.size() * context;
  std::vector<std::int32_t> ids(count, options.padding), labels(count, kIgnoredLabel), texts(count);
  for (std::size_t row = 0; row < members.size(); ++row) {
    std::size_t at = row * context;
    const std::size_t end = at + context;
    std::int32_t text = 0;
    for (const std::size_t sample : members[row]) {
      std::copy(all[sample].ids.begin(), all[sample].ids.end(), ids.begin() + static_cast<std::ptrdiff_t>(at));
      std::copy(all[sample].labels.begin(), all[sample].labels.end(), labels.begin() + static_cast<std::ptrdiff_t>(at));
      std::fill_n(texts.begin() + static_cast<std::ptrdiff_t>(at), all[sample].ids.size(), text++);
      at += all[sample].ids.size();
    }
    std::fill(texts.begin() + static_cast<std::ptrdiff_t>(at), texts.begin() + static_cast<std::ptrdiff_t>(end), text);
    rows.is_packed = rows.is_packed || members[row].size() > 1;
  }
  const Shape shape{rows.rows, options.context};
  rows.set = in_memory(
      {{"ids", HostArray(shape, ids)}, {"labels", HostArray(shape, labels)}, {"texts", HostArray(shape, texts)}});
  return rows;
}

}  // namespace samebytes::data

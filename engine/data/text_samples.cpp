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

using Json = nlohmann::json;
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
          detail::parse_json<Json>(kReader, path, line, static_cast<std::int64_t>(at), [](const std::string&, int) {});
      try {
        samples.push_back(sample_of(json));
      } catch (const std::invalid_argument& error) {
        detail::throw_io(kReader, path, static_cast<std::int64_t>(at), error.what(),
                         "line " + std::to_string(number) + ": " + json.dump().substr(0, 60));
      }
    }
    at = end + 1;
  }
  if (samples.empty()) detail::throw_io(kReader, path, 0, "samples, one a line", "none");
  return samples;
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

// Cuts a template into texts, outputs and tags, as Jinja's lexer does with trim_blocks and lstrip_blocks.
#include <algorithm>

#include "core/io_error.h"
#include "text/jinja.h"

namespace samebytes::detail::jinja {
namespace {

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string with_plain_line_ends(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\r') {
      if (i + 1 < text.size() && text[i + 1] == '\n') continue;
      result += '\n';
    } else {
      result += text[i];
    }
  }
  if (!result.empty() && result.back() == '\n') result.pop_back();
  return result;
}

// Where the mark ends that closes what begins at `from`, outside of quoted texts.
std::size_t find_end(std::string_view text, std::size_t from, std::string_view mark, bool has_quotes) {
  char quote = 0;
  int braces = 0;
  for (std::size_t i = from; i + 1 < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\')
        ++i;
      else if (c == quote)
        quote = 0;
      continue;
    }
    if (braces == 0 && text.substr(i, 2) == mark) return i;
    if (!has_quotes) continue;
    if (c == '\'' || c == '"') quote = c;
    if (c == '{') ++braces;
    if (c == '}' && braces > 0) --braces;
  }
  return std::string_view::npos;
}

}  // namespace

void throw_syntax(const std::string& path, int line, const std::string& expected, const std::string& got) {
  throw_io("chat template", path, -1, expected + " in line " + std::to_string(line), got);
}

std::vector<Piece> pieces_of(const std::string& path, std::string_view given) {
  const std::string text = with_plain_line_ends(given);
  std::vector<Piece> pieces;
  std::size_t at = 0;
  int line = 1;
  bool begins_line = true;  // whether what is before `at` ends a line
  const auto count_lines = [&](std::size_t from, std::size_t to) {
    line += static_cast<int>(std::count(text.begin() + static_cast<std::ptrdiff_t>(from),
                                        text.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
  };
  while (at < text.size()) {
    std::size_t open = text.find('{', at);
    while (open != std::string::npos &&
           (open + 1 == text.size() || std::string_view("{%#").find(text[open + 1]) == std::string_view::npos))
      open = text.find('{', open + 1);
    const std::size_t end_of_text = std::min(open, text.size());
    std::string before = text.substr(at, end_of_text - at);
    const int first_line = line;
    count_lines(at, end_of_text);
    if (open == std::string::npos) {
      pieces.push_back({Piece::Kind::text, before, first_line});
      break;
    }
    const char kind = text[open + 1];
    const char sign = open + 2 < text.size() ? text[open + 2] : ' ';
    if (sign == '-') {
      while (!before.empty() && is_blank(before.back())) before.pop_back();
    } else if (sign != '+' && kind != '{') {
      const std::size_t newline = before.rfind('\n');
      const std::size_t start = newline == std::string::npos ? 0 : newline + 1;
      if ((start > 0 || begins_line) &&
          std::all_of(before.begin() + static_cast<std::ptrdiff_t>(start), before.end(), is_blank))
        before.resize(start);
    }
    if (!before.empty()) pieces.push_back({Piece::Kind::text, before, first_line});
    const std::string mark = kind == '{' ? "}}" : kind == '%' ? "%}" : "#}";
    const std::size_t inner = open + 2 + (sign == '-' || sign == '+' ? 1 : 0);
    const std::size_t close = find_end(text, inner, mark, kind != '#');
    if (close == std::string::npos) throw_syntax(path, line, "an end " + mark, "the end of the template");
    const char last = close > inner ? text[close - 1] : ' ';
    const bool has_sign = last == '-' || last == '+';
    const std::string body = text.substr(inner, close - inner - (has_sign ? 1 : 0));
    if (kind != '#') pieces.push_back({kind == '{' ? Piece::Kind::output : Piece::Kind::tag, body, line});
    at = close + 2;
    if (last == '-') {
      while (at < text.size() && is_blank(text[at])) ++at;
    } else if (kind != '{' && last != '+' && at < text.size() && text[at] == '\n') {
      ++at;
    }
    count_lines(open, at);
    begins_line = text[at - 1] == '\n';
  }
  return pieces;
}

}  // namespace samebytes::detail::jinja

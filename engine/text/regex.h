// Regular expressions over UTF-8, by PCRE2 with its machine code where the CPU has it. Patterns come from files that
// anybody may have written, so a search has a limit of steps, and one that passes it is an Error.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace samebytes::detail {

class Regex {
 public:
  struct Match {
    std::size_t begin = 0, end = 0;  // bytes
  };

  // In the syntax of Oniguruma and of Rust's crate `regex`, as far as PCRE2 has it: \s, \w, \d and \h are Unicode's.
  // Throws ArgumentError for a pattern that is not one.
  explicit Regex(const std::string& pattern);

  // Finds matches from left to right. Several threads may search with one Regex, each with its own Search.
  class Search {
   public:
    Search(const Regex& regex, std::string_view text);  // the text in UTF-8, which must outlive it
    ~Search();
    Search(const Search&) = delete;
    Search& operator=(const Search&) = delete;
    std::optional<Match> next();

   private:
    // Unused in a build without text, where the constructor throws.
    [[maybe_unused]] const Regex& regex_;
    std::string_view text_;
    [[maybe_unused]] void* data_;
    [[maybe_unused]] std::size_t place_ = 0;
    [[maybe_unused]] bool is_empty_allowed_ = true;
  };

 private:
  struct Code;
  std::shared_ptr<const Code> code_;
};

}  // namespace samebytes::detail

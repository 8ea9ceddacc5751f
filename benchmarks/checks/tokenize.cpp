// Ids of texts for benchmarks/tokenizer_ids.py: check_tokenize TOKENIZER TEXTS IDS [RUNS]. TEXTS has texts with a zero
// byte behind each; IDS gets, for each of them, the number of its ids and the ids, all i32. Prints the seconds of the
// fastest run, with one thread and without reading and writing.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "samebytes/samebytes.h"

int main(int argc, char** argv) {
  if (argc < 4) {
    fmt::print(stderr, "check_tokenize TOKENIZER TEXTS IDS [RUNS]\n");
    return 2;
  }
  try {
    const auto seconds_since = [](std::chrono::steady_clock::time_point start) {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    };
    const auto opening = std::chrono::steady_clock::now();
    const auto tokenizer = samebytes::text::Tokenizer::load(argv[1]);
    const double open = seconds_since(opening);
    const std::vector<std::byte> file = samebytes::io::read_file(argv[2]);
    std::vector<std::string> texts;
    const char* place = reinterpret_cast<const char*>(file.data());
    for (const char* const end = place + file.size(); place < end; place += texts.back().size() + 1)
      texts.emplace_back(place, std::find(place, end, '\0'));
    std::vector<samebytes::text::Encoding> encodings;
    double best = 1e300;
    for (int run = argc > 4 ? std::atoi(argv[4]) : 1; run > 0; --run) {
      encodings.clear();
      // A tokenizer of its own for each run: no words of the last one are known.
      const auto fresh = samebytes::text::Tokenizer::load(argv[1]);
      const auto start = std::chrono::steady_clock::now();
      encodings = fresh.encode_batch(texts);
      best = std::min(best, seconds_since(start));
    }
    std::ofstream out(argv[3], std::ios::binary);
    std::size_t tokens = 0;
    for (const auto& encoding : encodings) {
      const auto count = static_cast<std::int32_t>(encoding.ids.size());
      out.write(reinterpret_cast<const char*>(&count), sizeof count);
      out.write(reinterpret_cast<const char*>(encoding.ids.data()),
                static_cast<std::streamsize>(encoding.ids.size() * sizeof(std::int32_t)));
      tokens += encoding.ids.size();
    }
    fmt::print("{{\"open\": {:.6f}, \"seconds\": {:.6f}, \"tokens\": {}}}\n", open, best, tokens);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}

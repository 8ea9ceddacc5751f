// A reader of files that strangers may have made: what a whole file is, and how one is read. Each *_target.cpp adds
// one. fuzz_test.cpp reads whole, damaged and once found files in every build; fuzz.cc searches with libFuzzer.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace samebytes::fuzz {

struct Target {
  std::string name;  // of the folder in tests/fuzz/found with the files that once went wrong
  std::string file;  // the name that a file gets before it is read
  // Puts whole files into a folder, by our own writers where there are any.
  std::function<void(const std::string& folder)> make;
  // Throws samebytes::Error for a file that it refuses, and nothing else.
  std::function<void(const std::string& path)> read;
  std::vector<std::string> words = {};  // that such files are made of
  // Another file much like the given one, of which only its readers know what makes it so; else bytes are changed.
  std::function<std::string(const std::string& file, unsigned seed)> change = {};
  // Bytes of memory at most for each byte of a file that is not packed by gzip, beside kRoom.
  double growth = 2;
};

constexpr std::size_t kRoom = std::size_t{16} << 20;  // what a reader may take for the smallest file

// In the order of their names.
std::vector<Target>& targets();

// How often its size the file may take in memory: deflate makes at most 1 032 bytes of one.
double growth_of(const Target& target, std::string_view file);

struct Added {
  explicit Added(Target target);
};

}  // namespace samebytes::fuzz

// Rules that every source file keeps: its size, its head, and words that may not stay.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "support/source_tree.h"

namespace samebytes::testing {
namespace {

constexpr std::size_t kLinesThatNeedAReason = 400;
constexpr std::size_t kMostLines = 800;
constexpr std::size_t kMostLinesOfPublicHeader = 250;
constexpr std::size_t kHeadLines = 20;

std::vector<SourceFile> all_sources() {
  return source_files({"engine", "include", "cl", "tests", "benchmarks", "examples", "cmake"},
                      {".h", ".cpp", ".cl", ".clh", ".cmake", ".sh"});
}

std::string head_of(const SourceFile& file) {
  std::string head;
  const auto lines = lines_of(file.text);
  for (std::size_t i = 0; i < lines.size() && i < kHeadLines; ++i) {
    if (!lines[i].starts_with("//") && !lines[i].starts_with("#")) break;
    head += lines[i] + "\n";
  }
  return head;
}

// The reason reads "Over 400 lines because ..." in the comment that opens the file.
std::string size_fault(const SourceFile& file) {
  const std::size_t lines = lines_of(file.text).size();
  if (file.path.starts_with("include/") && lines > kMostLinesOfPublicHeader)
    return file.path + " has " + std::to_string(lines) +
           " lines: a public header is a contract; what the engine alone needs goes into an Impl";
  if (lines > kMostLines) return file.path + " has " + std::to_string(lines) + " lines: split it";
  if (lines > kLinesThatNeedAReason && head_of(file).find("Over 400 lines because") == std::string::npos) {
    return file.path + " has " + std::to_string(lines) +
           " lines: say \"Over 400 lines because ...\" in its head comment";
  }
  return "";
}

TEST(Files, are_short_or_say_why_not) {
  std::vector<std::string> faults;
  for (const auto& file : all_sources()) {
    if (const auto fault = size_fault(file); !fault.empty()) faults.push_back(fault);
  }
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

TEST(Files, a_long_one_without_a_reason_is_found) {
  const std::string body(kLinesThatNeedAReason + 1, '\n');
  EXPECT_NE(size_fault({"engine/core/long.cpp", "// About something.\n" + body}), "");
  EXPECT_EQ(size_fault({"engine/core/long.cpp", "// Over 400 lines because it is a table.\n" + body}), "");
  EXPECT_NE(size_fault({"engine/core/long.cpp", "// Over 400 lines because it is a table.\n" + body + body}), "");
  EXPECT_NE(size_fault({"include/samebytes/long.h", std::string(kMostLinesOfPublicHeader + 1, '\n')}), "");
  EXPECT_EQ(size_fault({"include/samebytes/long.h", std::string(kMostLinesOfPublicHeader, '\n')}), "");
}

TEST(Files, every_header_says_what_it_is_and_is_read_once) {
  std::vector<std::string> faults;
  for (const auto& file : source_files({"engine", "include", "cl", "tests", "benchmarks"}, {".h"})) {
    if (!file.text.starts_with("//")) faults.push_back(file.path + " does not open with a comment");
    if (file.text.find("\n#pragma once\n") == std::string::npos) faults.push_back(file.path + " lacks #pragma once");
  }
  for (const auto& file : source_files({"cl"}, {".cl", ".clh"})) {
    if (!file.text.starts_with("//")) faults.push_back(file.path + " does not open with a comment");
  }
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

// What compiles here by a header that others include, and not with the newer libraries of other distributions:
// fmt 11 has join() in <fmt/ranges.h>; opencl.hpp of 2023 made the platform of a device a cl::Platform.
std::string portability_fault(const SourceFile& file) {
  const bool joins = file.text.find("fmt::join(") != std::string::npos;
  if (joins && file.text.find("#include <fmt/ranges.h>") == std::string::npos)
    return file.path + " has fmt::join without <fmt/ranges.h>";
  for (const auto& line : lines_of(file.text))
    if (line.find("getInfo<CL_DEVICE_PLATFORM>") != std::string::npos &&
        line.find("cl::Platform(") == std::string::npos)
      return file.path + " takes the platform of a device as it is";
  return "";
}

TEST(Files, say_what_newer_libraries_want_to_hear) {
  std::vector<std::string> faults;
  for (const auto& file : source_files({"engine", "include", "examples", "benchmarks", "tests"}, {".h", ".cpp"}))
    if (std::string fault = portability_fault(file); !fault.empty() && file.path != "tests/house/files_test.cpp")
      faults.push_back(std::move(fault));
  EXPECT_TRUE(faults.empty()) << joined(faults);
  EXPECT_NE(portability_fault({"a.cpp", "#include <fmt/format.h>\nfmt::join(words, \", \");"}), "");
  EXPECT_NE(portability_fault({"a.cpp", "find_usm(device.getInfo<CL_DEVICE_PLATFORM>(), device());"}), "");
}

TEST(Files, no_word_promises_later_work) {
  // Put together from halves, so that this file does not contain them.
  const std::regex unfinished(std::string("\\b(TO") + "DO|FIX" + "ME|XX" + "X|HA" + "CK)\\b|not imple" +
                              "mented|for n" + "ow\\b");
  std::vector<std::string> faults;
  for (const auto& file : all_sources()) {
    std::size_t number = 0;
    for (const auto& line : lines_of(file.text)) {
      ++number;
      if (std::regex_search(line, unfinished)) faults.push_back(file.path + ":" + std::to_string(number) + ": " + line);
    }
  }
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

// What a pattern may still find: where, and why.
struct Allowed {
  std::string path;
  std::string word;
  std::string reason;
};

// Lines of the sources, comments aside, where the pattern finds what is not allowed. What is allowed and not there is a
// fault, too.
std::vector<std::string> found_in(const std::vector<SourceFile>& files, const std::regex& pattern,
                                  const std::vector<Allowed>& allowed = {}) {
  std::vector<std::string> faults;
  std::set<std::string> used;
  for (const auto& file : files) {
    std::size_t number = 0;
    for (const auto& line : lines_of(without_comments(file.text))) {
      ++number;
      for (std::sregex_iterator at(line.begin(), line.end(), pattern), end; at != end; ++at) {
        const bool is_allowed = std::any_of(allowed.begin(), allowed.end(), [&](const Allowed& one) {
          return one.path == file.path && at->str().find(one.word) != std::string::npos;
        });
        if (is_allowed)
          used.insert(file.path);
        else
          faults.push_back(file.path + ":" + std::to_string(number) + ": " + line);
      }
    }
  }
  for (const auto& one : allowed)
    if (used.count(one.path) == 0) faults.push_back(one.path + " has no " + one.word + ": take it off the list");
  return faults;
}

std::vector<SourceFile> sources_of_the_library() {
  std::vector<SourceFile> files = source_files({"engine", "include"}, {".h", ".cpp"});
  std::erase_if(files, [](const SourceFile& file) { return file.path.starts_with("engine/cli/"); });
  return files;
}

TEST(Files, the_library_neither_prints_nor_exits) {
  static const std::regex printing("std::(cout|cerr|clog)|\\b(f?printf|puts|fputs|exit|_exit|abort|terminate)\\s*\\(");
  const auto faults = found_in(sources_of_the_library(), printing);
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

const std::regex& network() {
  static const std::regex calls(
      "\\b(listen|accept4?|getaddrinfo|gethostbyname)\\s*\\(|(^|[^\\w:])::(bind|connect|socket)\\s*\\(|\\b[AP]F_INET6?"
      "\\b|"
      "<(netdb|arpa/\\w+|netinet/\\w+)\\.h>");
  return calls;
}

// The command as well. Sockets are pairs without a name, between it and the compilers it starts; MPI has its own.
TEST(Files, nothing_listens_on_the_network) {
  const auto faults = found_in(source_files({"engine", "include", "examples"}, {".h", ".cpp"}), network(),
                               {{"engine/core/npy_header.cpp", "accept(", "a parser's own function: takes a letter"}});
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

const std::regex& setters() {
  static const std::regex calls(
      "\\b(setenv|putenv|unsetenv|clearenv|setlocale|uselocale|sigaction|signal|sigprocmask|pthread_sigmask|fesetenv|"
      "fesetround|fesetmode|feenableexcept|fedisableexcept|_mm_setcsr|f?chdir|umask|setrlimit|setpriority|"
      "set_terminate|set_new_handler)\\s*\\(|\\blocale::global\\b|\\b_MM_SET_\\w+");
  return calls;
}

TEST(Files, the_library_changes_nothing_of_its_process) {
  const auto faults = found_in(
      sources_of_the_library(), setters(),
      {{"engine/runtime/devices_report.cpp", "setenv", "pin_threads(), which a program calls for nothing else"}});
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

const std::regex& waits() {
  static const std::regex calls(
      "queue\\w*(\\(\\))?\\.finish\\(\\)|event\\w*\\.wait\\(\\)|\\b(clFinish|clWaitForEvents|waitForEvents)\\s*\\(|"
      "\\bCL_(TRUE|BLOCKING)\\b");
  return calls;
}

// A wait of the driver's own has no end where its device hangs.
TEST(Files, what_waits_for_a_device_is_the_watchdog) {
  const auto faults =
      found_in(sources_of_the_library(), waits(),
               {{"engine/runtime/watchdog.cpp", "clFinish", "after the watchdog's own wait"},
                {"engine/runtime/compiler_process.cpp", "clFinish", "a process that is given up as a whole"}});
  EXPECT_TRUE(faults.empty()) << joined(faults);
}

TEST(Files, planted_listeners_setters_and_waits_are_found) {
  for (const char* const line :
       {"if (::listen(file, 1) != 0) return;", "accept4 (file, nullptr, nullptr, 0)", "address.sin_family = AF_INET;",
        "#include <netinet/in.h>", "::bind(file, &address, sizeof address);"})
    EXPECT_EQ(found_in({{"engine/core/a.cpp", line}}, network()).size(), 1u) << line;
  for (const char* const line :
       {"setenv(\"A\", \"1\", 1);", "std::signal(SIGINT, SIG_IGN);", "::chdir(\"/\");",
        "std::setlocale(LC_ALL, \"C\");", "std::fesetround(FE_UPWARD);", "std::locale::global(std::locale());"})
    EXPECT_EQ(found_in({{"engine/core/a.cpp", line}}, setters()).size(), 1u) << line;
  for (const char* const line : {"queue_.finish();", "device.queue().finish();", "event.wait();",
                                 "::clFinish(queue());", "queue.enqueueReadBuffer(buffer, CL_TRUE, 0, bytes, to);"})
    EXPECT_EQ(found_in({{"engine/core/a.cpp", line}}, waits()).size(), 1u) << line;
  const SourceFile harmless{"engine/core/a.cpp",
                            "// setenv(name)\nentry.signals(); std::bind(f, 1); ::socketpair(AF_UNIX, 0, 0, pair);"};
  EXPECT_TRUE(found_in({harmless}, setters()).empty());
  EXPECT_TRUE(found_in({harmless}, network()).empty());
  EXPECT_TRUE(found_in({{"engine/core/a.cpp", "engine.wait(); watchdog.finish(queue, name);"}}, waits()).empty());
  const std::vector<Allowed> idle{{"engine/core/b.cpp", "setenv", "nobody does"}};
  EXPECT_EQ(found_in({}, setters(), idle).size(), 1u);
}

}  // namespace
}  // namespace samebytes::testing

#include <array>
#include <cstdint>
#include <string_view>

#include "graph/context.h"
#include "samebytes/array.h"

namespace samebytes {
namespace detail {
namespace {

// The folder of the library's sources: this file's path without graph/here.cpp.
std::string_view own_folder() {
  constexpr std::string_view kThis = "graph/here.cpp";
  std::string_view path = __FILE__;
  path.remove_suffix(kThis.size());
  return path;
}

bool is_of_the_library(const char* file) {
  const std::string_view path(file);
  return path.starts_with(own_folder()) || path.find("include/samebytes/") != path.npos;
}

// Whether a file lies in it; caches the last files, because a file's name has the same address in every call.
bool is_own(const char* file) {
  struct Known {
    const char* file = nullptr;
    bool is_own = false;
  };
  thread_local std::array<Known, 64> known;
  Known& slot = known[(reinterpret_cast<std::uintptr_t>(file) >> 3) % known.size()];
  if (slot.file != file) slot = {file, is_of_the_library(file)};
  return slot.is_own;
}

}  // namespace

thread_local constinit SourceLine current_line;

Here::Here(const char* file, int line) noexcept : file_(current_line.file), line_(current_line.line) {
  if (file && !is_own(file)) current_line = {file, line};
}

Here::~Here() { current_line = {file_, line_}; }

}  // namespace detail

Input::Input() noexcept
    : array_([]() -> const Array& {
        static const Array empty;
        return empty;
      }()),
      here_(nullptr, 0) {}

}  // namespace samebytes

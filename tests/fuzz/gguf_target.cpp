#include "fuzz/target.h"
#include "samebytes/io/gguf.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

template <class T>
std::string raw(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}
std::string text(const std::string& value) { return raw<std::uint64_t>(value.size()) + value; }

std::string small_file() {
  constexpr std::uint32_t kU32 = 4, kF32 = 6, kText = 8, kArray = 9;
  std::string file = "GGUF" + raw<std::uint32_t>(3) + raw<std::uint64_t>(1) + raw<std::uint64_t>(4);
  file += text("general.name") + raw(kText) + text("tiny");
  file += text("general.alignment") + raw(kU32) + raw<std::uint32_t>(32);
  file += text("rate") + raw(kF32) + raw(0.5f);
  file += text("words") + raw(kArray) + raw(kText) + raw<std::uint64_t>(2) + text("a") + text("bc");
  file += text("norm") + raw<std::uint32_t>(1) + raw<std::uint64_t>(4) + raw<std::uint32_t>(0) + raw<std::uint64_t>(0);
  file.resize((file.size() + 31) / 32 * 32);
  return file + std::string(16, '\0');
}

const Added added({
    .name = "gguf",
    .file = "x.gguf",
    .make = [](const std::string& folder) { testing::put(folder + "/x", small_file()); },
    .read = [](const std::string& path) { io::read_gguf_header(path); },
    .words = {"GGUF", "general.alignment", std::string("\0\0\0\0\0\0\0\x80", 8), std::string("\x09\0\0\0", 4)},
});

}  // namespace
}  // namespace samebytes::fuzz

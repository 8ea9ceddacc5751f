#include "fuzz/target.h"
#include "samebytes/data/idx.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

using namespace std::string_literals;

const Added added({
    .name = "idx",
    .file = "x",
    .make =
        [](const std::string& folder) {
          testing::put(folder + "/bytes", "\0\0\x08\x02\0\0\0\x02\0\0\0\x03"s + "abcdef");
          testing::put(folder + "/shorts", "\0\0\x0b\x01\0\0\0\x02\xff\xfe\x01\x00"s);
          testing::put(folder + "/doubles", "\0\0\x0e\x01\0\0\0\x01\xbf\xf8\0\0\0\0\0\0"s);
        },
    .read = [](const std::string& path) { data::read_idx(path); },
    .growth = 4,  // signed bytes become i32
});

}  // namespace
}  // namespace samebytes::fuzz

#include "fuzz/target.h"
#include "samebytes/data/csv.h"
#include "samebytes/error.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

const Added added({
    .name = "csv",
    .file = "x.csv",
    .make =
        [](const std::string& folder) {
          testing::put(folder + "/numbers", "1,2.5,3\n-4,\"5\",6e3\n7,8,9\n");
          testing::put(folder + "/words", "a;b;kind\n1;2;pear\n3;4;\"a \"\"b\"\"\"\n");
        },
    .read =
        [](const std::string& path) {
          try {
            data::read_csv(path, {.label = "-1"});
          } catch (const Error&) {
            data::read_csv(path, {.header = true, .label = "-1", .empty_value = 0.0f});
          }
        },
    .words = {"nan", "inf", "1e38", "-0", "\"\"", "\r\n", "\t", "0x1p3"},
    .growth = 16,  // two bytes of text for four of a value, in a vector that grows
});

}  // namespace
}  // namespace samebytes::fuzz

#include "fuzz/target.h"
#include "samebytes/data/series.h"
#include "samebytes/error.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

const Added added({
    .name = "ucr",
    .file = "x",
    .make =
        [](const std::string& folder) {
          testing::put(folder + "/tabs", "10\t1\t2\tNaN\r\n-1.0000000e+00\t3.5\t-4e1\t+5\n");
          testing::put(folder + "/ts",
                       "# a comment\n@problemName a\n@timeStamps false\n@univariate false\n@dimensions 2\n"
                       "@equalLength false\n@classLabel true x y\n@data\n1,2,3:4,5,6:x\n7,8:9,0:y\n");
          testing::put(folder + "/targets", "@problemName b\n@targetLabel true\n@data\n1,?,3:0.5\n");
        },
    .read =
        [](const std::string& path) {
          try {
            data::from_series(data::read_ts(path, {.interpolate = true}));
          } catch (const Error&) {
            data::from_series(data::read_ucr(path, {.interpolate = true}));
          }
        },
    .words = {"@problemName ", "@timeStamps false", "@missing true", "@univariate true", "@dimensions ",
              "@equalLength true", "@seriesLength ", "@classLabel true ", "@targetLabel true", "@data\n", "NaN", "?"},
    .growth = 16,
});

}  // namespace
}  // namespace samebytes::fuzz

#include "fuzz/target.h"
#include "samebytes/data/cifar.h"
#include "samebytes/error.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

std::string record(std::size_t labels) { return std::string(labels, '\3') + std::string(3072, 'a'); }

// As the training file of CIFAR-10, plain or packed, else as that of CIFAR-100 or its names.
const Added added({
    .name = "cifar",
    .file = "x",
    .make =
        [](const std::string& folder) {
          testing::put(folder + "/ten", record(1) + record(1));
          testing::put(folder + "/hundred", record(2));
          testing::put(folder + "/packed", std::string("C10J\0\0\0\0", 8));
          std::string names;
          for (int i = 0; i < 100; ++i) names += "name " + std::to_string(i) + "\n";
          testing::put(folder + "/names", names);
        },
    .read =
        [](const std::string& path) {
          const testing::TemporaryFolder folder;
          const std::string file = testing::get(path);
          try {
            const char* const end = file.starts_with("C10J") ? ".jpegs" : ".bin";
            testing::put(folder / ("train" + std::string(end)), file);
            testing::put(folder / ("test" + std::string(end)), file);
            data::cifar10(folder.string());
          } catch (const Error&) {
            const bool has_names = file.starts_with("name");
            testing::put(folder / "test.bin", record(2));
            testing::put(folder / "train.bin", has_names ? record(2) : file);
            if (has_names) testing::put(folder / "fine_label_names.txt", file);
            data::cifar100(folder.string());
          }
        },
    .words = {"C10J", "\xff\xd8", "\xff\xc0", "\xff\xda", std::string("\0\0\0\1", 4), "\n\n"},
    .growth = 65536,  // as images, for the packed form
});

}  // namespace
}  // namespace samebytes::fuzz

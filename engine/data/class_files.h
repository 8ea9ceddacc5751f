// The files below a folder with one subfolder for each class. Used by the readers of images and of sounds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace samebytes::detail {

struct ClassFiles {
  std::vector<std::string> classes, paths;  // names of the subfolders, sorted; files of one after the other, sorted
  std::vector<std::int32_t> labels;         // of each path
};

// Takes the files with one of these extensions (".png"; in any case), recursively. `what` says them in errors. Throws
// IoError, naming `reader`, for a missing folder, one without subfolders, and a subfolder without such files.
ClassFiles find_class_files(const std::string& reader, const std::string& folder,
                            const std::vector<std::string_view>& extensions, const std::string& what);

}  // namespace samebytes::detail

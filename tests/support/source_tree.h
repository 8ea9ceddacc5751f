// The project's own files as the house tests see them. Paths are relative to the checkout and use '/'.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace samebytes::testing {

struct SourceFile {
  std::string path;
  std::string text;
};

// All files under the folders whose name ends in one of the endings, sorted by path. Folders that do not exist are
// skipped.
std::vector<SourceFile> source_files(const std::vector<std::string>& folders, const std::vector<std::string>& endings);

// The whole file; empty where there is none.
std::string read_text(const std::string& path);

bool exists(const std::string& path);

// Comments replaced by blanks, line breaks kept. Knows // and /* */, not strings: good enough for kernels and include
// lines.
std::string without_comments(std::string_view text);

// Entry name to argument list of a kernel file, blanks squeezed; attributes between `__kernel` and the name are left
// out.
std::map<std::string, std::string> kernel_entries(const std::string& kernel_text);

std::vector<std::string> lines_of(std::string_view text);

// A line for each element, for failure messages.
std::string joined(const std::vector<std::string>& lines);

}  // namespace samebytes::testing

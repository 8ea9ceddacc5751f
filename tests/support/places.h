// Where the checkout and the build lie, for tests that read the tree or start programs.
#pragma once

#include <string>

namespace samebytes::testing {

std::string source_folder();  // "/path/to/samebytes"
std::string build_folder();   // "/path/to/samebytes/build"
std::string cxx_compiler();   // "/usr/bin/c++", which built this

}  // namespace samebytes::testing

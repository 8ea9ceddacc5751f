#include "support/places.h"

namespace samebytes::testing {

std::string source_folder() { return SAMEBYTES_SOURCE_DIR; }
std::string build_folder() { return SAMEBYTES_BINARY_DIR; }
std::string cxx_compiler() { return SAMEBYTES_CXX_COMPILER; }

}  // namespace samebytes::testing

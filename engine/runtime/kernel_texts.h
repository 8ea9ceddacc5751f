// The texts of the .cl files: embedded in the library, or read from the folder SAMEBYTES_KERNEL_DIR (same layout as
// cl/). Pure text work; knows no device.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "samebytes/device.h"

namespace samebytes::detail {

// cl/common, common.clh first, each part preceded by a #line that names its file.
std::string common_text();
// common_text() and then every file of cl/<personality> in the order of names. Throws IoError for an unreadable folder.
// `only`: of one of these files ("gemm") instead of all. `stored_only`: of those that have arrays of `stored`.
// `without`: of all but these.
std::string library_text(Personality personality, const std::string& only = {}, bool stored_only = false,
                         const std::set<std::string>& without = {});
// The stem of the file that holds an entry, by name: the longest one that the entry starts with. Empty where there is
// none.
std::string file_of_entry(Personality personality, const std::string& entry);

// The integer of `#define <name>_VW<width>` or else `#define <name>` in cl/<personality>/<stem>.cl (or common.clh). The
// value may be an expression of integers, + - * / ( ) and other defines. `chosen` are defines given to the build, which
// the file leaves alone (#ifndef). Throws ArgumentError where there is none.
std::int64_t kernel_constant(Personality personality, int vector_width, std::string_view stem, std::string_view name,
                             const std::map<std::string, std::string>& chosen = {});

// The first file that a compiler's log names ("cpu/softmax.cl"); `otherwise` where it names none.
std::string first_file_in_log(const std::string& log, const std::string& otherwise);

}  // namespace samebytes::detail

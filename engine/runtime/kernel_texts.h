// The texts of the .cl files, embedded in the library or read from the folder SAMEBYTES_KERNEL_DIR (same layout as
// cl/), and which of them are compiled together. A line #include "name" includes a file of cl/, once per text. Works on
// text only; knows no device.
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
// common_text(), then the files of cl/<personality> with these stems ("gemm"), in alphabetical order. `stored_only`:
// only those that have arrays of `stored`. Throws IoError for an unreadable folder.
std::string library_text(Personality personality, const std::set<std::string>& stems, bool stored_only = false);

// PoCL reads its declarations of all built-in functions before each text. A text of ours is built with an option that
// leaves them out and brings those of common/builtins.clh; empty for a text of with_any_builtin(), whose author may
// call what these lack, and once give_up_own_builtins() said that a text of ours did.
std::string_view builtins_option(const std::string& text);
std::string with_any_builtin(const std::string& text);
void give_up_own_builtins();
bool are_own_builtins_enough();

// "softmax" for "cpu/softmax.cl"; empty if that is no kernel file of the personality.
std::string stem_of(const std::string& file, Personality personality);
// The files of cl/<personality>, stem to program: the word behind "// Program:" on a line of its own, "others" in a
// file without one.
using KernelFiles = std::map<std::string, std::string>;
KernelFiles kernel_files(Personality personality);
// The stem of the file that holds an entry: the longest one that the entry's name starts with. Empty if there is none.
std::string file_of_entry(const KernelFiles& files, const std::string& entry);

// The integer of `#define <name>_VW<width>` or else `#define <name>` in cl/<personality>/<stem>.cl (or common.clh). The
// value may be an expression of integers, + - * / ( ) and other defines. `chosen` are defines passed to the build,
// which override the file's (#ifndef). Throws ArgumentError if there is none.
std::int64_t kernel_constant(Personality personality, int vector_width, std::string_view stem, std::string_view name,
                             const std::map<std::string, std::string>& chosen = {});

// The log of a compiler that does not follow #line and names lines of the whole text ("<kernel>:1164:46:", NVIDIA's),
// with the files and lines that the text's #line say in their place.
std::string with_files_of(std::string log, const std::string& text);

// The first file that a compiler's log names ("cpu/softmax.cl"); `otherwise` if it names none.
std::string first_file_in_log(const std::string& log, const std::string& otherwise);

}  // namespace samebytes::detail

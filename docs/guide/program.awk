# Makes the C++ program of a page of the guide:  awk -v page=docs/guide/01_arrays.md -f program.awk PAGE > PROGRAM
# Blocks marked ```cpp follow each other in main(); those marked ```cpp file stand before it. The program must print what
# the page's ```text blocks show. Compilers name the page and its line.
function add(text) { if (is_file) file_part = file_part text "\n"; else main_part = main_part text "\n" }
/^```cpp( file)?$/ {
  is_block = 1
  is_file = /file$/
  add("#line " (NR + 1) " \"" page "\"")
  next
}
/^```/ { is_block = 0 }
is_block { add($0) }
END {
  print "#include <samebytes/samebytes.h>\n#include <cmath>\n#include <cstdio>\n#include <filesystem>\n#include <memory>\n#include <vector>"
  print "namespace sb = samebytes;"
  printf "%s", file_part
  print "int main() {"
  printf "%s}\n", main_part
}

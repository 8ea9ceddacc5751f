# Writes the files of docs/adding_an_op.md, section "A whole op":  awk -v from=SOURCE -v to=FOLDER -f adding_an_op.awk PAGE
# A line that begins with a path in backquotes names the file of the block after it. A header that is there already gets
# the block as its last declaration.
/^`[^`]+\/[^`]+`(, a line)?:$/ { split($0, part, "`"); file = part[2]; next }
/^```/ && is_block { is_block = 0; close(out); if (header != "") { print header >> out; close(out); header = "" }; file = ""; next }
/^```(cpp|c)$/ && file != "" {
  is_block = 1
  out = to "/" file
  folder = out
  sub(/\/[^\/]*$/, "", folder)
  system("mkdir -p '" folder "'")
  printf "" > out
  end = ""
  while ((getline line < (from "/" file)) > 0)
    if (line ~ /^}  \/\/ namespace samebytes$/) end = line
    else print line > out
  header = end
  next
}
is_block { print > out }

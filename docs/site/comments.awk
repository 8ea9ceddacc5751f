# Shows Doxygen the comments of a header as what they are: the first ones describe the file, those above a declaration
# describe it, those behind one describe what stands before them. What looks like a command or a tag is text.
function text(line) {
  gsub(/\\/, "\\\\\\\\", line)
  gsub(/@/, "\\@", line)
  gsub(/</, "\\<", line)
  gsub(/>/, "\\>", line)
  return line
}
FNR == 1 { is_head = 1; print "/** @file" }
is_head && /^\/\// { sub(/^\/\/ ?/, ""); print " * " text($0); next }
is_head { is_head = 0; print " */" }
/^ *\/\/ ----/ { sub(/^ *\/\/ -+ */, ""); print "/** @name " text($0) " */"; next }
/^ *\/\/ / { match($0, /^ *\/\/ /); print substr($0, 1, RLENGTH - 3) "/// " text(substr($0, RLENGTH + 1)); next }
/[;,{}] +\/\/ / { match($0, / +\/\/ /); print substr($0, 1, RSTART - 1) "  ///< " text(substr($0, RSTART + RLENGTH)); next }
/^struct std::tuple_/ { sub(/std::/, "") }  # which Doxygen cannot place
{ print }

# Keeps those links of a page that lead to another page or a picture; a link to a place in a page leads to the page, and
# what is not part of the site becomes its text. An apostrophe would end code for Doxygen.
/^```/ { is_code = !is_code }
is_code { print; next }
{
  line = ""
  rest = $0
  while (match(rest, /\[[^][]*\]\([^()]*\)/)) {
    link = substr(rest, RSTART, RLENGTH)
    at = index(link, "](")
    shown = substr(link, 2, at - 2)
    target = substr(link, at + 2, length(link) - at - 2)
    if (target !~ /^http/) sub(/#.*/, "", target)
    before = substr(rest, 1, RSTART - 1)
    is_kept = target ~ /^http/ || target ~ /\.(md|svg)$/
    line = line before (is_kept ? "[" shown "](" target ")" : shown)
    rest = substr(rest, RSTART + RLENGTH)
  }
  count = split(line rest, parts, "`")  # text, code, text, ...
  for (i = 1; i <= count; ++i) {
    has_quote = gsub("'", "\\&#39;", parts[i])
    is_code_part = i % 2 == 0 && i < count
    if (is_code_part) printf (has_quote ? "<code>%s</code>" : "`%s`"), parts[i]
    else printf "%s%s", (i % 2 == 0 ? "`" : ""), parts[i]
  }
  print ""
}

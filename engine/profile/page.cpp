#include "profile/page.h"

#include <fmt/format.h>

#include "profile/svg.h"

namespace samebytes::detail {

std::string page_begin(std::string_view title) {
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title>\n"
      "<style>body{{font-family:sans-serif;max-width:980px;margin:2em auto;color:#222}}"
      "table{{border-collapse:collapse;font-size:90%}}td,th{{padding:2px 10px;text-align:right;"
      "border-bottom:1px solid #ddd}}td:first-child,th:first-child{{text-align:left}}h2{{margin-top:1.6em}}</style>"
      "</head><body>\n<h1>{0}</h1>\n",
      escaped(title));
}

std::string page_end() { return "</body></html>\n"; }

std::string section(std::string_view heading, std::string_view about, const std::string& body) {
  if (body.empty()) return "";
  return fmt::format("<h2>{}</h2>\n<p>{}</p>\n{}", escaped(heading), escaped(about), body);
}

}  // namespace samebytes::detail

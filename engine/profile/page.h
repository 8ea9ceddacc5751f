// What all pages of ours begin, end and are divided with: one file of HTML that loads nothing.
#pragma once

#include <string>
#include <string_view>

namespace samebytes::detail {

std::string page_begin(std::string_view title);  // up to the heading, which is the title
std::string page_end();
// Nothing where the body is empty. `about` is one line under the heading.
std::string section(std::string_view heading, std::string_view about, const std::string& body);

}  // namespace samebytes::detail

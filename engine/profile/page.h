// What all pages of ours begin, end and are divided with: one file of HTML that loads nothing.
#pragma once

#include <string>
#include <string_view>

namespace samebytes::detail {

// Of a picture as wide as the page: pixels, with room for names on the left.
constexpr double kPageWidth = 960, kPageLeft = 170, kPageRight = 20;
constexpr double kPagePlot = kPageWidth - kPageLeft - kPageRight;

std::string page_begin(std::string_view title);  // up to the heading, which is the title
std::string page_end();
// Nothing where the body is empty. `about` is one line under the heading.
std::string section(std::string_view heading, std::string_view about, const std::string& body);

}  // namespace samebytes::detail

// Figures as text for people, one way for all messages and tables: thousands are parted by a blank, units have a blank
// before them, one is singular.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace samebytes {

// Three digits with a suitable unit, in powers of 1000: "512 bytes", "9.7 kB", "43.2 MB", "1.5 GB".
std::string bytes_text(std::size_t bytes);
std::string count_text(double count);                          // "12 345"; three digits below 100: "9.87"; else "-"
std::string counted_text(double count, std::string_view one);  // "1 step", "1 200 steps", "2 launches"
std::string duration_text(double seconds);                     // "0.42 s", "12.3 s", "3:05", "1:02:03"; else "-"

// Rows of cells whose columns are as wide as their widest cell, two blanks apart.
class TextTable {
 public:
  // A letter for each column: 'l' aligns it left, 'r' right. Each line begins with `indent` blanks.
  explicit TextTable(std::string columns, std::size_t indent = 0) : columns_(std::move(columns)), indent_(indent) {}
  // Requires at most as many cells as there are columns.
  void add(std::vector<std::string> cells);
  std::string to_text() const;  // a line for each row; without blanks at its end

 private:
  std::string columns_;
  std::size_t indent_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace samebytes

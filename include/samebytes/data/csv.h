// Reader for text tables: CSV, TSV and similar, plain or gzip. All columns are numbers, except optionally one for the
// label. Fields may be in double quotes (RFC 4180). Errors are IoError with the line in the message and the byte in
// offset() (of the unpacked text).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "samebytes/host_array.h"

namespace samebytes::data {

struct CsvOptions {
  char separator = '\0';  // '\0': the first of tab, comma, semicolon and space that the first line contains
  int skip_lines = 0;     // lines to skip above the header or the first row
  bool header = false;    // the first line names the columns
  // The label's column: a name (with a header), or a number from 0; a negative one counts from the end. Empty: none.
  std::string label = {};
  Dtype label_dtype = i32;                // i32 for classes, f32 for a quantity
  int classes = 0;                        // above 0: integer labels must lie in 0 .. classes - 1
  std::vector<std::string> drop = {};     // columns to leave out, given as in `label`
  std::optional<float> empty_value = {};  // value of an empty cell; unset: an empty cell is an error
};

struct Table {
  std::vector<std::string> columns;  // names of the columns of `values`; empty without a header
  HostArray values;                  // [rows, columns] f32
  HostArray labels;                  // [rows] i32 or f32; [0] without a label column
  std::vector<std::string> classes;  // if labels are words: sorted; a label is the index of its word
};

// Throws IoError for a missing or damaged file, rows of unequal length, cells that are not numbers, labels out of
// range; ArgumentError for a label or dropped column that the table does not have.
Table read_csv(const std::string& path, const CsvOptions& options = {});

// The same for text in memory; `name` stands for the path in errors.
Table parse_csv(std::string_view name, std::span<const std::byte> text, const CsvOptions& options = {});

}  // namespace samebytes::data

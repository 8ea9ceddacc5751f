// Rotary positions as config.json describes them: one base, or scaled by one of the forms of transformers (linear,
// dynamic, llama3, yarn, longrope). Tables of frequencies for samebytes/ops/rotary.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/models/config.h"

namespace samebytes::models {

class Rope {
 public:
  // `section`: the part of the config that describes them, which may be empty; what it lacks the config itself has.
  // depth: values of a head; theta: the base where neither says one. Computes nothing.
  Rope(const Config& config, const Config& section, std::int64_t depth, double theta = 10000.0);
  // Makes the tables. Call it once, when the weights have shown that `depth` is true.
  void prepare();
  // x [N, T, H, D] whose first token is at `offset`; `heads`: only this many, 0: all.
  Array turn(const Array& x, std::int64_t offset, std::int64_t heads = 0) const;
  std::vector<double> frequencies(std::int64_t length) const;  // for a text of this many tokens
  // Whether all tokens of a text of this length turn by its length (dynamic scaling).
  bool turns_by_length(std::int64_t length) const { return type_ == "dynamic" && length > longest_; }
  // Of LongRoPE, whose longer texts have other frequencies; 0 for the other forms.
  std::int64_t turning_point() const { return type_ == "longrope" ? original_ : 0; }

 private:
  double value(const std::string& key, double fallback) const;
  [[noreturn]] void fail(const std::string& key, const std::string& expected, double found) const;
  Array table_of(std::int64_t length) const;
  Config config_, section_;
  std::string type_;
  std::int64_t pairs_;
  double theta_, factor_ = 1, scale_ = 1;
  std::int64_t original_, longest_;  // tokens of the pre-training; of the model
  Array short_, long_;
};

// The section of a config: rope_parameters, or rope_scaling of older files.
Config rope_section(const Config& config);

}  // namespace samebytes::models

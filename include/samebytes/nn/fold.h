// Unfold and Fold: the windows of a convolution as an array, and back; channels last.
#pragma once

#include <cstdint>
#include <vector>

#include "samebytes/nn/module.h"
#include "samebytes/ops/fold.h"

namespace samebytes::nn {

// x [N, axes..., C] -> [N, windows, places of a window, C], see unfold() (ops/fold.h), which says what it throws.
class Unfold final : public Module {
 public:
  explicit Unfold(const FoldOptions& options) : options_(options) {}
  Array forward(const Array& x) override;
  std::string kind() const override { return "Unfold"; }
  std::string describe() const override;
  const FoldOptions& options() const { return options_; }

 private:
  FoldOptions options_;
};

// x [N, windows, places of a window, C] -> [N, sizes..., C]: the windows added up at their places, see fold().
class Fold final : public Module {
 public:
  Fold(const std::vector<std::int64_t>& sizes, const FoldOptions& options) : sizes_(sizes), options_(options) {}
  Array forward(const Array& x) override;
  std::string kind() const override { return "Fold"; }
  std::string describe() const override;
  const std::vector<std::int64_t>& sizes() const { return sizes_; }
  const FoldOptions& options() const { return options_; }

 private:
  std::vector<std::int64_t> sizes_;
  FoldOptions options_;
};

}  // namespace samebytes::nn

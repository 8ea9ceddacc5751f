// Shared by the cross-entropy files: the options of its kernels, and the launch of the one that computes losses and, if
// requested, the gradient of the logits (kernels: cl/*/cross_entropy.cl).
#pragma once

#include <cstdint>

#include "graph/launch.h"
#include "samebytes/ops/losses.h"

namespace samebytes::detail {

// How to interpret the target.
struct CrossEntropyRule {
  bool has_weight = false;
  bool has_ignored = false;
  std::int32_t ignored = 0;
  float smoothing = 0;
  Reduction reduction = Reduction::mean;

  void hash(Hasher& hasher) const;
  // Whether the divisor of the mean is known only after all labels were read.
  bool counts_rows() const { return reduction == Reduction::mean && (has_weight || has_ignored); }
};

// The target as the kernels take it; two of them absent.
struct TargetOperands {
  Operand labels_i32, labels_u8, probabilities;
  TargetOperands from_row(std::int64_t row) const;  // of labels
};
TargetOperands target_operands(const Launch& run, int input);

// The operands of a launch over some of the rows, each starting at its own first row.
struct CrossEntropyOperands {
  TargetOperands target{};
  Operand logits{}, class_weight{};
  Operand losses{}, row_weights{}, statistics{};
  Operand total{}, total_weight{};          // if one work-group also adds up the losses
  Operand dy{}, denominator{}, gradient{};  // none: no gradient; denominator: none if the divisor is known
};

// Records cross_entropy_fwd over `rows` rows; `divisor` is that of the mean, if known in advance.
void record_cross_entropy(Launch& run, const CrossEntropyRule& rule, const CrossEntropyOperands& operands,
                          std::int64_t rows, std::int64_t classes, double divisor, Dtype dtype);

// Records cross_entropy_bwd: the gradient, which may lie over the logits, by what the forward launch left in
// `statistics` and `denominator`.
void record_cross_entropy_gradient(Launch& run, const CrossEntropyRule& rule, const CrossEntropyOperands& operands,
                                   std::int64_t rows, std::int64_t classes, Dtype dtype);

// Records cross_entropy_denominator: the divisor of the mean of all rows, before the rows are looked at.
void record_cross_entropy_denominator(Launch& run, const CrossEntropyRule& rule, const TargetOperands& target,
                                      Operand class_weight, Operand denominator, std::int64_t rows,
                                      std::int64_t classes, Dtype dtype);

// Records cross_entropy_total: the mean or sum of all rows, and its divisor.
void record_cross_entropy_total(Launch& run, const CrossEntropyRule& rule, Operand losses, Operand row_weights,
                                Operand loss, Operand denominator, std::int64_t rows, Dtype dtype);

// Throws ArgumentError of `op` for label smoothing outside [0, 1) and for class weights that are not floating
// [classes].
void check_cross_entropy_options(const char* op, float label_smoothing, const Array& class_weight,
                                 std::int64_t classes);

}  // namespace samebytes::detail

// Lstm and Gru: recurrent layers over sequences [N, T, C], uni- or bidirectional, stacked. Letters: N batch, T steps, C
// inputs, H hidden units, D directions (2 where bidirectional), L layers.
#pragma once

#include <vector>

#include "samebytes/nn/module.h"
#include "samebytes/ops/recurrent.h"

namespace samebytes::nn {

struct LstmOptions {
  std::int64_t in = 0;      // C
  std::int64_t hidden = 0;  // H
  int layers = 1;
  bool bias = true;
  double dropout = 0;  // on the outputs of all layers but the last, in training; in [0, 1)
  bool bidirectional = false;
  Dtype dtype = f32;
};
using GruOptions = LstmOptions;

// States of all layers and directions, [L * D, N, H] in PyTorch's order: layer by layer, forward first. An empty handle
// means zeros.
struct LstmState {
  Array h{}, c{};
};
struct LstmOutput {
  Array y;  // [N, T, D * H]: of the last layer, forward and reverse concatenated
  LstmState state;
};
struct GruOutput {
  Array y;    // [N, T, D * H]
  Array h_n;  // [L * D, N, H]
};

// The formulas are those of lstm and gru (ops/recurrent.h). Parameters of layer k: weight_ih_lk [4 * H, C, or D * H
// above the first], weight_hh_lk [4 * H, H], bias_ih_lk, bias_hh_lk [4 * H]; 3 * H for Gru; names of the reverse
// direction end in _reverse. All start uniform in +-1 / sqrt(H), as in PyTorch. `lengths` (i32 or i64 [N]) is the
// number of valid steps of each sequence. Throws ArgumentError for sizes below 1 and a dropout outside [0, 1).
// RecurrentParameters are those of one layer and direction; biases may be empty.
struct RecurrentParameters {
  Parameter weight_ih, weight_hh, bias_ih{}, bias_hh{};
  operator RecurrentWeights() const { return {weight_ih, weight_hh, bias_ih, bias_hh}; }
};

class Lstm final : public Module {
 public:
  explicit Lstm(const LstmOptions& options);
  Array forward(const Array& x) override { return run(x).y; }  // from zero states
  LstmOutput run(const Input& x, const LstmState& state = {}, const Input& lengths = {});
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "Lstm"; }
  std::string describe() const override;

  const LstmOptions& options() const { return options_; }
  // One entry for each layer and direction, in the order of the states.
  const std::vector<RecurrentParameters>& weights() const { return weights_; }

 private:
  LstmOptions options_;
  std::vector<RecurrentParameters> weights_;
};

class Gru final : public Module {
 public:
  explicit Gru(const GruOptions& options);
  Array forward(const Array& x) override { return run(x).y; }  // from zero states
  GruOutput run(const Input& x, const Input& h0 = {}, const Input& lengths = {});
  void visit(Visitor& visitor) override;
  std::string kind() const override { return "Gru"; }
  std::string describe() const override;

  const GruOptions& options() const { return options_; }
  const std::vector<RecurrentParameters>& weights() const { return weights_; }

 private:
  GruOptions options_;
  std::vector<RecurrentParameters> weights_;
};

}  // namespace samebytes::nn

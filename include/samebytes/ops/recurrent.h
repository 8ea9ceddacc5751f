// Recurrent layers over whole sequences: engine/ops/recurrent.cpp. Letters: N batch, T steps, C inputs, H hidden units.
// The product of the inputs with their weights is one matrix product over all steps; the steps themselves are one
// launch, forward and backward.
// All throw ArgumentError with the op's name, what it expected and what it got.
#pragma once

#include "samebytes/array.h"

namespace samebytes {

// PyTorch's weights of one layer and direction, with G gates concatenated: 4 for lstm (i, f, g, o), 3 for gru (r, z,
// n).
struct RecurrentWeights {
  Array weight_ih;  // [G * H, C]
  Array weight_hh;  // [G * H, H]
  Array bias_ih{};  // [G * H] or an empty handle
  Array bias_hh{};  // [G * H] or an empty handle
};

struct RecurrentOptions {
  Array h0{};  // [N, H], the state before the first step; an empty handle means zeros
  Array c0{};  // lstm only, likewise
  // i32 or i64 [N], the number of valid steps of each sequence, as in PyTorch's packed sequences: the other steps keep
  // the state and output zeros. A length outside [0, T] gives NaN. An empty handle means T.
  Array lengths{};
  bool reverse = false;  // from the last step to the first; each sequence starts at its own end
};

struct LstmResult {
  Array y;         // [N, T, H], h after each step
  Array h_n, c_n;  // [N, H], after the last one
};
struct GruResult {
  Array y;    // [N, T, H], h after each step
  Array h_n;  // [N, H], after the last one
};

// x [N, T, C] (S. Hochreiter and J. Schmidhuber, "Long short-term memory", 1997, with forget gates):
//   i, f, o = sigmoid(W_i x + b_i + U_i h + d_i) and so on, g = tanh(W_g x + b_g + U_g h + d_g)
//   c = f c + i g, h = o tanh(c)
LstmResult lstm(const Input& x, const RecurrentWeights& weights, const RecurrentOptions& options = {});
// x [N, T, C] (K. Cho et al., "Learning phrase representations using RNN encoder-decoder", 2014, with the reset gate
// applied after the product, as in PyTorch and cuDNN):
//   r, z = sigmoid(W x + b + U h + d), n = tanh(W_n x + b_n + r (U_n h + d_n)), h = (1 - z) n + z h
GruResult gru(const Input& x, const RecurrentWeights& weights, const RecurrentOptions& options = {});

}  // namespace samebytes

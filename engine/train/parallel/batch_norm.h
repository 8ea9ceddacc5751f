// Batch norm over the shares of a batch, on devices or in processes: how the moments of shares become those of the
// whole batch (T. Chan et al., "Updating formulae and a pairwise algorithm for computing sample variances", 1979). With
// n_r rows in share r of n, c = sum n_r/n m_r and v = sum n_r/n (v_r + (m_r - c)^2).
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/statistics.h"

namespace samebytes::train::parallel {

// Mean and variance of so many rows: arrays per channel, or numbers of one.
template <class Number>
struct Moments {
  Number mean = {}, variance = {};
  double rows = 0;
};

// Of all shares together, in their order. Requires: there is one.
template <class Number>
Moments<Number> joint(const std::vector<Moments<Number>>& shares) {
  Moments<Number> all;
  for (const Moments<Number>& each : shares) all.rows += each.rows;
  bool is_first = true;
  for (const Moments<Number>& each : shares) {
    const Number part = each.mean * (each.rows / all.rows);
    all.mean = is_first ? part : all.mean + part;
    is_first = false;
  }
  is_first = true;
  for (const Moments<Number>& each : shares) {
    const Number away = each.mean - all.mean;
    const Number part = (each.variance + away * away) * (each.rows / all.rows);
    all.variance = is_first ? part : all.variance + part;
    is_first = false;
  }
  return all;
}

// A running statistic after a batch; the variance that it follows is that of a sample.
template <class Number>
Number followed(const Number& running, const Number& now, double momentum) {
  return running * (1 - momentum) + now * momentum;
}
inline double unbiased(double rows) { return rows / std::max(1.0, rows - 1); }

// Of a share's own moments those of all, with the gradient that flows back to them; running statistics follow there.
using MomentsOfAll = std::function<Moments<Array>(Moments<Array> own)>;

// The answer to batch_norm_train for one share.
Array sync_batch_norm(const BatchNormCall& call, const MomentsOfAll& moments_of_all);

}  // namespace samebytes::train::parallel

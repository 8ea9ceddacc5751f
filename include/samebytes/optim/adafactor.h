// Adafactor (N. Shazeer and M. Stern, "Adafactor: adaptive learning rates with sublinear memory cost", 2018), in the
// form of PyTorch's torch.optim.Adafactor: it keeps only the row and column means of a matrix's second moments. For the
// gradient g of a parameter p at step t, with b = t^beta2_decay and rho = min(rate, 1 / sqrt(t)): scale = max(eps2,
// rms(p)) rho;  p *= 1 - rate weight_decay;
// [..., R, C]: r += b (mean over C of g^2 - r), c += b (mean over R of g^2 - c), v = r c / max(mean over R of r, eps1);
// fewer axes: v += b (g^2 - v);  u = g / sqrt(max(v, eps1^2));  p -= scale / max(1, rms(u) / d) u.
// Matrices are the last two axes in memory, which for convolutions are [in, out] of each tap. A step is four launches
// per arena, whatever its number of parameters.
#pragma once

#include <memory>

#include "samebytes/optim/optimizer.h"

namespace samebytes::detail {
class AdafactorLayout;
}

namespace samebytes::optim {

struct AdafactorOptions {
  double rate = 1e-2;
  double beta2_decay = -0.8;
  double eps1 = 0.0;  // 0: the machine epsilon of the parameters' dtype, 2^-23 for f32
  double eps2 = 1e-3;
  double d = 1.0;
  double weight_decay = 0.0;
  bool maximize = false;    // gradient ascent
  double clip_norm = 0.0;   // over all parameters; 0: off
  double clip_value = 0.0;  // before clip_norm; 0: off
};

class Adafactor final : public Optimizer {
 public:
  // Groups may have their own rate and weight_decay. Throws ArgumentError for options out of range and as
  // ParameterArena does.
  explicit Adafactor(std::span<const Array> parameters, const AdafactorOptions& options = {});
  explicit Adafactor(const std::vector<ParameterGroup>& groups, const AdafactorOptions& options = {});
  Adafactor(Adafactor&&) = default;
  Adafactor& operator=(Adafactor&&) = default;
  std::vector<StateArray> state() const override;  // "0.rows" (for vectors: v), "0.columns"
  const AdafactorOptions& options() const { return options_; }

 private:
  std::vector<std::vector<Array>*> cells_of_parameters() override { return {&rows_, &columns_}; }
  std::int64_t state_before(std::size_t list, std::size_t arena, std::int64_t element) const override;
  void follow_share() override;
  std::vector<CellUpdate> updates(std::size_t arena, const Array& gradient) const override;

  AdafactorOptions options_;
  std::shared_ptr<std::vector<detail::AdafactorLayout>> layouts_;  // where parameters lie, for the kernels
  std::vector<Array> rows_, columns_;
};

}  // namespace samebytes::optim

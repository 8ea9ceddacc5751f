// DataParallel: gradients of several batches, or of pieces of one, before an update.
#include <utility>

#include "samebytes/autograd.h"
#include "samebytes/data_parallel.h"
#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes {

// The nodes that write a device's sums, with these gradients, into its other cells.
std::vector<Array> DataParallel::added_gradients(const optim::Optimizer& optimizer, const Array& loss, int device,
                                                 std::int64_t samples) {
  const std::vector<optim::ParameterArena>& arenas = optimizer.arenas();
  const std::vector<Array> flat =
      optimizer.flat_gradients(gradients(loss, optimizer.parameters(), optimizer.gradient_options()));
  Sum& sum = sums_[device];
  sum.cells.resize(arenas.size());
  sum.next.resize(arenas.size());
  std::vector<Array> result;
  for (std::size_t i = 0; i < arenas.size(); ++i) {
    const Dtype dtype = arenas[i].dtype() == f64 ? f64 : f32;
    for (Array* const cell : {&sum.cells[i], &sum.next[i]})
      if (!cell->defined() || cell->size() != arenas[i].size() || cell->dtype() != dtype)
        *cell = arenas[i].zeros_like("added gradients of a share", dtype, MemoryCategory::gradients);
    const Array part = astype(flat[i], dtype) * static_cast<double>(samples);
    result.push_back(samebytes::update(sum.next[i], sum.is_begun ? sum.cells[i] + part : part));
  }
  return result;
}

Array DataParallel::add_with(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of,
                             optim::GradScaler* scaler) {
  check(optimizer, samples);
  if (added_ > 0 && summed_for_ != &optimizer)
    throw ArgumentError("DataParallel: gradients of another optimizer were added; update that one first");
  if (!has_shares()) find_shares(samples, gradient_job(optimizer, loss_of, scaler));
  const std::vector<Piece> pieces = run(samples, gradient_job(optimizer, loss_of, scaler, samples));
  for (const Piece& piece : pieces) {
    if (piece.gradients.empty()) continue;
    Sum& sum = sums_[piece.device];
    std::swap(sum.cells, sum.next);
    sum.is_begun = true;
  }
  summed_for_ = &optimizer;
  added_ += samples;
  return mean_of(pieces, samples);
}

void DataParallel::update_with(optim::Optimizer& optimizer, optim::GradScaler* scaler) {
  if (added_ == 0) return;
  if (summed_for_ != &optimizer)
    throw ArgumentError("DataParallel: gradients of another optimizer were added; update that one");
  std::vector<Array> means(optimizer.arenas().size());
  for (auto& [device, sum] : sums_) {
    if (!std::exchange(sum.is_begun, false)) continue;
    for (std::size_t i = 0; i < means.size(); ++i)
      means[i] = means[i].defined() ? means[i] + sum.cells[i] : sum.cells[i];
  }
  for (Array& mean : means) mean = mean * (1.0 / static_cast<double>(added_));
  added_ = 0;
  apply(optimizer, means, scaler);
}

Array DataParallel::add(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of) {
  return add_with(optimizer, samples, loss_of, nullptr);
}

Array DataParallel::add(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of,
                        optim::GradScaler& scaler) {
  return add_with(optimizer, samples, loss_of, &scaler);
}

void DataParallel::update(optim::Optimizer& optimizer) { update_with(optimizer, nullptr); }
void DataParallel::update(optim::Optimizer& optimizer, optim::GradScaler& scaler) { update_with(optimizer, &scaler); }

}  // namespace samebytes

#include "samebytes/data_parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

#include "samebytes/autograd.h"
#include "samebytes/device_watch.h"
#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"
#include "samebytes/statistics.h"
#include "train/meeting.h"
#include "train/parallel_impl.h"
#include "train/sync_batch_norm.h"

namespace samebytes {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kFewestSteps = 3;   // of a median that tells anything
constexpr double kBuildingSeconds = 300;  // a step that builds kernels, or is one of the first, may take this long

// A gradient is added in the type that the update computes with.
Array widened(const Array& gradient) {
  return gradient.dtype() == f16 || gradient.dtype() == bf16 ? astype(gradient, f32) : gradient;
}

}  // namespace

DataParallel::Kept::Kept(Engine& engine, nn::Module& net) : engine_(engine), counter_(engine.random_counter()) {
  for (const nn::NamedArray& named : net.named_buffers()) {
    const detail::Borrow view(named.array, false, __FILE__, __LINE__);
    Buffer buffer{named.array,
                  std::vector<std::byte>(static_cast<std::size_t>(named.array.size()) * bytes_of(named.array.dtype()))};
    if (!buffer.bytes.empty()) std::memcpy(buffer.bytes.data(), view.data(), buffer.bytes.size());
    buffers_.push_back(std::move(buffer));
  }
}

void DataParallel::Kept::restore() const {
  engine_.set_random_counter(counter_);
  for (const Buffer& buffer : buffers_) {
    const detail::Borrow view(buffer.array, true, __FILE__, __LINE__);
    if (!buffer.bytes.empty()) std::memcpy(view.data(), buffer.bytes.data(), buffer.bytes.size());
  }
}

DataParallel::DataParallel(Engine& engine, nn::Module& net, const DataParallelOptions& options)
    : engine_(&engine), net_(&net), options_(options), names_(names()), samples_(names_.size()) {
  const auto refuse = [](const std::string& what) { throw ArgumentError("DataParallel: " + what); };
  if (options.least < 1) refuse(fmt::format("least must be 1 or more, got {}", options.least));
  if (!(options.time_limit > 0)) refuse(fmt::format("time_limit must be above 0, got {}", options.time_limit));
  if (!(options.least_seconds >= 0)) refuse(fmt::format("least_seconds is not below 0, got {}", options.least_seconds));
  if (options.slow_factor != 0 && !(options.slow_factor > 1))
    refuse(fmt::format("slow_factor must be above 1, or 0 for never, got {}", options.slow_factor));
  if (options.shares.empty()) return;
  if (options.shares.size() != names_.size())
    refuse(fmt::format("expected a share of each device, the engine has {} ({}), got {}", names_.size(),
                       fmt::join(names_, ", "), options.shares.size()));
  cut_by_shares(1, options.shares);
  set_parts(options.shares);
}

int DataParallel::left() const {
  int count = 0;
  for (int d = 0; d < engine_->device_count(); ++d) count += is_given_up(*engine_, d) ? 0 : 1;
  return count;
}

std::vector<DataParallel::Piece> DataParallel::cut(std::int64_t samples) const {
  const std::vector<std::int64_t> counts = shares(samples);
  std::vector<Piece> pieces;
  std::int64_t begin = 0;
  for (std::size_t d = 0; d < counts.size(); ++d) {
    if (counts[d] > 0) pieces.push_back({static_cast<int>(d), begin, begin + counts[d], {}, {}});
    begin += counts[d];
  }
  return pieces;
}

void DataParallel::build(std::vector<Piece>& pieces, std::int64_t samples, const Job& job, std::vector<Array>& roots) {
  const auto weight = [&](const Piece& piece) {
    return static_cast<double>(piece.samples()) / static_cast<double>(samples);
  };
  if (options_.sync_batch_norm && pieces.size() > 1 && is_grad_enabled()) {
    build_synced(pieces, samples, job, roots);
  } else {
    // The largest first: it is enqueued first, and its device alone writes running statistics.
    std::vector<Piece*> order;
    order.reserve(pieces.size());
    for (Piece& piece : pieces) order.push_back(&piece);
    std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->samples() > b->samples(); });
    for (Piece* const piece : order) {
      const DeviceScope on(piece->device);
      const auto keeps = piece == order.front() ? nullptr : std::make_unique<KeepStatistics>();
      job.each(*piece, weight(*piece));
    }
  }
  if (job.together) job.together(pieces);
  for (const Piece& piece : pieces) {
    for (const Array& result : piece.results)
      if (result.defined()) roots.push_back(result);
    roots.insert(roots.end(), piece.gradients.begin(), piece.gradients.end());
  }
}

void DataParallel::build_synced(std::vector<Piece>& pieces, std::int64_t samples, const Job& job,
                                std::vector<Array>& roots) {
  detail::Meeting meeting;
  std::vector<std::function<void()>> parts;
  for (std::size_t place = 0; place < pieces.size(); ++place)
    parts.emplace_back([&, place] {
      const EngineScope engine(*engine_);
      const DeviceScope on(pieces[place].device);
      const BatchNormScope norms([&](const BatchNormCall& call) {
        return detail::sync_batch_norm(meeting, place, call, place == 0 ? &roots : nullptr);
      });
      job.each(pieces[place], static_cast<double>(pieces[place].samples()) / static_cast<double>(samples));
    });
  meeting.run(parts);
}

double DataParallel::limit_of_step() const {
  if (step_seconds_.size() < kFewestSteps) return kBuildingSeconds;
  const double usual = detail::median({step_seconds_.begin(), step_seconds_.end()});
  return std::max(options_.least_seconds, options_.time_limit * usual);
}

std::optional<DataParallel::Failure> DataParallel::evaluate(const std::vector<Piece>& pieces,
                                                            const std::vector<Array>& roots, double expected,
                                                            std::vector<double>& seconds) {
  const std::uint64_t plans = engine_->plans().plans_made;
  double limit = limit_of_step();
  const auto start = Clock::now();
  const auto passed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const DeviceTimer timer;
  std::optional<DeviceError> error;
  try {
    eval(roots);
  } catch (const DeviceError& refused) {
    error = refused;
  }
  if (engine_->plans().plans_made != plans) limit = std::max(limit, kBuildingSeconds);
  if (left() == 1) limit = std::numeric_limits<double>::infinity();
  const DeviceStanding standing = wait_for_devices(*engine_, start, passed() + limit, expected, &timer);
  last_seconds_ = passed();
  seconds = standing.seconds;
  for (const Piece& piece : pieces)
    if (!error && standing.failed < 0 && std::isinf(seconds[static_cast<std::size_t>(piece.device)]))
      return Failure{DeviceEvent::Kind::silent, piece.device, fmt::format("has not answered for {:.1f} s", passed())};
  try {
    if (!error && standing.failed >= 0)
      for (const Array& root : roots) root.wait();
  } catch (const DeviceError& lost) {
    error = lost;
  }
  if (error && (standing.failed < 0 || left() == 1)) throw DeviceError(*error);
  if (error || standing.failed >= 0)
    return Failure{DeviceEvent::Kind::failed, standing.failed, error ? error->what() : "a launch failed"};
  if (engine_->plans().plans_made != plans) seconds.clear();  // of building more than of running
  return std::nullopt;
}

std::vector<DataParallel::Piece> DataParallel::run(std::int64_t samples, const Job& job, std::vector<double>* times) {
  for (;;) {
    const Kept kept(*engine_, *net_);
    std::vector<Piece> pieces = cut(samples);
    std::vector<double> seconds;
    std::optional<Failure> failure;
    {
      std::vector<Array> roots;
      build(pieces, samples, job, roots);
      // Of a step alone: what map() evaluates takes another time.
      const double usual = times == nullptr && step_seconds_.size() >= kFewestSteps
                               ? detail::median({step_seconds_.begin(), step_seconds_.end()})
                               : 0;
      const double expected = last_cut_ > 0 ? usual * static_cast<double>(samples) / static_cast<double>(last_cut_) : 0;
      failure = evaluate(pieces, roots, expected, seconds);
    }
    if (times != nullptr) *times = seconds.empty() ? std::vector<double>(names_.size(), last_seconds_) : seconds;
    if (!failure) {
      if (times != nullptr || seconds.empty()) return pieces;
      step_seconds_.push_back(last_seconds_);
      if (step_seconds_.size() > detail::kMostSteps) step_seconds_.pop_front();
      watch(pieces, seconds, samples);
      return pieces;
    }
    pieces.clear();  // what they hold is lost
    gradients_.clear();
    for (auto& [device, sum] : sums_) sum.next.clear();
    give_up(*failure, samples);
    kept.restore();
  }
}

// The nodes that write the flat gradients of a loss into cells of this device, which their producers do themselves.
std::vector<Array> DataParallel::stored_gradients(const optim::Optimizer& optimizer, const Array& loss, int device) {
  const std::vector<optim::ParameterArena>& arenas = optimizer.arenas();
  std::vector<Array> parameters;
  for (const optim::ParameterArena& arena : arenas)
    parameters.insert(parameters.end(), arena.parameters().begin(), arena.parameters().end());
  const std::vector<Array> all = gradients(loss, parameters, optimizer.gradient_options());
  std::vector<Array>& cells = gradients_[{&optimizer, device}];
  cells.resize(arenas.size());
  std::vector<Array> result;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < arenas.size(); ++i) {
    const std::span<const Array> own(&all[begin], arenas[i].parameters().size());
    begin += own.size();
    if (!cells[i].defined() || cells[i].size() != arenas[i].size() || cells[i].dtype() != own[0].dtype())
      cells[i] = arenas[i].zeros_like("gradients of a share", own[0].dtype(), MemoryCategory::gradients);
    result.push_back(arenas[i].store(cells[i], own));
  }
  return result;
}

DataParallel::Job DataParallel::gradient_job(optim::Optimizer& optimizer, const LossOf& loss_of,
                                             optim::GradScaler* scaler, std::int64_t added) {
  const auto gradients_of = [this, &optimizer, scaler, added](const Array& loss, int device) {
    const Array scaled = scaler != nullptr ? scaler->scale(loss) : loss;
    return added > 0 ? added_gradients(optimizer, scaled, device, added) : stored_gradients(optimizer, scaled, device);
  };
  const bool is_synced = options_.sync_batch_norm;
  Job job;
  job.each = [=, &loss_of](Piece& piece, double weight) {
    const Array loss = loss_of(piece.begin, piece.end);
    piece.results = {loss};
    if (!is_synced) piece.gradients = gradients_of(weight == 1 ? loss : loss * weight, piece.device);
  };
  // Each loss reads the statistics of all shares, so their gradients are taken together: one pass over each share.
  if (is_synced)
    job.together = [=](std::vector<Piece>& pieces) {
      std::int64_t samples = 0;
      for (const Piece& piece : pieces) samples += piece.samples();
      Array loss;
      for (const Piece& piece : pieces) {
        const Array part = piece.results[0] * (static_cast<double>(piece.samples()) / static_cast<double>(samples));
        loss = loss.defined() ? loss + part : part;
      }
      pieces[0].gradients = gradients_of(loss, pieces[0].device);
    };
  return job;
}

void DataParallel::check(const optim::Optimizer& optimizer, std::int64_t samples) const {
  if (optimizer.releases_gradients())
    throw ArgumentError(
        "DataParallel: the optimizer has release_gradients, which updates parameters before the gradients of all "
        "shares are there; use one of the two");
  if (samples < 1) throw ArgumentError(fmt::format("DataParallel: a batch has samples, got {}", samples));
}

// Of the losses of all pieces, whose samples are counted.
Array DataParallel::mean_of(const std::vector<Piece>& pieces, std::int64_t samples) {
  Array loss;
  for (const Piece& piece : pieces) {
    const double weight = static_cast<double>(piece.samples()) / static_cast<double>(samples);
    const Array part = weight == 1 ? piece.results[0] : piece.results[0] * weight;
    loss = loss.defined() ? loss + part : part;
    samples_[static_cast<std::size_t>(piece.device)] += piece.samples();
  }
  return loss;
}

void DataParallel::apply(optim::Optimizer& optimizer, const std::vector<Array>& gradients, optim::GradScaler* scaler) {
  if (scaler != nullptr) {
    scaler->step_flat(optimizer, gradients);
    scaler->update();
  } else {
    optimizer.step_flat(gradients);
  }
  ++steps_;
}

// The one that has whole batches; -1: several have shares.
int DataParallel::only_device() const {
  const auto has_some = [](double part) { return part > 0; };
  if (options_.rebalance || std::count_if(parts_.begin(), parts_.end(), has_some) != 1) return -1;
  return static_cast<int>(std::find_if(parts_.begin(), parts_.end(), has_some) - parts_.begin());
}

// The step of an engine of one device: nobody waits for gradients, and what fails is the caller's.
Array DataParallel::step_alone(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of,
                               optim::GradScaler* scaler, int device) {
  Array loss;
  {
    const DeviceScope on(device);
    loss = loss_of(0, samples);
  }
  if (scaler != nullptr)
    scaler->step(optimizer, loss);
  else
    optimizer.step(loss);
  samples_[static_cast<std::size_t>(device)] += samples;
  ++steps_;
  return loss;
}

Array DataParallel::step_with(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of,
                              optim::GradScaler* scaler) {
  check(optimizer, samples);
  const Job job = gradient_job(optimizer, loss_of, scaler);
  if (!has_shares()) find_shares(samples, job);
  if (const int device = only_device(); device >= 0) return step_alone(optimizer, samples, loss_of, scaler, device);
  const std::vector<Piece> pieces = run(samples, job);
  std::vector<Array> sums;
  for (const Piece& piece : pieces) {
    const std::vector<Array>& own = gradients_[{&optimizer, piece.device}];
    for (std::size_t i = 0; i < piece.gradients.size(); ++i)
      if (i < sums.size())
        sums[i] = widened(sums[i]) + widened(own[i]);
      else
        sums.push_back(own[i]);
  }
  Array loss = mean_of(pieces, samples);
  apply(optimizer, sums, scaler);
  return loss;
}

Array DataParallel::step(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of) {
  return step_with(optimizer, samples, loss_of, nullptr);
}

Array DataParallel::step(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of,
                         optim::GradScaler& scaler) {
  return step_with(optimizer, samples, loss_of, &scaler);
}

void DataParallel::measure_shares(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of) {
  if (has_shares()) return;
  const Job job = gradient_job(optimizer, loss_of, nullptr);
  find_shares(samples, job);
}

std::vector<DataParallel::ShareResults> DataParallel::map(std::int64_t samples, const ResultsOf& results_of) {
  if (samples < 1) throw ArgumentError(fmt::format("DataParallel: a batch has samples, got {}", samples));
  Job job;
  job.each = [&](Piece& piece, double) { piece.results = results_of(piece.begin, piece.end); };
  if (!has_shares()) find_shares(samples, job);
  std::vector<double> unused;
  std::vector<ShareResults> results;
  for (Piece& piece : run(samples, job, &unused)) results.push_back({piece.begin, piece.end, std::move(piece.results)});
  return results;
}

}  // namespace samebytes

#include "train/parallel/devices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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
#include "train/parallel/batch_norm.h"
#include "train/parallel/meeting.h"

namespace samebytes::train::parallel {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kFewestSteps = 3;   // of a median that tells anything
constexpr double kBuildingSeconds = 300;  // a step that builds kernels, or is one of the first, may take this long

}  // namespace

Devices::Kept::Kept(Engine& engine, nn::Module& net) : engine_(engine), counter_(engine.random_counter()) {
  for (const nn::NamedArray& named : net.named_buffers()) {
    const samebytes::detail::Borrow view(named.array, false, __FILE__, __LINE__);
    Buffer buffer{named.array,
                  std::vector<std::byte>(static_cast<std::size_t>(named.array.size()) * bytes_of(named.array.dtype()))};
    if (!buffer.bytes.empty()) std::memcpy(buffer.bytes.data(), view.data(), buffer.bytes.size());
    buffers_.push_back(std::move(buffer));
  }
}

void Devices::Kept::restore() const {
  engine_.set_random_counter(counter_);
  for (const Buffer& buffer : buffers_) {
    const samebytes::detail::Borrow view(buffer.array, true, __FILE__, __LINE__);
    if (!buffer.bytes.empty()) std::memcpy(view.data(), buffer.bytes.data(), buffer.bytes.size());
  }
}

Devices::Devices(Engine& engine, nn::Module& net, const DataParallelOptions& options)
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

int Devices::left() const {
  int count = 0;
  for (int d = 0; d < engine_->device_count(); ++d) count += is_given_up(*engine_, d) ? 0 : 1;
  return count;
}

std::vector<Devices::Piece> Devices::cut(std::int64_t samples) {
  largest_batch_ = std::max(largest_batch_, samples);
  const std::vector<std::int64_t> counts = shares(samples);
  std::vector<Piece> pieces;
  std::int64_t begin = 0;
  for (std::size_t d = 0; d < counts.size(); ++d) {
    if (counts[d] > 0) pieces.push_back({static_cast<int>(d), begin, begin + counts[d], {}, {}});
    begin += counts[d];
  }
  return pieces;
}

void Devices::build(std::vector<Piece>& pieces, std::int64_t samples, const Job& job, std::vector<Array>& roots) {
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

void Devices::build_synced(std::vector<Piece>& pieces, std::int64_t samples, const Job& job,
                           std::vector<Array>& roots) {
  Meeting meeting;
  std::vector<std::function<void()>> parts;
  for (std::size_t place = 0; place < pieces.size(); ++place)
    parts.emplace_back([&, place] {
      const EngineScope engine(*engine_);
      const DeviceScope on(pieces[place].device);
      const BatchNormScope norms([&](const BatchNormCall& call) {
        return sync_batch_norm(call, [&](Moments<Array> own) {
          Moments<Array> all = joint(meeting.meet(place, std::move(own)));
          if (place == 0 && is_grad_enabled()) {
            const double momentum = call.options.momentum;
            roots.push_back(
                samebytes::update(call.running_mean, followed(call.running_mean, stop_gradient(all.mean), momentum)));
            roots.push_back(samebytes::update(
                call.running_var,
                followed(call.running_var, stop_gradient(all.variance * unbiased(all.rows)), momentum)));
          }
          return all;
        });
      });
      job.each(pieces[place], static_cast<double>(pieces[place].samples()) / static_cast<double>(samples));
    });
  meeting.run(parts);
}

double Devices::usual_step() const {
  return step_seconds_.size() < kFewestSteps ? 0 : median({step_seconds_.begin(), step_seconds_.end()});
}

double Devices::limit_of_step() const {
  if (step_seconds_.size() < kFewestSteps) return kBuildingSeconds;
  return std::max(options_.least_seconds, options_.time_limit * usual_step());
}

std::optional<Devices::Failure> Devices::evaluate(const std::vector<Piece>& pieces, const std::vector<Array>& roots,
                                                  double expected, std::vector<double>& seconds) {
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
  for (const Piece& piece : pieces)  // it may wait for another one that has not answered
    if (!error && standing.failed < 0 && std::isinf(seconds[static_cast<std::size_t>(piece.device)]))
      return Failure{DeviceEvent::Kind::silent, standing.silent >= 0 ? standing.silent : piece.device,
                     fmt::format("has not answered for {:.1f} s ({})", passed(), standing.why)};
  try {
    if (!error && standing.failed >= 0)
      for (const Array& root : roots) root.wait();
  } catch (const DeviceError& lost) {
    error = lost;
  }
  if (error && (standing.failed < 0 || left() == 1)) throw DeviceError(*error);
  if (error || standing.failed >= 0)
    return Failure{DeviceEvent::Kind::failed, standing.failed, error ? std::string(error->what()) : standing.why};
  if (engine_->plans().plans_made != plans) seconds.clear();  // of building more than of running
  return std::nullopt;
}

std::vector<Devices::Piece> Devices::run(std::int64_t samples, const Job& job, std::vector<double>* times) {
  for (;;) {
    const Kept kept(*engine_, *net_);
    std::vector<Piece> pieces = cut(samples);
    std::vector<double> seconds;
    std::optional<Failure> failure;
    {
      std::vector<Array> roots;
      build(pieces, samples, job, roots);
      // Of a step alone: what map() evaluates takes another time.
      const double usual = times == nullptr ? usual_step() : 0;
      const double expected = last_cut_ > 0 ? usual * static_cast<double>(samples) / static_cast<double>(last_cut_) : 0;
      failure = evaluate(pieces, roots, expected, seconds);
    }
    if (times != nullptr) *times = seconds.empty() ? std::vector<double>(names_.size(), last_seconds_) : seconds;
    if (!failure) {
      if (times != nullptr || seconds.empty()) return pieces;
      step_seconds_.push_back(last_seconds_);
      if (step_seconds_.size() > kMostSteps) step_seconds_.pop_front();
      watch(pieces, seconds, samples);
      return pieces;
    }
    pieces.clear();  // what they hold is lost
    for (auto& [of, sum] : sums_) sum.lost();
    give_up(*failure, samples);
    kept.restore();
  }
}

optim::Accumulator& Devices::sums_of(optim::Optimizer& optimizer, int device) {
  const auto found = sums_.find({&optimizer, device});
  if (found != sums_.end()) return found->second;
  const DeviceScope on(device);
  return sums_.emplace(std::pair(&optimizer, device), optimizer).first->second;
}

// Each loss by its part of the batch, so that a device adds the batch's gradient as far as it has it.
Devices::Job Devices::gradient_job(const Work& work) {
  const auto gradients_of = [this, work](const Array& loss, int device) {
    return sums_of(work.optimizer, device).adding(work.scaled(loss), work.share.weight());
  };
  const bool is_synced = options_.sync_batch_norm;
  Job job;
  job.each = [=](Piece& piece, double weight) {
    const Array loss = work.loss_of(piece.begin, piece.end);
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

// Of the losses of all pieces, whose samples are counted.
Array Devices::mean_of(const std::vector<Piece>& pieces, std::int64_t samples) {
  Array loss;
  for (const Piece& piece : pieces) {
    const double weight = static_cast<double>(piece.samples()) / static_cast<double>(samples);
    const Array part = weight == 1 ? piece.results[0] : piece.results[0] * weight;
    loss = loss.defined() ? loss + part : part;
    samples_[static_cast<std::size_t>(piece.device)] += piece.samples();
  }
  return loss;
}

// The one that has whole batches; -1: several have shares.
int Devices::only_device() const {
  const auto has_some = [](double part) { return part > 0; };
  if (options_.rebalance || std::count_if(parts_.begin(), parts_.end(), has_some) != 1) return -1;
  return static_cast<int>(std::find_if(parts_.begin(), parts_.end(), has_some) - parts_.begin());
}

// The step of an engine of one device: nobody waits for gradients, and what fails is the caller's.
Array Devices::step_alone(const Work& work, int device) {
  Array loss;
  {
    const DeviceScope on(device);
    loss = work.loss_of(0, work.share.samples);
  }
  if (work.scaler != nullptr)
    work.scaler->step(work.optimizer, loss);
  else
    work.optimizer.step(loss);
  samples_[static_cast<std::size_t>(device)] += work.share.samples;
  last_samples_ = work.share.weight();
  ++steps_;
  return loss;
}

Array Devices::step(const Work& work) {
  if (!has_shares()) measure_shares(work);
  if (const int device = only_device(); device >= 0 && added_ == 0) return step_alone(work, device);
  Array loss = add(work);
  update(work.optimizer, work.scaler);
  return loss;
}

Array Devices::add(const Work& work) {
  if (!work.share.counts) throw ArgumentError("DataParallel: a share of no count is for one of several processes");
  if (added_ > 0 && summed_for_ != &work.optimizer)
    throw ArgumentError("DataParallel: gradients of another optimizer were added; update that one first");
  if (!has_shares()) measure_shares(work);
  const std::vector<Piece> pieces = run(work.share.samples, gradient_job(work));
  for (const Piece& piece : pieces)
    if (!piece.gradients.empty()) sums_of(work.optimizer, piece.device).added(work.share.weight());
  summed_for_ = &work.optimizer;
  added_ += work.share.samples;
  return mean_of(pieces, work.share.samples);
}

// A device that had no share of some batch counts as one that found no gradient there.
void Devices::update(optim::Optimizer& optimizer, optim::GradScaler* scaler) {
  if (added_ == 0) return;
  if (summed_for_ != &optimizer)
    throw ArgumentError("DataParallel: gradients of another optimizer were added; update that one");
  std::vector<Array> means(optimizer.arenas().size());
  for (auto& [of, sum] : sums_) {
    if (of.first != &optimizer || sum.samples() == 0) continue;
    const double weight = sum.samples() / static_cast<double>(added_);
    for (std::size_t i = 0; i < means.size(); ++i) {
      const Array part = weight == 1 ? sum.means()[i] : sum.means()[i] * weight;
      means[i] = means[i].defined() ? means[i] + part : part;
    }
    sum.reset();
  }
  last_samples_ = static_cast<double>(std::exchange(added_, 0));
  if (scaler != nullptr) {
    scaler->step_flat(optimizer, means);
    scaler->update();
  } else {
    optimizer.step_flat(means);
  }
  ++steps_;
}

void Devices::measure_shares(const Work& work) { find_shares(work.share.samples, gradient_job(work)); }

std::vector<ShareResults> Devices::map(std::int64_t samples, const ResultsOf& results_of) {
  Job job;
  job.each = [&](Piece& piece, double) { piece.results = results_of(piece.begin, piece.end); };
  if (!has_shares()) find_shares(samples, job);
  std::vector<double> unused;
  std::vector<ShareResults> results;
  for (Piece& piece : run(samples, job, &unused)) results.push_back({piece.begin, piece.end, std::move(piece.results)});
  return results;
}

}  // namespace samebytes::train::parallel

#include "samebytes/train/parallel/data_parallel.h"

#include <fmt/format.h>

#include <utility>

#include "samebytes/error.h"
#include "train/parallel/devices.h"
#include "train/parallel/ranks.h"

namespace samebytes::train {
namespace {

[[noreturn]] void refuse(const std::string& what) { throw ArgumentError("DataParallel: " + what); }

}  // namespace

DataParallel::DataParallel(Engine& engine, nn::Module& net, const DataParallelOptions& options) : options_(options) {
  if (options.shard_state) refuse("shard_state shares out over processes; expected none over the devices of an engine");
  transport_ = std::make_unique<parallel::Devices>(engine, net, options);
}

DataParallel::DataParallel(distributed::Group& group, nn::Module& net, optim::Optimizer& optimizer,
                           const DataParallelOptions& options)
    : options_(options) {
  if (!options.shares.empty() || options.rebalance)
    refuse("shares and rebalance cut over the devices of an engine; expected none over processes");
  if (!(options.bucket_megabytes > 0))
    refuse(fmt::format("expected bucket_megabytes above 0, got {}", options.bucket_megabytes));
  check(optimizer, 1);
  transport_ = std::make_unique<parallel::Ranks>(group, net, optimizer, options);
}

DataParallel::~DataParallel() = default;

void DataParallel::check(const optim::Optimizer& optimizer, const Share& share) const {
  if (optimizer.releases_gradients())
    refuse(
        "the optimizer has release_gradients, which updates parameters before the gradients of all shares are there; "
        "use one of the two");
  if (share.samples < 1) refuse(fmt::format("expected a batch of 1 sample or more, got {}", share.samples));
}

Array DataParallel::step(optim::Optimizer& optimizer, const Share& share, const LossOf& loss_of,
                         optim::GradScaler* scaler) {
  check(optimizer, share);
  return transport_->step({optimizer, share, loss_of, scaler});
}

Array DataParallel::add(optim::Optimizer& optimizer, const Share& share, const LossOf& loss_of,
                        optim::GradScaler* scaler) {
  check(optimizer, share);
  return transport_->add({optimizer, share, loss_of, scaler});
}

void DataParallel::update(optim::Optimizer& optimizer, optim::GradScaler* scaler) {
  transport_->update(optimizer, scaler);
}

std::vector<DataParallel::ShareResults> DataParallel::map(std::int64_t samples, const ResultsOf& results_of) {
  if (samples < 1) refuse(fmt::format("expected a batch of 1 sample or more, got {}", samples));
  return transport_->map(samples, results_of);
}

std::vector<Array> DataParallel::flat_gradients(optim::Optimizer& optimizer, const Array& loss, const Share& share) {
  check(optimizer, share);
  return transport_->flat_gradients(optimizer, loss, share);
}

void DataParallel::measure_shares(optim::Optimizer& optimizer, std::int64_t samples, const LossOf& loss_of) {
  if (!has_shares()) transport_->measure_shares({optimizer, samples, loss_of, nullptr});
}

std::int64_t DataParallel::added() const { return transport_->added(); }
std::int64_t DataParallel::steps() const { return transport_->steps(); }
double DataParallel::global_samples() const { return transport_->global_samples(); }
std::optional<double> DataParallel::mean_loss() const { return transport_->mean_loss(); }
bool DataParallel::has_shares() const { return transport_->has_shares(); }
std::vector<std::int64_t> DataParallel::shares(std::int64_t samples) const { return transport_->shares(samples); }
std::string DataParallel::to_text(std::int64_t samples) const { return transport_->to_text(samples); }
std::int64_t DataParallel::largest_batch() const { return transport_->largest_batch(); }
const std::vector<std::int64_t>& DataParallel::samples() const { return transport_->samples(); }
const std::vector<DeviceEvent>& DataParallel::events() const { return transport_->events(); }
void DataParallel::set_listener(const std::function<void(const DeviceEvent&)>& listener) {
  transport_->set_listener(listener);
}
std::string DataParallel::state() const { return transport_->state(); }
void DataParallel::load_state(const std::string& text) { transport_->load_state(text); }
void DataParallel::ask_to_stop() { transport_->ask_to_stop(); }
bool DataParallel::is_asked_to_stop() const { return transport_->is_asked_to_stop(); }
ExchangeStats DataParallel::stats() const { return transport_->stats(); }

}  // namespace samebytes::train

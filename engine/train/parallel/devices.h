// Devices: the transport in the memory of one engine. Every device builds the gradients of its share into sums of its
// own, one evaluation runs them side by side, and the update adds them where they lie. devices.cpp runs a batch and
// makes it again without a device that fails; shares.cpp finds the shares and keeps them right.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/optim/accumulator.h"
#include "train/parallel/transport.h"

namespace samebytes::train::parallel {

class Devices final : public Transport {
 public:
  Devices(Engine& engine, nn::Module& net, const DataParallelOptions& options);

  Array step(const Work& work) override;
  Array add(const Work& work) override;
  void update(optim::Optimizer& optimizer, optim::GradScaler* scaler) override;
  std::int64_t added() const override { return added_; }
  std::int64_t steps() const override { return steps_; }
  std::vector<ShareResults> map(std::int64_t samples, const ResultsOf& results_of) override;
  double global_samples() const override { return last_samples_; }

  void measure_shares(const Work& work) override;
  bool has_shares() const override { return !parts_.empty(); }
  std::vector<std::int64_t> shares(std::int64_t samples) const override;
  std::string to_text(std::int64_t samples) const override;
  std::int64_t largest_batch() const override { return largest_batch_; }
  const std::vector<std::int64_t>& samples() const override { return samples_; }
  const std::vector<DeviceEvent>& events() const override { return events_; }
  void set_listener(const std::function<void(const DeviceEvent&)>& listener) override { listener_ = listener; }
  std::string state() const override;
  void load_state(const std::string& text) override;

 private:
  struct Piece {
    int device;
    std::int64_t begin, end;
    std::vector<Array> results;    // of map(), or the loss
    std::vector<Array> gradients;  // nodes that add them to the device's sums
    std::int64_t samples() const { return end - begin; }
  };
  // What a step builds: of each piece on its device, and then of all of them.
  struct Job {
    std::function<void(Piece& piece, double weight)> each;
    std::function<void(std::vector<Piece>& pieces)> together;
  };
  struct Failure {
    DeviceEvent::Kind kind;
    int device;
    std::string why;
  };
  // The random counter and the network's buffers, to go back to.
  class Kept {
   public:
    Kept(Engine& engine, nn::Module& net);
    void restore() const;

   private:
    struct Buffer {
      Array array;
      std::vector<std::byte> bytes;
    };
    Engine& engine_;
    std::uint64_t counter_;
    std::vector<Buffer> buffers_;
  };

  // One evaluation on all devices; makes it again without those that fail. Writes the seconds of each device, if asked.
  std::vector<Piece> run(std::int64_t samples, const Job& job, std::vector<double>* times = nullptr);
  std::vector<Piece> cut(std::int64_t samples);
  void build(std::vector<Piece>& pieces, std::int64_t samples, const Job& job, std::vector<Array>& roots);
  void build_synced(std::vector<Piece>& pieces, std::int64_t samples, const Job& job, std::vector<Array>& roots);
  std::optional<Failure> evaluate(const std::vector<Piece>& pieces, const std::vector<Array>& roots, double expected,
                                  std::vector<double>& seconds);
  double limit_of_step() const;
  double usual_step() const;  // the median of the last steps; 0 where they are too few
  int left() const;           // devices that were not given up
  Job gradient_job(const Work& work);
  optim::Accumulator& sums_of(optim::Optimizer& optimizer, int device);
  Array step_alone(const Work& work, int device);
  int only_device() const;
  Array mean_of(const std::vector<Piece>& pieces, std::int64_t samples);
  // shares.cpp
  void find_shares(std::int64_t samples, const Job& job);
  void keep_one_of_shared_cores(std::int64_t samples, const Job& job, std::vector<double>& parts);
  double time_of(std::int64_t samples, const Job& job, std::vector<double>& seconds);
  void watch(const std::vector<Piece>& pieces, const std::vector<double>& seconds, std::int64_t samples);
  void set_parts(std::vector<double> parts);
  void give_up(const Failure& failure, std::int64_t samples);
  void tell(DeviceEvent::Kind kind, int device, std::string text);
  bool are_alike() const;
  bool are_parts_of_one() const;
  std::vector<std::string> names() const;

  Engine* engine_;
  nn::Module* net_;
  DataParallelOptions options_;
  std::vector<std::string> names_;  // of the devices
  std::vector<double> parts_;       // of each device; empty: not known yet
  std::vector<std::int64_t> samples_;
  // What a device added for an optimizer since its last update: gradients of its parts of the mean losses.
  std::map<std::pair<const optim::Optimizer*, int>, optim::Accumulator> sums_;
  const optim::Optimizer* summed_for_ = nullptr;
  std::int64_t added_ = 0;
  double last_samples_ = 0;
  std::vector<DeviceEvent> events_;
  std::function<void(const DeviceEvent&)> listener_;
  std::int64_t steps_ = 0;
  std::vector<std::deque<double>> recent_;  // seconds a sample, of each device
  std::vector<double> usual_;               // ... its median when the shares were new; 0: not known
  std::vector<int> slow_steps_;             // in a row
  std::vector<double> slow_seconds_;        // that they took
  std::deque<double> step_seconds_;
  double last_seconds_ = 0;    // of the last evaluation, until all devices were done
  std::int64_t last_cut_ = 0;  // samples of the largest batch that was timed
  std::int64_t largest_batch_ = 0;
};

inline constexpr std::size_t kMostSteps = 20;  // that medians are taken of

double median(std::vector<double> values);  // 0 of none

}  // namespace samebytes::train::parallel

// What the options say of training on several devices of one engine, or in several processes as mpirun starts them, and
// what people and the log are told of it. --batch is the batch of all processes together. Rank 0 alone writes: the log,
// checkpoints, the network, what people read.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/options.h"
#include "cli/summary.h"
#include "samebytes/samebytes.h"
#include "samebytes/train/parallel/strategies.h"

namespace samebytes::cli {

// Null where the engine has one device. Throws UsageError for options that need one, or several.
std::unique_ptr<train::DevicesStrategy> make_devices(const Options& options, Engine& engine, nn::Module& net,
                                                     bool is_training = true);
// "shares: 32 + 32 of 64 samples on cpu:0.0, cpu:0.1"
std::string to_text(const train::DevicesStrategy& devices);
void add_to(nlohmann::ordered_json& start_line, const train::DevicesStrategy& devices, const Engine& engine);
void fill(const train::DevicesStrategy& devices, const Engine& engine, Summary& summary);

// Cores that a process of several on one machine may use, where no option says it; 0: as the library does.
int threads_of_rank();

class Ranks {
 public:
  Ranks() = default;  // alone
  // Joins the others, where there are any. Throws UsageError for options that one process only can follow, and alone
  // for those that need several.
  explicit Ranks(const Options& options);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const { return group_ ? group_->rank() : 0; }
  // The options with which this rank trains: rank 0's, and those of the others without what writes. The checkpoint that
  // rank 0 goes on from comes to the others as a file of their own.
  Options own(Options options);
  // Null alone. Throws UsageError for an optimizer that ranks cannot share.
  std::unique_ptr<train::RanksStrategy> join(const Options& options, Engine& engine, nn::Module& net,
                                             optim::Optimizer& optimizer) const;
  bool agree_to_stop() const;  // whether Ctrl-C came to one of them, the same on all

 private:
  std::unique_ptr<distributed::Group> group_;
  std::string fetched_;  // the checkpoint that came from rank 0
};

void fill(train::RanksStrategy& ranks, const optim::Optimizer& optimizer, Summary& summary);

}  // namespace samebytes::cli

// Communicator: the thread of a group. It alone calls MPI: it starts it, moves all messages on, tells the other ranks
// once a second that this one lives, and notices the one that does not. What is to be sent or received comes to it as a
// job; jobs advance side by side, in messages that do not block, while their owner computes.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/mutex.h"
#include "distributed/transport.h"
#include "samebytes/distributed.h"

namespace samebytes::distributed::detail {

using samebytes::detail::CondVar;
using samebytes::detail::Mutex;
using samebytes::detail::MutexLock;

class Job {
 public:
  enum class Progress : std::uint8_t { none, some, done };
  virtual ~Job() = default;
  // As far as it goes without waiting. Called by the communicator's thread alone; what it throws ends the group.
  virtual Progress advance(Transport& transport) = 0;

 private:
  friend class Communicator;
  bool is_done_ = false;  // under the communicator's mutex
};
using JobPtr = std::shared_ptr<Job>;

// Messages under way.
class Requests {
 public:
  void add(Transport::RequestPtr request) { requests_.push_back(std::move(request)); }
  bool is_empty() const { return requests_.empty(); }
  // True where at least one of them came to its end.
  bool advance();

 private:
  std::vector<Transport::RequestPtr> requests_;
};

// Whether the other ranks live.
class Heartbeat {
 public:
  // leaves: needs nobody any more; ends: nor does anybody else, so this is the last word.
  enum class Word : char { alive = 'a', leaves = 'l', ends = 'e', failed = 'f' };
  void begin(Transport& transport, double timeout_seconds);
  // Says and hears what is due. Throws DistributedError for a rank that failed or was silent for too long, and where
  // somebody `waits` for messages though all others have left.
  void advance(Transport& transport, bool waits);
  void say(Transport& transport, Word word);  // and again once a second
  bool have_all(Word word) const;             // leaves or ends

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    char heard = 0, said = 0;
    Transport::RequestPtr hearing, saying;
    double silence = 0;  // seconds, of the time in which this rank itself was awake
    bool has_left = false, has_ended = false;
  };
  std::vector<Peer> peers_;
  Word word_ = Word::alive;
  double timeout_ = 0, in_vain_ = 0;  // seconds
  Clock::time_point looked_{}, spoken_{};
};

class Communicator {
 public:
  explicit Communicator(const GroupOptions& options);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  std::uint64_t id() const { return id_; }  // of this object alone, in this process
  int rank() const { return rank_; }
  int size() const { return size_; }
  int local_rank() const { return local_rank_; }

  // Both throw DistributedError once a rank is gone.
  void start(const JobPtr& job);
  void wait(const JobPtr& job);
  void run(const JobPtr& job) {
    start(job);
    wait(job);
  }
  // Numbers for the messages of one job, the same on every rank, because all make their jobs in one order.
  int next_tag();
  // Where this rank fails in the middle of what all do together: the others are told, and from now on everything here
  // throws DistributedError with `why`.
  void give_up(const std::string& why);
  // Ends the thread: with the other ranks, or at once where something is wrong.
  void close(bool is_well);

 private:
  void work(const GroupOptions& options);
  void serve(Transport& transport, const GroupOptions& options);
  void fail(const std::string& text);
  void leave(Transport& transport);

  const std::uint64_t id_;
  int rank_ = 0, size_ = 1, local_rank_ = 0;  // constant once the thread has started
  Heartbeat heartbeat_;                       // of the thread
  std::vector<JobPtr> active_;                // of the thread
  int tag_ = 0;                               // of the group's user

  mutable Mutex mutex_;
  CondVar changed_;
  std::vector<JobPtr> new_ SAMEBYTES_GUARDED_BY(mutex_);
  std::optional<std::string> failure_ SAMEBYTES_GUARDED_BY(mutex_);
  int waiting_ SAMEBYTES_GUARDED_BY(mutex_) = 0;  // threads in wait()
  std::exception_ptr start_error_ SAMEBYTES_GUARDED_BY(mutex_);
  bool has_started_ SAMEBYTES_GUARDED_BY(mutex_) = false;
  bool is_closing_ SAMEBYTES_GUARDED_BY(mutex_) = false;
  bool is_well_ SAMEBYTES_GUARDED_BY(mutex_) = true;
  std::thread thread_;
};

}  // namespace samebytes::distributed::detail

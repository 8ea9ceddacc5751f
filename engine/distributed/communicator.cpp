#include "distributed/communicator.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "core/threads.h"

namespace samebytes::distributed::detail {
namespace {

std::uint64_t next_communicator() {
  static std::atomic<std::uint64_t> count{0};
  return ++count;
}

constexpr int kBeatTag = 0, kFirstTag = 16;
constexpr int kTagsOfJob = 2;
constexpr int kMostTags = 1 << 20;  // used again after so many jobs; MPI grants far more

constexpr double kBeatSeconds = 1;
constexpr double kLeastLook = 0.01;
constexpr double kMostLook = 2;    // longer between two looks: this rank itself was stopped, nobody else was silent
constexpr double kPatience = 0.2;  // seconds without a message, for who was told to end
constexpr double kFarewellSeconds = 1;  // for the word that something is wrong

// Between two looks at messages: seldom while the cores compute, soon where somebody waits and they move, less so where
// a rank is slow.
std::chrono::microseconds pause_after(double quiet_seconds, bool is_waited_for) {
  if (!is_waited_for) return std::chrono::microseconds(quiet_seconds < 0.1 ? 400 : 1000);
  return std::chrono::microseconds(quiet_seconds < 2e-3 ? 20 : quiet_seconds < 0.1 ? 100 : 1000);
}
constexpr std::chrono::milliseconds kIdle(50);  // without a job

double seconds_between(std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

bool Requests::advance() {
  const std::size_t before = requests_.size();
  std::erase_if(requests_, [](const Transport::RequestPtr& request) { return request->is_done(); });
  return requests_.size() < before;
}

void Heartbeat::begin(Transport& transport, double timeout_seconds) {
  timeout_ = timeout_seconds;
  peers_ = std::vector<Peer>(static_cast<std::size_t>(transport.size()));
  for (int rank = 0; rank < transport.size(); ++rank) {
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    const Piece piece{reinterpret_cast<std::byte*>(&peer.heard), 1};
    if (rank != transport.rank()) peer.hearing = transport.receive(rank, kBeatTag, {&piece, 1});
  }
  looked_ = spoken_ = Clock::now();
}

void Heartbeat::say(Transport& transport, Word word) {
  word_ = word;
  spoken_ = Clock::now();
  for (int rank = 0; rank < transport.size(); ++rank) {
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    if (rank == transport.rank() || (peer.has_ended && word != Word::ends)) continue;
    if (peer.saying && !peer.saying->is_done() && word == Word::alive) continue;
    peer.said = static_cast<char>(word);
    const Piece piece{reinterpret_cast<std::byte*>(&peer.said), 1};
    peer.saying = transport.send(rank, kBeatTag, {&piece, 1});
  }
}

bool Heartbeat::have_all(Word word) const {
  return std::all_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    return !peer.hearing || (word == Word::ends ? peer.has_ended : peer.has_left);
  });
}

void Heartbeat::advance(Transport& transport, bool waits) {
  const auto now = Clock::now();
  double passed = seconds_between(looked_, now);
  if (passed < kLeastLook && word_ == Word::alive) return;
  if (passed > kMostLook) passed = 0;
  looked_ = now;
  if (word_ != Word::ends && seconds_between(spoken_, now) >= kBeatSeconds) say(transport, word_);
  for (int rank = 0; rank < transport.size(); ++rank) {
    Peer& peer = peers_[static_cast<std::size_t>(rank)];
    if (!peer.hearing || peer.has_ended) continue;
    peer.silence += passed;
    while (!peer.has_ended && peer.hearing->is_done()) {
      const auto word = static_cast<Word>(peer.heard);
      if (word == Word::failed)
        throw DistributedError("distributed: rank " + std::to_string(rank) + " ended with an error");
      peer.silence = 0;
      peer.has_left = word != Word::alive;
      peer.has_ended = word == Word::ends;
      if (peer.has_ended) break;
      const Piece piece{reinterpret_cast<std::byte*>(&peer.heard), 1};
      peer.hearing = transport.receive(rank, kBeatTag, {&piece, 1});
    }
    if (peer.silence >= timeout_)
      throw DistributedError("distributed: rank " + std::to_string(rank) + " gave no sign of life for " +
                             std::to_string(static_cast<int>(timeout_)) +
                             " seconds: it has ended or cannot be reached");
  }
  in_vain_ = waits && peers_.size() > 1 && have_all(Word::leaves) ? in_vain_ + passed : 0;
  if (in_vain_ >= timeout_)
    throw DistributedError("distributed: all other ranks have ended their groups, and this one still waits for them");
}

Communicator::Communicator(const GroupOptions& options) : id_(next_communicator()) {
  thread_ = samebytes::detail::start_thread("distributed", [this, options] { work(options); });
  std::exception_ptr error;
  {
    MutexLock lock(mutex_);
    while (!has_started_) changed_.wait(mutex_);
    error = start_error_;
  }
  if (!error) return;
  thread_.join();
  std::rethrow_exception(error);
}

Communicator::~Communicator() { close(true); }

void Communicator::close(bool is_well) {
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    is_closing_ = true;
    is_well_ = is_well_ && is_well;
    changed_.notify_all();
  }
  thread_.join();
}

void Communicator::give_up(const std::string& why) {
  MutexLock lock(mutex_);
  if (!failure_) failure_ = why;
  is_closing_ = true;
  is_well_ = false;
  changed_.notify_all();
}

int Communicator::next_tag() {
  tag_ = (tag_ + 1) % kMostTags;
  return kFirstTag + kTagsOfJob * tag_;
}

void Communicator::start(const JobPtr& job) {
  MutexLock lock(mutex_);
  if (failure_) throw DistributedError(*failure_);
  new_.push_back(job);
  changed_.notify_all();
}

void Communicator::wait(const JobPtr& job) {
  MutexLock lock(mutex_);
  ++waiting_;
  changed_.notify_all();
  while (!job->is_done_ && !failure_) changed_.wait(mutex_);
  --waiting_;
  if (!job->is_done_) throw DistributedError(*failure_);
}

void Communicator::fail(const std::string& text) {
  MutexLock lock(mutex_);
  if (!failure_) failure_ = text;
  changed_.notify_all();
}

void Communicator::work(const GroupOptions& options) {
  std::unique_ptr<Transport> transport;
  try {
    if (launched_processes() > 1) transport = make_mpi_transport();
    MutexLock lock(mutex_);
    if (transport) {
      rank_ = transport->rank();
      size_ = transport->size();
      local_rank_ = transport->local_rank();
    }
    has_started_ = true;
    changed_.notify_all();
  } catch (...) {
    MutexLock lock(mutex_);
    start_error_ = std::current_exception();
    has_started_ = true;
    changed_.notify_all();
    return;
  }
  if (!transport) return;
  try {
    serve(*transport, options);
  } catch (const std::exception& error) {
    fail(error.what());
    // Messages under way still know their memory: it is kept, and MPI is not called any more.
    static auto* const kept = new std::vector<JobPtr>;
    kept->insert(kept->end(), active_.begin(), active_.end());
    MutexLock lock(mutex_);
    while (!is_closing_) changed_.wait(mutex_);
    static_cast<void>(transport.release());
  }
}

void Communicator::serve(Transport& transport, const GroupOptions& options) {
  heartbeat_.begin(transport, options.timeout_seconds);
  auto moved = std::chrono::steady_clock::now();
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (active_.empty() && new_.empty() && !is_closing_) changed_.wait_for(mutex_, kIdle);
      active_.insert(active_.end(), new_.begin(), new_.end());
      new_.clear();
      if (is_closing_ && (active_.empty() || !is_well_)) break;
    }
    heartbeat_.advance(transport, !active_.empty());
    bool has_moved = false;
    std::vector<JobPtr> done;
    for (const JobPtr& job : active_) {
      const Job::Progress progress = job->advance(transport);
      has_moved = has_moved || progress != Job::Progress::none;
      if (progress == Job::Progress::done) done.push_back(job);
    }
    const auto now = std::chrono::steady_clock::now();
    if (has_moved) moved = now;
    if (!done.empty()) {
      std::erase_if(active_, [&](const JobPtr& job) { return std::find(done.begin(), done.end(), job) != done.end(); });
      MutexLock lock(mutex_);
      for (const JobPtr& job : done) job->is_done_ = true;
      changed_.notify_all();
    } else if (!has_moved && !active_.empty()) {
      const double quiet = seconds_between(moved, now);
      if (quiet > kPatience && options.is_told_to_end && options.is_told_to_end())
        throw DistributedError(
            "distributed: this process was told to end while it waited for the other ranks; launchers do that when "
            "one of them has died");
      MutexLock lock(mutex_);
      if (new_.empty() && !is_closing_) changed_.wait_for(mutex_, pause_after(quiet, waiting_ > 0));
    }
    if (active_.empty()) moved = now;
  }
  leave(transport);
}

void Communicator::leave(Transport& transport) {
  bool is_well = false;
  {
    MutexLock lock(mutex_);
    is_well = is_well_;
  }
  const auto begun = std::chrono::steady_clock::now();
  const auto rest = [&] {
    heartbeat_.advance(transport, false);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  if (!is_well) {
    heartbeat_.say(transport, Heartbeat::Word::failed);
    while (seconds_between(begun, std::chrono::steady_clock::now()) < kFarewellSeconds) rest();
    throw DistributedError("distributed: this rank ended with an error");
  }
  heartbeat_.say(transport, Heartbeat::Word::leaves);
  while (!heartbeat_.have_all(Heartbeat::Word::leaves)) rest();
  heartbeat_.say(transport, Heartbeat::Word::ends);
  while (!heartbeat_.have_all(Heartbeat::Word::ends)) rest();
  transport.finish();
}

}  // namespace samebytes::distributed::detail

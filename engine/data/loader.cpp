#include "samebytes/data/loader.h"

#include <thread>

#include "core/threads.h"
#include "data/loader_state.h"
#include "samebytes/cores.h"
#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "samebytes/log.h"
#include "samebytes/profile.h"

namespace samebytes::data {
namespace {

std::string list_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

const Array& Batch::operator[](std::size_t field) const {
  if (field >= arrays_.size())
    throw ArgumentError("batch: field " + std::to_string(field) + " of a batch with " + std::to_string(arrays_.size()));
  return arrays_[field];
}

const Array& Batch::operator[](std::string_view name) const {
  for (std::size_t i = 0; i < arrays_.size(); ++i)
    if ((*names_)[i] == name) return arrays_[i];
  throw ArgumentError("batch: no field '" + std::string(name) +
                      "'; there are: " + (names_ ? list_of(*names_) : "none"));
}

Batch Batch::piece(std::int64_t begin, std::int64_t end) const {
  std::vector<Array> arrays;
  arrays.reserve(arrays_.size());
  for (const Array& field : arrays_) arrays.push_back(share_rows(field, begin, end));
  return {std::move(arrays), names_, epoch_, step_, end - begin};
}

void Batch::check_count(std::size_t wanted) const {
  if (arrays_.size() != wanted)
    throw ArgumentError("batch: taken apart into " + std::to_string(wanted) + " arrays, it has " +
                        std::to_string(arrays_.size()) + ": " + (names_ ? list_of(*names_) : "none") +
                        " (use batch[\"name\"] or batch.as<N>())");
}

// The threads; separate from the state, which arrays may keep alive longer.
class Loader::Workers {
 public:
  Workers(std::shared_ptr<State> state, int count) : state_(std::move(state)) {
    try {
      for (int i = 0; i < count; ++i) threads_.push_back(detail::start_thread("loader", [this, i] { work(i); }));
    } catch (const Error& error) {
      if (threads_.empty()) throw;
      log_message("warning", std::string(error.what()) + "; " + std::to_string(threads_.size()) + " of " +
                                 std::to_string(count) + " workers load");
    } catch (...) {
      join();
      throw;
    }
  }
  ~Workers() { join(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

 private:
  void work(int number) {
    name_profile_lane("loader " + std::to_string(number));
    try {
      if (!state_->worker_cores().empty()) run_this_thread_on(state_->worker_cores());
    } catch (const ArgumentError& error) {  // the constructor has checked the cores
      log_message("warning", error.what());
    }
    state_->work();
  }
  void join() {
    if (state_->is_forked()) {  // the threads run in the parent: destroying their state would block
      for (std::thread& thread : threads_) thread.detach();
      static_cast<void>(new std::shared_ptr<State>(state_));
      return;
    }
    state_->stop();
    for (std::thread& thread : threads_) thread.join();
  }
  std::shared_ptr<State> state_;
  std::vector<std::thread> threads_;
};

LoaderPlace Loader::State::place() const {
  const detail::MutexLock lock(mutex_);
  if (active_) return {epoch_, next_step_};
  return sought_ ? LoaderPlace{epoch_, first_step_} : LoaderPlace{epoch_ + 1, 0};
}

Loader::Loader(Engine& engine, DatasetPtr dataset, const LoaderOptions& options)
    : state_(std::make_shared<State>(engine.context(), std::move(dataset), options)) {}

Loader::~Loader() = default;

Loader::Iterator Loader::begin() {
  state_->check_process();
  if (!pass_.expired())
    throw ArgumentError(
        "loader: a pass over it is not finished, and it has one at a time; leave that loop first, or make "
        "a second Loader for a loop inside it");
  if (!workers_) workers_ = std::make_unique<Workers>(state_, state_->workers());
  state_->begin_pass();
  const auto pass = std::make_shared<char>();
  pass_ = pass;
  return Iterator(this, pass);
}

Loader::Iterator& Loader::Iterator::operator++() {
  batch_ = Batch();  // release first, so that its slot can be refilled
  if (!loader_->next(batch_)) {
    loader_ = nullptr;
    pass_.reset();
  }
  return *this;
}

bool Loader::next(Batch& batch) {
  state_->check_process();
  return state_->next(batch);
}
std::int64_t Loader::size() const { return state_->size(); }
std::int64_t Loader::epoch() const { return state_->epoch(); }
const Dataset& Loader::dataset() const { return state_->dataset(); }
int Loader::workers() const { return state_->workers(); }
void Loader::seek(std::int64_t epoch, std::int64_t step) { state_->seek(epoch, step); }
LoaderPlace Loader::place() const { return state_->place(); }
void Loader::limit_slots(int most) { state_->limit_slots(most); }
LoaderStats Loader::stats() const { return state_->stats(); }
void Loader::reset_stats() { state_->reset_stats(); }

}  // namespace samebytes::data

// A serving loop: threads hand in samples one by one, and one thread answers all that wait as a batch. The network is
// warmed up for each size of a batch, so that no request waits for a kernel to be built.
#include <samebytes/samebytes.h>

#undef NDEBUG
#include <algorithm>
#include <cassert>
#include <condition_variable>
#include <cstdio>
#include <future>
#include <mutex>
#include <thread>
#include <vector>
namespace sb = samebytes;

class Server {
 public:
  Server(sb::Engine& engine, sb::nn::Module& net, std::int64_t width) : engine_(engine), net_(net), width_(width) {
    net_.eval();
    for (const std::int64_t size : {1, 4, 16}) sb::nn::warm(net_, {{.shape = {size, width_}}});
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  }

  // From any thread; the answer comes when its batch is done.
  std::future<int> ask(std::vector<float> sample) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(sample), {}});
    arrived_.notify_one();
    return waiting_.back().answer.get_future();
  }
  int batches() const { return batches_; }

 private:
  struct Request {
    std::vector<float> sample;
    std::promise<int> answer;
  };

  void serve(const std::stop_token& stop) {
    const sb::EngineScope scope(engine_);
    const sb::NoGrad no_grad;
    while (true) {
      std::unique_lock lock(mutex_);
      if (!arrived_.wait(lock, stop, [this] { return !waiting_.empty(); })) return;
      const std::size_t count = std::min<std::size_t>(waiting_.size(), 16);
      std::vector<Request> requests(std::make_move_iterator(waiting_.begin()),
                                    std::make_move_iterator(waiting_.begin() + static_cast<std::ptrdiff_t>(count)));
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
      lock.unlock();
      answer(requests);
    }
  }

  // A batch of the next larger size that is warm; what is left of it stays as it was.
  void answer(std::vector<Request>& requests) {
    const std::int64_t size = requests.size() == 1 ? 1 : requests.size() <= 4 ? 4 : 16;
    sb::Array x = sb::zeros({size, width_}).eval();
    {
      auto values = x.mutable_host<float>();
      for (std::size_t i = 0; i < requests.size(); ++i)
        std::copy(requests[i].sample.begin(), requests[i].sample.end(), &values[i * static_cast<std::size_t>(width_)]);
    }
    const std::vector<std::int32_t> classes = sb::argmax(net_(x), -1).to_vector<std::int32_t>();
    ++batches_;
    for (std::size_t i = 0; i < requests.size(); ++i) requests[i].answer.set_value(classes[i]);
  }

  sb::Engine& engine_;
  sb::nn::Module& net_;
  std::int64_t width_;
  std::atomic<int> batches_ = 0;
  std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::vector<Request> waiting_;
  std::jthread thread_;  // last: stops and joins before the rest goes
};

int main() {
  sb::Engine engine({.seed = 1});
  sb::nn::Sequential net(sb::nn::Linear({.in = 8, .out = 64}), sb::nn::Relu(), sb::nn::Linear({.in = 64, .out = 3}));
  Server server(engine, net, 8);

  std::vector<std::jthread> clients;
  std::atomic<int> answers = 0;
  for (int client = 0; client < 4; ++client)
    clients.emplace_back([&, client] {
      for (int i = 0; i < 50; ++i) {
        const int label = server.ask(std::vector<float>(8, 0.1f * static_cast<float>(client + i))).get();
        if (label >= 0 && label < 3) ++answers;
      }
    });
  clients.clear();  // joins
  std::printf("200 requests, %d answers, %d batches\n", answers.load(), server.batches());
  assert(answers == 200 && server.batches() <= 200);
}

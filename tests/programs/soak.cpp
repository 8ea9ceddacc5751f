// Mixed work for a while, again and again in one process: engines opened and closed, trainings of changing shapes,
// evaluation, states saved and loaded, errors of all kinds, a second device, threads. Memory, open files and threads
// must not grow. soak SECONDS FOLDER: a line a cycle, status 1 with a sentence where something grew or went wrong.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "samebytes/samebytes.h"

namespace {

using namespace samebytes;

struct Standing {
  long resident_kib = 0, threads = 0, files = 0;
};

Standing standing() {
  Standing now;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmRSS:") status >> now.resident_kib;
    if (word == "Threads:") status >> now.threads;
  }
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++now.files;
  return now;
}

template <class E, class F>
void must_throw(const char* what, F&& f) {
  try {
    f();
  } catch (const E&) {
    return;
  }
  throw Error(std::string("soak: no error from ") + what);
}

double train(Engine& engine, const std::string& folder, int cycle) {
  const EngineScope scope(engine);
  nn::Linear first({.in = 16, .out = 32}), second({.in = 32, .out = 4});
  std::vector<Array> parameters = first.parameters();
  for (const Array& each : second.parameters()) parameters.push_back(each);
  optim::Adam adam(parameters, {.rate = 1e-2});
  double last = 0;
  for (int step = 0; step < 20; ++step) {
    const std::int64_t rows = 1 + (step + cycle) % 7;
    const Array x = uniform({rows, 16}), target = uniform({rows, 4});
    const Array loss = mse_loss(second(relu(first(x))), target);
    adam.step(gradients(loss, adam.parameters()));
    if (step % 5 == 0) last = loss.value();
  }
  RunState state(engine);
  state.add("first", first);
  state.add("second", second);
  state.add("adam", adam);
  state.save(folder + "/state.safetensors");
  state.load(folder + "/state.safetensors");
  const NoGrad guard;
  return last + sum(second(relu(first(ones({3, 16}))))).value();
}

void errors(Engine& engine, const std::string& folder) {
  const EngineScope scope(engine);
  must_throw<ArgumentError>("shapes", [] { matmul(ones({2, 3}), ones({2, 3})); });
  must_throw<IoError>("a file", [&] { io::read_file(folder + "/missing"); });
  must_throw<BuildError>("a kernel", [] {
    custom_op({.name = "broken",
               .entry = "broken",
               .source = "__kernel void broken(ARRAY(const real, x), ARRAY(real, y), const int n) { ; "},
              {ones({4})}, {4})
        .eval();
  });
  must_throw<Error>("memory", [&] {
    engine.set_memory_limit(std::size_t{1} << 20);
    ones({1 << 22}).wait();
  });
  engine.set_memory_limit(std::size_t{1} << 34);
}

void cycle_of(const std::string& folder, int cycle) {
  Engine engine;
  if (!std::isfinite(train(engine, folder, cycle))) throw Error("soak: a loss is not finite");
  errors(engine, folder);
  if (!std::isfinite(train(engine, folder, cycle + 1))) throw Error("soak: a loss is not finite after errors");
  if (engine.device().cores >= 2 && cycle % 4 == 0) {
    EngineOptions options;
    options.split = {1, 1};
    Engine two(options);
    train(two, folder, cycle);
  }
  std::thread([&] { train(engine, folder, cycle + 2); }).join();
  engine.wait();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: soak SECONDS FOLDER\n");
    return 2;
  }
  const double seconds = std::atof(argv[1]);
  const auto start = std::chrono::steady_clock::now();
  const auto so_far = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  try {
    std::vector<Standing> all;
    constexpr std::size_t kFewest = 16;
    for (int cycle = 0; so_far() < seconds || all.size() < kFewest; ++cycle) {
      cycle_of(argv[2], cycle);
      all.push_back(standing());
      std::printf("%7.0f s  cycle %d  %ld KiB  %ld threads  %ld files\n", so_far(), cycle, all.back().resident_kib,
                  all.back().threads, all.back().files);
      std::fflush(stdout);
    }
    // The second quarter is the measure: by then every kernel has run once. What is left apart varies by a few pages.
    constexpr long kSpareKib = 4096;
    Standing usual, last;
    const auto widen = [](Standing& to, const Standing& from) {
      to.resident_kib = std::max(to.resident_kib, from.resident_kib);
      to.threads = std::max(to.threads, from.threads);
      to.files = std::max(to.files, from.files);
    };
    for (std::size_t i = all.size() / 4; i < all.size() / 2; ++i) widen(usual, all[i]);
    for (std::size_t i = all.size() * 3 / 4; i < all.size(); ++i) widen(last, all[i]);
    std::printf("usual %ld KiB, %ld threads, %ld files; at the end %ld KiB, %ld threads, %ld files\n",
                usual.resident_kib, usual.threads, usual.files, last.resident_kib, last.threads, last.files);
    if (last.resident_kib > usual.resident_kib + kSpareKib) throw Error("soak: memory grew");
    if (last.threads > usual.threads) throw Error("soak: threads were left");
    if (last.files > usual.files) throw Error("soak: files were left open");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return 0;
}

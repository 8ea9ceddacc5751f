// What it costs to hand bytes from the host to a device and back, in each memory mode.
#include <algorithm>
#include <cstring>
#include <string>

#include "profile/least_seconds.h"
#include "runtime/devices.h"
#include "runtime/runtime.h"
#include "samebytes/error.h"
#include "samebytes/log.h"

namespace samebytes {
namespace {

constexpr int kRounds = 3;

// Hands the block over as a launch would, and waits.
void give_to_device(detail::Runtime& runtime, detail::Storage& storage) {
  detail::Submission submission(runtime);
  submission.acquire(storage, true, "measuring memory", 0, storage.bytes());
  submission.finish()->wait();
}

HandOver measure(const DeviceInfo& device, MemoryMode mode, std::size_t bytes) {
  detail::RuntimeOptions options;
  options.device = std::to_string(device.index);
  options.force_mode = true;
  options.mode = mode;
  options.tuning = "";
  detail::Runtime runtime(options);
  const detail::StoragePtr storage = runtime.allocate(bytes, detail::Category::value, "measuring memory");
  const auto host = [&](bool writes) {
    std::uint64_t borrow = 0;
    void* const address = storage->acquire_host(writes, 0, bytes, __FILE__, __LINE__, &borrow);
    if (writes) std::memset(address, 1, bytes);
    storage->release_host(borrow);
  };
  HandOver cost{.mode = mode, .to_device = 1e9, .to_host = 1e9};
  for (int round = 0; round < kRounds; ++round) {
    host(true);
    cost.to_device = std::min(cost.to_device, detail::least_seconds(1, [&] { give_to_device(runtime, *storage); }));
    cost.to_host = std::min(cost.to_host, detail::least_seconds(1, [&] { host(false); }));
  }
  return cost;
}

}  // namespace

std::vector<HandOver> measure_hand_over(const DeviceInfo& device, std::size_t bytes) {
  std::vector<HandOver> costs;
  if (bytes == 0) throw ArgumentError("measure_hand_over: expected 1 byte or more, got 0");
  for (const MemoryMode mode : detail::kMemoryModes) {
    std::string reason;
    if (!detail::can_use_mode(device, mode, &reason)) continue;
    try {
      costs.push_back(measure(device, mode, bytes));
    } catch (const Error& error) {
      log_message("warning", std::string("devices: mode ") + name_of(mode) + " is left out: " + error.what());
    }
  }
  return costs;
}

}  // namespace samebytes

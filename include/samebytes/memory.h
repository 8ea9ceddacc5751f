// Host access to the bytes of arrays, adoption of the user's own memory, and the reports of transfers and memory.
// A HostView owns a borrow: while a writing view lives, launching work that uses those bytes throws ArgumentError.
// Array::host and Array::mutable_host make views: they evaluate the array and wait for its last writer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "samebytes/device.h"
#include "samebytes/shape.h"

namespace samebytes {

class Array;

namespace detail {

// The borrow itself: maps on construction, releases on destruction. Not for users.
class Borrow {
 public:
  Borrow(const Array& array, bool writes, const char* file, int line);
  Borrow(Borrow&& other) noexcept;
  Borrow& operator=(Borrow&& other) noexcept;
  ~Borrow();
  void* data() const { return data_; }

 private:
  struct State;
  std::unique_ptr<State> state_;
  void* data_ = nullptr;
};

}  // namespace detail

// A span over the bytes that the device itself uses. T is const for a reading view. Move-only.
template <class T>
class HostView {
 public:
  HostView(detail::Borrow borrow, std::size_t count)
      : borrow_(std::move(borrow)), span_(static_cast<T*>(borrow_.data()), count) {}

  std::span<T> span() const { return span_; }
  T* data() const { return span_.data(); }
  std::size_t size() const { return span_.size(); }
  T& operator[](std::size_t i) const { return span_[i]; }
  T* begin() const { return span_.data(); }
  T* end() const { return span_.data() + span_.size(); }

 private:
  detail::Borrow borrow_;
  std::span<T> span_;
};

// What adopt() did with the memory it was given.
struct Adoption {
  bool adopted = false;  // false: the bytes were copied once
  std::string reason;    // "adopted: fine-grained system SVM", "copied: pointer is not page-aligned"
};

// Bytes moved since the engine started. In the fine and system modes, with one OpenCL context, all transfers between
// host and device are zero. bytes_gathered counts the host's own work in every mode; it is 0 where batches are views of
// the data set.
struct TransferReport {
  std::uint64_t bytes_gathered = 0;          // rows that the host copied or decoded into lent slots
  std::uint64_t bytes_copied = 0;            // read, write, copy, SVM memcpy, migration, copied host pointers, staging
  std::uint64_t bytes_between_contexts = 0;  // of these: between devices that share no memory
  std::uint64_t crossings = 0;               // transfers that moved them
  std::uint64_t bytes_to_device = 0;
  std::uint64_t bytes_to_host = 0;
  std::uint64_t bytes_mapped = 0;    // mapped for the host; nothing moves where memory is shared
  std::uint64_t relayout_bytes = 0;  // device-side copies that make a strided view dense
};

// What an engine's bytes are used for.
enum class MemoryCategory : std::uint8_t {
  parameters,   // cells, and their 16-bit working copies
  gradients,    // flat gradients; those of 4 MiB or more lie in the arena, where only a snapshot tells them apart
  optimizer,    // state of optimizers and of averages of weights
  activations,  // the arena of all plans: values that live for some launches only
  inputs,       // slots of loaders
  library,      // temporaries of CLBlast
  other,        // values with a live handle
};
inline constexpr std::size_t kMemoryCategories = 7;
const char* name_of(MemoryCategory category);  // "parameters", "optimizer"

struct MemoryByCategory {
  std::array<std::size_t, kMemoryCategories> bytes{};
  std::size_t operator[](MemoryCategory category) const { return bytes[static_cast<std::size_t>(category)]; }
  std::size_t& operator[](MemoryCategory category) { return bytes[static_cast<std::size_t>(category)]; }
  MemoryByCategory& operator+=(const MemoryByCategory& other) {
    for (std::size_t i = 0; i < kMemoryCategories; ++i) bytes[i] += other.bytes[i];
    return *this;
  }
  std::size_t total() const {
    std::size_t sum = 0;
    for (const std::size_t one : bytes) sum += one;
    return sum;
  }
};

struct MemoryReport {
  std::size_t live_bytes = 0;     // in use by arrays, arenas and slots
  std::size_t cached_bytes = 0;   // kept for reuse
  std::size_t adopted_bytes = 0;  // the user's own memory
  std::size_t library_bytes = 0;  // temporaries of CLBlast
  std::size_t peak_bytes = 0;     // largest live + library
  std::size_t limit_bytes = 0;
  std::uint64_t allocations = 0;      // made by the driver, not served by the cache
  std::string peak_cause;             // op that caused the peak; for a peak in the arena, the op at the arena's own
                                      // peak
  std::string peak_layer;             // "h.0.mlp Linear", or empty
  MemoryByCategory live_by_category;  // its total is live + library
  MemoryByCategory peak_by_category;  // its total is the peak
};

}  // namespace samebytes

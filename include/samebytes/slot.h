// Slot: a piece of shared memory that host threads fill and the device reads, repeatedly. Loader uses slots, and other
// feeders (a camera, a socket) can: fill, lend as an Array, wait for its return, fill again. begin_fill() and
// end_fill() may run in any thread, but only one thread may use a slot at a time. Where memory is shared, nothing is
// copied between host and device; TransferReport's bytes_gathered counts the host's writes when a slot is lent. This
// header also has functions for rows of an array, which write nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "samebytes/array.h"
#include "samebytes/dtype.h"
#include "samebytes/shape.h"

namespace samebytes {

namespace detail {
struct Context;
}

class Slot {
 public:
  // Allocates from the memory of engine.context(). `what` names the slot in errors. Throws OutOfMemory, and
  // ArgumentError if the engine no longer exists.
  Slot(std::shared_ptr<detail::Context> engine, std::size_t bytes, const std::string& what);
  ~Slot();
  Slot(Slot&&) noexcept;
  Slot& operator=(Slot&&) noexcept;

  std::size_t bytes() const;
  // The memory for the host to write. Waits for launches that still use it. Requires: not lent.
  // Throws ArgumentError if the engine no longer exists.
  std::span<std::byte> begin_fill(const char* file = __builtin_FILE(), int line = __builtin_LINE());
  void end_fill() noexcept;
  // The first bytes as an array. The slot is lent until its last handle, view and unfinished node is destroyed; then
  // `returned` runs once, in the thread where that happens, and must not throw or use arrays. Launches may still read
  // the slot then. Throws ArgumentError for a shape that needs more bytes than the slot has.
  Array lend(const Shape& shape, Dtype dtype, std::function<void()> returned);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Rows [begin, end) of the first axis as a separate array over the same bytes. Unlike a slice it is no view: no
// gradient flows through it, and pieces of equal shape share one plan, wherever they begin. Evaluates a first. Throws
// ArgumentError if a is a cell or not contiguous, and for rows out of range.
Array share_rows(const Array& a, std::int64_t begin, std::int64_t end);
// The same, read-only: mutable_host() of it, or of rows of it, throws ArgumentError. For rows of shared arrays, such as
// a data set.
Array show_rows(const Array& a, std::int64_t begin, std::int64_t end);
// Whether ops can combine the array with arrays of engine.context(). False for an empty handle.
bool is_of(const Array& a, const std::shared_ptr<detail::Context>& engine);

}  // namespace samebytes

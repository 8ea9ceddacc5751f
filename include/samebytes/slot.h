// Slot: a piece of shared memory that host threads fill and the device reads, over and over: what a Loader is made of,
// and what other feeders (a camera, a socket) can be made of. fill, lend as an Array, wait for its return, fill again.
// begin_fill() .. end_fill() may run in any thread; one thread at a time uses a slot. Nothing is copied between host
// and device where memory is shared; what the host wrote into a slot is counted when it is lent (TransferReport's
// bytes_gathered). Here too: rows of an array as an array, which writes nothing at all.
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
  // In the memory of engine.context(). `what` names it in errors. Throws OutOfMemory, ArgumentError where the engine is
  // gone.
  Slot(std::shared_ptr<detail::Context> engine, std::size_t bytes, const std::string& what);
  ~Slot();
  Slot(Slot&&) noexcept;
  Slot& operator=(Slot&&) noexcept;

  std::size_t bytes() const;
  // The memory, for the host to write. Waits for launches that still use it. Requires: not lent.
  // Throws ArgumentError where the engine is gone.
  std::span<std::byte> begin_fill(const char* file = __builtin_FILE(), int line = __builtin_LINE());
  void end_fill() noexcept;
  // The first bytes as an array. The slot is lent until the last handle, view and unfinished node of it is gone; then
  // `returned` runs, once, in whatever thread that happens, and must not throw or use arrays. Launches may still be
  // reading. Throws ArgumentError for a shape that needs more bytes than the slot has.
  Array lend(const Shape& shape, Dtype dtype, std::function<void()> returned);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Rows [begin, end) of the first axis as an array of its own over the same bytes. Unlike a slice it is no view: no
// gradient flows through it, and all pieces of equal shape share one plan, wherever they begin. a is evaluated first.
// Throws ArgumentError for a cell, for a that is not contiguous and for rows that it does not have.
Array share_rows(const Array& a, std::int64_t begin, std::int64_t end);
// The same to be read alone: mutable_host() of it, or of rows of it, throws ArgumentError. For rows of what others
// still need, such as a data set.
Array show_rows(const Array& a, std::int64_t begin, std::int64_t end);
// Whether ops take the array together with those of engine.context(). False for an empty handle.
bool is_of(const Array& a, const std::shared_ptr<detail::Context>& engine);

}  // namespace samebytes

// Transport: messages between ranks that do not block, as MPI has them. Used by one thread alone, the communicator's.
// mpi_transport.cpp is the one over MPI; a group of one process has none to send to.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace samebytes::distributed::detail {

// Bytes that are sent or received where they lie.
struct Piece {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

class Transport {
 public:
  // A message under way. Its pieces stay as they are until it is done; one that is destroyed before is left to itself.
  class Request {
   public:
    virtual ~Request() = default;
    virtual bool is_done() = 0;  // also makes progress
  };
  using RequestPtr = std::unique_ptr<Request>;

  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;
  virtual std::string host() const = 0;  // of this rank
  // Messages of one sender with one tag arrive in the order in which they were sent. All throw DistributedError.
  virtual RequestPtr send(int to, int tag, std::span<const Piece> pieces) = 0;
  virtual RequestPtr receive(int from, int tag, std::span<const Piece> pieces) = 0;
  // Waits for all ranks. Without it the program ends as a broken one.
  virtual void finish() = 0;
};

// In the thread that will use it.
std::unique_ptr<Transport> make_mpi_transport();
bool has_mpi();

}  // namespace samebytes::distributed::detail

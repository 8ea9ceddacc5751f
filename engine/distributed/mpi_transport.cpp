// Transport over MPI. Built where CMake found MPI (SAMEBYTES_MPI); the only file that sees its header. MPI is asked for
// MPI_THREAD_FUNNELED: the communicator's thread starts it, is its main thread and the only one that ever calls it, so
// no lock of MPI is taken and any build of it will do.
#include "distributed/transport.h"

#include "samebytes/distributed.h"

#ifdef SAMEBYTES_MPI
#define OMPI_SKIP_MPICXX 1  // the C++ functions that MPI has no longer
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <vector>

namespace samebytes::distributed::detail {
namespace {

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw DistributedError(std::string("distributed: ") + call + ": " +
                         std::string(text, static_cast<std::size_t>(length)));
}

// Several pieces as one message: a type of absolute addresses, so that nothing is gathered by us.
class MpiRequest final : public Transport::Request {
 public:
  explicit MpiRequest(std::span<const Piece> pieces) {
    std::vector<MPI_Aint> places;
    std::vector<int> lengths;
    for (const Piece& piece : pieces) {
      constexpr std::size_t kMost = std::size_t{1} << 30;  // MPI counts in int
      for (std::size_t begin = 0; begin < piece.bytes; begin += kMost) {
        MPI_Aint place = 0;
        check(MPI_Get_address(piece.data + begin, &place), "MPI_Get_address");
        places.push_back(place);
        lengths.push_back(static_cast<int>(std::min(kMost, piece.bytes - begin)));
      }
    }
    if (places.size() == 1) {
      data_ = pieces.front().data;
      count_ = lengths.front();
      return;
    }
    check(MPI_Type_create_hindexed(static_cast<int>(places.size()), lengths.data(), places.data(), MPI_BYTE, &type_),
          "MPI_Type_create_hindexed");
    check(MPI_Type_commit(&type_), "MPI_Type_commit");
  }
  ~MpiRequest() override {
    if (type_ != MPI_BYTE) MPI_Type_free(&type_);  // a message under way keeps it
  }
  bool is_done() override {
    int done = 0;
    check(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  }

  void* data_ = MPI_BOTTOM;
  int count_ = 1;
  MPI_Datatype type_ = MPI_BYTE;
  MPI_Request request_ = MPI_REQUEST_NULL;
};

class MpiTransport final : public Transport {
 public:
  MpiTransport() {
    int started = 0, provided = 0;
    MPI_Initialized(&started);
    if (started != 0)
      throw ArgumentError("distributed: MPI was started already; there is one Group in a process, and it starts MPI");
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    // A communicator of its own: what the program sends by itself does not meet ours.
    check(MPI_Comm_dup(MPI_COMM_WORLD, &world_), "MPI_Comm_dup");
    check(MPI_Comm_set_errhandler(world_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    check(MPI_Comm_rank(world_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(world_, &size_), "MPI_Comm_size");
    MPI_Comm machine = MPI_COMM_NULL;
    check(MPI_Comm_split_type(world_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &machine), "MPI_Comm_split_type");
    check(MPI_Comm_rank(machine, &local_rank_), "MPI_Comm_rank");
    MPI_Comm_free(&machine);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  std::string host() const override {
    char name[MPI_MAX_PROCESSOR_NAME] = "";
    int length = 0;
    MPI_Get_processor_name(name, &length);
    return {name, static_cast<std::size_t>(length)};
  }
  RequestPtr send(int to, int tag, std::span<const Piece> pieces) override {
    auto request = std::make_unique<MpiRequest>(pieces);
    check(MPI_Isend(request->data_, request->count_, request->type_, to, tag, world_, &request->request_), "MPI_Isend");
    return request;
  }
  RequestPtr receive(int from, int tag, std::span<const Piece> pieces) override {
    auto request = std::make_unique<MpiRequest>(pieces);
    check(MPI_Irecv(request->data_, request->count_, request->type_, from, tag, world_, &request->request_),
          "MPI_Irecv");
    return request;
  }
  void finish() override {
    MPI_Comm_free(&world_);
    MPI_Finalize();
  }

 private:
  MPI_Comm world_ = MPI_COMM_NULL;
  int rank_ = 0, size_ = 1, local_rank_ = 0;
};

}  // namespace

std::unique_ptr<Transport> make_mpi_transport() { return std::make_unique<MpiTransport>(); }
bool has_mpi() { return true; }

}  // namespace samebytes::distributed::detail

#else

namespace samebytes::distributed::detail {

std::unique_ptr<Transport> make_mpi_transport() {
  throw DistributedError(
      "distributed: this build of Samebytes has no MPI, so it trains in one process; install libopenmpi-dev and "
      "openmpi-bin, then configure and build it again");
}
bool has_mpi() { return false; }

}  // namespace samebytes::distributed::detail
#endif

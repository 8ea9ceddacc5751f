#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <exception>
#include <initializer_list>

#include "distributed/jobs.h"
#include "samebytes/distributed.h"
#include "samebytes/memory.h"
#include "samebytes/ops.h"

namespace samebytes::distributed {
namespace {

using detail::Combining;
using detail::Piece;
using samebytes::detail::Borrow;

std::atomic<bool> g_was_started{false};

std::size_t bytes_in(const Array& array) { return static_cast<std::size_t>(array.size()) * bytes_of(array.dtype()); }

void check_root(int root, int size) {
  if (root < 0 || root >= size)
    throw ArgumentError("broadcast: root must be from 0 to " + std::to_string(size - 1) + ", got " +
                        std::to_string(root));
}

void check_array(const char* function, const Array& array) {
  if (!array.defined()) throw ArgumentError(std::string(function) + ": got an empty array handle");
}

// Weights that make a sum or a mean.
std::vector<double> weights_of(Reduction reduction, int size) {
  return std::vector<double>(static_cast<std::size_t>(size), reduction == Reduction::mean ? 1.0 / size : 1.0);
}

Combining::Kind kind_of(Reduction reduction) {
  return reduction == Reduction::max   ? Combining::Kind::max
         : reduction == Reduction::min ? Combining::Kind::min
                                       : Combining::Kind::weighted;
}

void reduce(detail::Communicator& communicator, Piece piece, Dtype dtype, Reduction reduction) {
  const std::vector<double> weights = weights_of(reduction, communicator.size());
  communicator.run(std::make_shared<detail::AllReduce>(communicator, std::vector<Piece>{piece}, dtype,
                                                       kind_of(reduction),
                                                       [&weights] { return std::span<const double>(weights); }));
}

int number_in(std::initializer_list<const char*> variables) {
  for (const char* name : variables)
    if (const char* const value = std::getenv(name)) return std::max(1, std::atoi(value));
  return 1;
}

}  // namespace

bool is_available() { return detail::has_mpi(); }

// Open MPI's own words, then those of other launchers that it can be started by.
int launched_processes() { return number_in({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}); }
int launched_local_processes() { return number_in({"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}); }

Group::Group(const GroupOptions& options) : exceptions_(std::uncaught_exceptions()) {
  if (!(options.timeout_seconds >= 2))
    throw ArgumentError("distributed: timeout_seconds must be at least 2, got " +
                        std::to_string(options.timeout_seconds));
  if (g_was_started.exchange(true))
    throw ArgumentError("distributed: this process had a Group already, and MPI cannot be started again");
  communicator_ = std::make_shared<detail::Communicator>(options);
}

Group::~Group() { communicator_->close(std::uncaught_exceptions() <= exceptions_); }

int Group::rank() const { return communicator_->rank(); }
int Group::size() const { return communicator_->size(); }
int Group::local_rank() const { return communicator_->local_rank(); }

void Group::barrier() { static_cast<void>(all_gather(0.0)); }

void Group::all_reduce(const Array& array, Reduction reduction) {
  check_array("all_reduce", array);
  if (array.dtype() == u8 || array.dtype() == bool_ || (!is_floating(array.dtype()) && reduction == Reduction::mean))
    throw ArgumentError("all_reduce: " + std::string(name_of(array.dtype())) + " has no such reduction");
  if (size() == 1 || array.size() == 0) return;
  const Borrow view(array, true, __FILE__, __LINE__);
  reduce(*communicator_, {static_cast<std::byte*>(view.data()), bytes_in(array)}, array.dtype(), reduction);
}

void Group::all_reduce(std::span<double> values, Reduction reduction) {
  if (size() == 1 || values.empty()) return;
  reduce(*communicator_, {reinterpret_cast<std::byte*>(values.data()), values.size_bytes()}, f64, reduction);
}

void Group::broadcast(const Array& array, int root) {
  check_array("broadcast", array);
  check_root(root, size());
  if (size() == 1 || array.size() == 0) return;
  const Borrow view(array, rank() != root, __FILE__, __LINE__);
  communicator_->run(std::make_shared<detail::Broadcast>(
      *communicator_, Piece{static_cast<std::byte*>(view.data()), bytes_in(array)}, root));
}

std::string Group::broadcast(const std::string& text, int root) {
  check_root(root, size());
  if (size() == 1) return text;
  double length = static_cast<double>(text.size());
  communicator_->run(std::make_shared<detail::Broadcast>(
      *communicator_, Piece{reinterpret_cast<std::byte*>(&length), sizeof length}, root));
  std::string result = rank() == root ? text : std::string(static_cast<std::size_t>(length), '\0');
  communicator_->run(std::make_shared<detail::Broadcast>(
      *communicator_, Piece{reinterpret_cast<std::byte*>(result.data()), result.size()}, root));
  return result;
}

Array Group::all_gather(const Array& array) {
  check_array("all_gather", array);
  if (array.shape().rank() == 0)
    throw ArgumentError("all_gather: expected an array with an axis, got a scalar; reshape it to {1}");
  Shape shape = array.shape();
  shape[0] *= size();
  Array result = empty(shape, array.dtype());
  if (result.size() == 0) return result;
  const Borrow from(array, false, __FILE__, __LINE__), to(result, true, __FILE__, __LINE__);
  std::vector<Piece> places;
  places.reserve(static_cast<std::size_t>(size()));
  for (int rank = 0; rank < size(); ++rank)
    places.push_back(
        {static_cast<std::byte*>(to.data()) + bytes_in(array) * static_cast<std::size_t>(rank), bytes_in(array)});
  const Piece own{static_cast<std::byte*>(from.data()), bytes_in(array)};
  if (size() == 1)
    std::copy_n(own.data, own.bytes, places[0].data);
  else
    communicator_->run(std::make_shared<detail::Gather>(*communicator_, own, std::move(places)));
  return result;
}

std::vector<double> Group::all_gather(double value) {
  std::vector<double> result(static_cast<std::size_t>(size()), value);
  if (size() == 1) return result;
  std::vector<Piece> places;
  places.reserve(result.size());
  for (double& place : result) places.push_back({reinterpret_cast<std::byte*>(&place), sizeof place});
  communicator_->run(std::make_shared<detail::Gather>(
      *communicator_, Piece{reinterpret_cast<std::byte*>(&value), sizeof value}, std::move(places)));
  return result;
}

}  // namespace samebytes::distributed

// A row of bench_kernels: one kernel of ours at one shape, its peers, what its result must be, and its bound. A row is
// made when it is run, so its arrays live as long as it does.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "native/peer.h"
#include "samebytes/array.h"

namespace samebytes::benchmarks {

enum class Bound { multiply_adds, bandwidth, bandwidth_in_place };  // the last where results lie over what was read
inline bool is_bandwidth(Bound bound) { return bound != Bound::multiply_adds; }

struct Row {
  double work = 0;  // flop of one launch, or the bytes that it must read and write once
  Bound bound = Bound::multiply_adds;
  std::function<Array()> make = {};  // a fresh node of our kernel
  std::vector<Peer> peers = {};      // those without `run` are left out
  std::int64_t length = 1;           // of the longest sum, for the tolerance
  // What element i must be, in double; a sample of elements is compared. Empty: the peers' results are the measure.
  std::function<double(std::int64_t i)> expected = {};
  // Instead of `make` and `expected`, for what overwrites its own state: takes one step, and says what is wrong with
  // it or nothing.
  std::function<void()> step = {};
  std::function<std::string()> check = {};
  double largest = 1;  // of the terms of that sum, about
};

struct Entry {
  std::string family, name;  // "conv2d", "16to16_at32/forward"
  std::function<Row()> make;
};

// One file each.
void add_matmul(std::vector<Entry>& entries);
void add_convolutions(std::vector<Entry>& entries);
void add_attention(std::vector<Entry>& entries);
void add_pointwise(std::vector<Entry>& entries);  // chains, copies, random numbers, optimizers
void add_norms(std::vector<Entry>& entries);
void add_rows(std::vector<Entry>& entries);  // soft-max, losses, reductions, scans
void add_pooling(std::vector<Entry>& entries);

struct Machine {
  double gflops = 0;     // of multiply-adds in registers
  double gigabytes = 0;  // per second of c = a + b, ours or the host's, whichever is more; rows take turns with
                         // the host's and have their share of that
  double gigabytes_in_place = 0;  // of a = a + b on the host
  double of(Bound bound) const {
    return bound == Bound::multiply_adds ? gflops : bound == Bound::bandwidth ? gigabytes : gigabytes_in_place;
  }
};

// Medians over the rounds, in 1e9 flop or bytes a second; 0 where there is none.
struct Result {
  std::string family, name;
  std::string unit;  // "GFLOP/s", "GB/s"
  double seconds = 0;
  double ours = 0, eigen = 0, openblas = 0, onednn = 0;
  double share = 0;   // of the bound
  double ratio = 0;   // to the best peer: the median of the ratios of the rounds
  double others = 0;  // cores that other processes took meanwhile
  double spread = 0;  // (slowest - fastest) / median of our rounds
};

// Checks, then times for about `seconds` a side. Throws Error for a wrong result, with what came and what was wanted.
Result run_row(const Entry& entry, const Machine& machine, double seconds);

// ---- for the files that make rows

Array values(const Shape& shape);  // uniform in [-1, 1), evaluated
double bytes(const Array& a);
std::vector<float> host(const Array& a);
// dy x d y / d wrt without a pass over dy.
Array pull_back(const Array& y, const Array& dy, const Array& wrt);

}  // namespace samebytes::benchmarks

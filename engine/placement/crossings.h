// What it costs to bring bytes from one context to another, and to pass over them on a device: measured once for a pair
// of devices and their memory modes, and kept in contexts.json beside the tuner's stores, where people can read and
// edit it. Without a store (SAMEBYTES_TUNING=off, EngineOptions::tuning "") and in rehearsals built-in numbers hold.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "graph/context.h"

namespace samebytes::detail {

class Crossings {
 public:
  // Makes a launch that overwrites so many bytes of a storage on a device. What comes back enqueues it and waits.
  using Pass = std::function<std::function<void()>(Device& device, Storage& storage, std::size_t bytes)>;
  // Reads the store; measures what it lacks and writes it. Throws IoError for a damaged one.
  Crossings(Context& context, const Pass& pass);

  double seconds(int from, int to, std::size_t bytes) const;  // of one transfer between two contexts; 0 within one
  double pass_seconds(int space, std::size_t bytes) const;    // to read or write bytes on the context's first device

  struct Cost {
    double seconds = 30e-6;  // of an empty one
    double bytes_per_second = 5e9;
  };
  using Costs = std::map<std::string, Cost>;  // by name of pair or of space
  // What a store has, nothing where there is none. Throws IoError for a damaged one.
  static Costs read(const std::string& path);

 private:
  std::string name_of_space(int space) const;
  std::string name_of_pair(int from, int to) const;
  bool has_all() const;
  void write(const std::string& path) const;
  Cost measure_pair(int from, int to) const;
  Cost measure_pass(int space, const Pass& pass) const;

  Context& context_;
  Costs costs_;
};

}  // namespace samebytes::detail

// The table of everything that the tuner may choose: one row each, in tunables.cpp. The store, the kernels' defines,
// the launches and the tuner use only this table. Plain values; knows no device.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "samebytes/device.h"

namespace samebytes::detail {

struct Tunable {
  enum class Kind : std::uint8_t {
    tile,     // a #define of cl/<personality>/<family>.cl, within #ifndef
    choice,   // a number or word that a launch looks up by class of shapes
    clblast,  // a parameter of CLBlast's Xgemm on CPU devices
  };
  Kind kind = Kind::choice;
  std::string key;          // its key in the store: "tiles.f32.gemm.GEMM_MR", "launch.gemm.large.enough_groups"
  std::string group;        // the argument of `samebytes tune --only`: gemm, conv, clblast
  std::string family;       // stem of the kernel file, or the launch's family
  std::string shape_class;  // for choice
  std::string name;
  std::int64_t built_in = 0;  // of a tile: see the kernel file
  std::int64_t least = 0, most = 0, step = 1;
  std::vector<std::int64_t> candidates;  // values to try, best guess first
  std::vector<std::string> words = {};   // names of the values 0, 1, ...

  std::string legal_text() const;  // "a multiple of 2 from 2 to 16", "packed or clblast"
  bool is_legal(std::int64_t value) const;
  std::string value_text(std::int64_t value) const;  // the number or its word
};

// In tuning order.
const std::vector<Tunable>& tunables(Personality personality);
const Tunable* find_tunable(Personality personality, std::string_view key);
// Changes with the rows' keys and legal values, so that a store made for other kernels is recognised.
std::string table_hash(Personality personality);

// Several values that are tried together, because one alone is illegal or pointless.
using Values = std::map<std::string, std::int64_t, std::less<>>;  // by key
std::vector<Values> joint_candidates(Personality personality, std::string_view group);

// The value of a tunable without a choice: from the table or, for a tile, from the kernel file.
std::int64_t built_in_value(const Tunable& tunable, Personality personality, int vector_width);

// Why values that are legal one by one do not fit together: the key to blame, what was expected, what was found.
struct Clash {
  std::string key, expected, found;
};
std::optional<Clash> find_clash(const Values& values, Personality personality, int vector_width);

}  // namespace samebytes::detail

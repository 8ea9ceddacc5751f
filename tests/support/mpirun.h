// Starts a program in several processes, as a user would: mpirun, but also as root and with more processes than cores.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "support/process.h"

namespace samebytes::testing {

inline std::vector<std::string> mpirun_words(int ranks, const std::vector<std::string>& words) {
  std::vector<std::string> all{"/usr/bin/env", "mpirun", "--oversubscribe",    "--bind-to",
                               "none",         "-n",     std::to_string(ranks)};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

inline std::map<std::string, std::string> mpirun_environment() {
  return {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
}

// One rank: without mpirun.
inline Outcome run_ranks(int ranks, const std::vector<std::string>& words) {
  return ranks == 1 ? run_program(words) : run_program(mpirun_words(ranks, words), mpirun_environment());
}

}  // namespace samebytes::testing

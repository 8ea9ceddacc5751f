// Threads that the system may refuse to start, as a limit on processes or memory makes it do.
#pragma once

#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "samebytes/error.h"

namespace samebytes::detail {

// Throws Error, which says for whom.
template <class Work>
std::thread start_thread(const std::string& what, Work&& work) {
  try {
    return std::thread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    throw Error(what + ": the system starts no thread: " + error.what() +
                "; look at its limits on processes and memory");
  }
}

}  // namespace samebytes::detail

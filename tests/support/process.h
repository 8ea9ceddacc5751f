// Starts another program and keeps what it said. For tests of the command and of what is seen from outside the library.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace samebytes::testing {

struct Outcome {
  int status = -1;     // exit status; 128 + signal where one ended it
  std::string output;  // stdout and stderr together
};

// Runs arguments[0] with the environment of this process plus `environment`, and waits for it. Standard input is empty.
// A program that cannot be started gives status 127.
Outcome run_program(const std::vector<std::string>& arguments,
                    const std::map<std::string, std::string>& environment = {});

// Runs those tests of this binary, disabled ones too, in a process of its own: drivers read the environment once.
Outcome run_child(const std::string& filter, const std::map<std::string, std::string>& environment = {});

// build/<name>
std::string built_program(const std::string& name);

// A name under the system's temporary folder that no other process uses; nothing is made there.
std::string temporary_path(const std::string& name);

// True where this binary is instrumented by a sanitizer, which LD_PRELOAD and Oclgrind do not go with.
bool is_sanitized();

}  // namespace samebytes::testing

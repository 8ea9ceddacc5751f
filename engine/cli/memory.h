// MemoryWatch: what --memory-snapshot asks for, around a run of one engine.
#pragma once

#include <memory>

#include "cli/options.h"
#include "samebytes/memory_snapshot.h"

namespace samebytes::cli {

class MemoryWatch {
 public:
  // Keeps the engine's history where the option came; else does nothing. The engine must outlive it.
  MemoryWatch(const Options& options, Engine& engine);
  // Writes the file and says so on the stream for people. Throws IoError.
  void save() const;

 private:
  const Options& options_;
  Engine& engine_;
  std::unique_ptr<MemoryHistory> history_;
};

}  // namespace samebytes::cli

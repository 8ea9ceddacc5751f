// The loop of generate() for any decoder: checks, draws, and a cache that starts again from the last half of a full
// context.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "samebytes/models.h"

namespace samebytes::models {

struct Generator {
  std::int64_t vocabulary = 0;
  std::int64_t context = 0;                           // most tokens of the cache
  std::int64_t turning_point = 0;                     // a text that becomes longer is read anew (Pretrained); 0: none
  std::function<Array(const Array& ids)> next;        // ids [1, T] behind the cache -> logits of the last one
  std::function<void()> reset;                        // empties the cache
  std::function<bool(std::int32_t id)> is_last = {};  // ends the text behind this token
};
// Runs without gradients; the module is in evaluation mode meanwhile.
std::vector<std::int32_t> generate_by(const Generator& generator, nn::Module& module,
                                      std::span<const std::int32_t> prompt, const GenerateOptions& options);

}  // namespace samebytes::models

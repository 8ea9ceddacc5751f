// The memory of a training step before anything runs, twice: by a closed form, which needs a pencil, and exactly, from
// the plan of the step itself. The exact one comes from a rehearsal (EngineOptions::dry_run): the same code that trains
// makes its model, its optimizer and its batches and takes its steps, on an engine that plans and counts everything and
// allocates and launches nothing.
//   const MemoryParts need = plan_memory({}, [] {
//     nn::Linear net({.in = 784, .out = 10});
//     optim::AdamW adam(net.parameters());
//     adam.step(cross_entropy(net(empty({64, 784})), empty({64}, i32)));
//   });
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "samebytes/array.h"
#include "samebytes/engine.h"

namespace samebytes {

// Bytes, by what they are for.
struct MemoryParts {
  std::size_t parameters = 0;   // with 16-bit working copies and running statistics
  std::size_t gradients = 0;    // that have memory of their own; exactly, those of large models lie in the arena
  std::size_t optimizer = 0;    // moments and the like
  std::size_t activations = 0;  // the arena: everything that dies within a step
  std::size_t batches = 0;      // slots of loaders
  std::size_t other = 0;        // values that somebody holds, temporaries of libraries, blocks kept for reuse
  std::size_t total() const { return parameters + gradients + optimizer + activations + batches + other; }
};

// What an engine held when it held most, since it was made. Cells that are not parameters count as parameters unless
// `state` lists them: an optimizer's state().
MemoryParts memory_at_peak(const Engine& engine, std::span<const Array> state = {});

// Runs `work` on an engine of these options that only rehearses, as the current engine of this thread, and gives what
// it would have held at most. What `work` reads from arrays is zeros. Throws what `work` throws, OutOfMemory where the
// options have a limit and it is too small.
MemoryParts plan_memory(EngineOptions options, const std::function<void()>& work);

// What the closed form knows of a step.
struct StepSize {
  std::int64_t parameters = 0;         // numbers
  double weight_bytes = 4;             // of each: 4 in f32, 6 with a 16-bit working copy
  double gradient_bytes = 4;           // ... 0 where they are released
  double state_bytes = 8;              // ... of Adam: two moments
  std::int64_t batch = 1;              // samples
  std::size_t sample_bytes = 0;        // of one sample as the model reads it
  int slots = 2;                       // batches in memory
  std::size_t intermediate_bytes = 0;  // of one sample: what a step keeps, kept_for_backward()
};

// parameters x (weight + gradient + state) + batch x (slots x sample + intermediates). No layout, no fusion, no reuse.
MemoryParts closed_form(const StepSize& step);

// Bytes of what the forward pass of `loss` makes and its gradient reads again, as every framework keeps it that takes
// the graph op by op: views, parameters and what the graph reads are not counted. Divided by the batch it is what
// StepSize wants. Evaluates nothing.
std::size_t kept_for_backward(const Array& loss, std::span<const Array> parameters);

}  // namespace samebytes

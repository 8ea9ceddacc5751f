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
#include <string>
#include <vector>

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
  std::int64_t parameters = 0;                 // numbers
  double weight_bytes = 4;                     // of each: 4 in f32, 6 with a 16-bit working copy
  double gradient_bytes = 4;                   // ...
  std::vector<double> state_bytes = {4, 4};    // ... of each array of the optimizer's state: Adam has two moments
  std::int64_t batch = 1;                      // samples
  std::vector<std::size_t> sample_bytes = {};  // of one sample as the model reads it: of each field
  int slots = 2;                               // batches in memory
  std::size_t intermediate_bytes = 0;          // of one sample: alive at the fullest moment, LiveBytes::of_a_batch()
  std::size_t gradients_then = 0;              // alive at that moment among them, LiveBytes::gradients
};

// parameters x (weight + gradient + state) + batch x (slots x sample + intermediates) + gradients then; each array as
// pool_bytes() rounds it. Gradients of less than 4 MiB have memory of their own, more of them lie among the
// intermediate values, of which they take the place, and are counted as far as they are there at the fullest moment.
MemoryParts closed_form(const StepSize& step);

// What an array of so many bytes takes: whole pages of 4 KiB, and between 64 KiB and 16 MiB the next of eight sizes for
// each power of two.
std::size_t pool_bytes(std::size_t bytes);

// What is alive when most is, while a step runs op by op: each value from the op that makes it to the last one that
// reads it. Chains of pointwise ops are one op, ReLU and sums are done by the product before them, and what the plan
// computes again instead of keeping it is not kept.
struct LiveBytes {
  std::size_t kept = 0;       // values of the forward pass that the backward pass reads again
  std::size_t passing = 0;    // what the op at work reads and makes besides, and gradients of values on their way
  std::size_t operands = 0;   // that its kernels pack, and sums in parts
  std::size_t gradients = 0;  // of parameters, of 4 MiB and more: they do not grow with the batch
  std::string op;             // at work
  std::size_t of_a_batch() const { return kept + passing + operands; }
};

// Of the step that `updates` are the end of, such as update(arena.values(), arena.values() - gradient): nodes that are
// not evaluated. Evaluates nothing but cells at their first use.
LiveBytes live_at_peak(std::span<const Array> updates);

// Bytes of what the forward pass of `loss` makes and its gradient reads again, as every framework keeps it that takes
// the graph op by op: views, parameters and what the graph reads are not counted. Evaluates nothing.
std::size_t kept_for_backward(const Array& loss, std::span<const Array> parameters);

}  // namespace samebytes

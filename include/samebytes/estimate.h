// Predicts the memory of a training step before anything runs, in two ways: by a closed form for pencil and paper, and
// exactly, from the plan of the step itself. The exact way is a rehearsal (EngineOptions::dry_run): the training code
// makes its model, optimizer and batches and takes its steps on an engine that plans and counts everything but
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
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/engine.h"

namespace samebytes {

// Bytes by use.
struct MemoryParts {
  std::size_t parameters = 0;   // including 16-bit working copies and running statistics
  std::size_t gradients = 0;    // with their own memory; in exact plans, those of large models lie in the arena
  std::size_t optimizer = 0;    // moments and similar state
  std::size_t activations = 0;  // the arena: everything that lives within a step
  std::size_t batches = 0;      // slots of loaders
  std::size_t other = 0;        // values with live handles, temporaries of libraries, blocks kept for reuse
  std::size_t total() const { return parameters + gradients + optimizer + activations + batches + other; }
};

// The memory of an engine at its peak so far. Cells that are not parameters count as parameters unless `state` lists
// them: pass an optimizer's state().
MemoryParts memory_at_peak(const Engine& engine, std::span<const Array> state = {});

// Runs `work` with a dry-run engine of these options as this thread's current engine, and returns the peak it would
// reach. `work` reads zeros from arrays. Throws what `work` throws, and OutOfMemory if the options have a limit that is
// too small.
MemoryParts plan_memory(EngineOptions options, const std::function<void()>& work);

// Input of the closed form.
struct StepSize {
  std::int64_t parameters = 0;                 // numbers that are trained
  double weight_bytes = 4;                     // per parameter: 4 in f32, 6 with a 16-bit working copy
  double gradient_bytes = 4;                   // ...
  std::vector<double> state_bytes = {4, 4};    // ... for each array of the optimizer's state: Adam has two moments
  std::size_t frozen_bytes = 0;                // of weights that are not trained, without those of mapped files
  std::int64_t batch = 1;                      // samples
  std::vector<std::size_t> sample_bytes = {};  // for each field of a sample, as the model reads it
  int slots = 2;                               // batches in memory
  std::size_t intermediate_bytes = 0;          // per sample, live at the peak: LiveBytes::of_a_batch()
  std::size_t gradients_then = 0;              // live gradients at that moment: LiveBytes::gradients
};

// parameters x (weight + gradient + state) + frozen_bytes + batch x (slots x sample + intermediates) + gradients_then,
// with each array rounded as by pool_bytes(); frozen weights are `other`. Gradients below 4 MiB in total have their own
// memory; larger ones share the arena with the intermediate values and count as far as they are live at the peak.
MemoryParts closed_form(const StepSize& step);

// The memory that an array of `bytes` bytes takes: whole pages of 4 KiB; between 64 KiB and 16 MiB the next of eight
// sizes per power of two.
std::size_t pool_bytes(std::size_t bytes);

// The live bytes at the peak of a step that runs op by op: a value lives from the op that makes it to the last one that
// reads it. A chain of pointwise ops is one op, the preceding product computes ReLU and sums, and values that the plan
// recomputes are not kept.
struct LiveBytes {
  std::size_t kept = 0;       // values of the forward pass that the backward pass reads
  std::size_t passing = 0;    // other inputs and results of the running op, and gradients of intermediate values
  std::size_t operands = 0;   // packed operands of its kernels, and partial sums
  std::size_t gradients = 0;  // of parameters, if 4 MiB or more: independent of the batch
  std::string op;             // at work
  std::size_t of_a_batch() const { return kept + passing + operands; }
};

// For the step that ends in `updates`, such as update(arena.values(), arena.values() - gradient), which must not be
// evaluated yet. Evaluates only cells at their first use.
LiveBytes live_at_peak(std::span<const Array> updates);

// A training step by both ways, and as measured, for a report.
struct StepEstimate {
  std::string workload;  // its name
  std::string precision = "f32";
  std::int64_t batch = 1;
  StepSize step = {};
  LiveBytes live = {};
  MemoryParts closed = {}, exact = {};
  std::size_t mapped = 0;                    // of files whose weights are used where they lie; in no total
  std::optional<std::size_t> measured = {};  // what the process grew by, mapped pages too; 0: it could not be read
};
std::string estimate_text(const StepEstimate& estimate);  // a table in megabytes, and the closed form with its numbers
std::string estimate_json(const StepEstimate& estimate);  // one line, without its end

// Bytes of the forward pass's results that the gradient of `loss` reads, as a framework keeps them that runs the graph
// op by op; without views, parameters and inputs of the graph. Evaluates nothing.
std::size_t kept_for_backward(const Array& loss, std::span<const Array> parameters);

}  // namespace samebytes

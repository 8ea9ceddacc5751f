// A row of bench_sweep_ops: one public op, called in one way, at three sizes. `make` builds its inputs, so they live as
// long as the case does. The first word of the name, up to a slash, is that of the op (operator+ for +).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "samebytes/array.h"

namespace samebytes::benchmarks {

struct Case {
  std::vector<Array> inputs;  // evaluated; those that take a gradient first
  std::size_t wrt = 0;        // so many take one; 0: the op has no gradient
  // A fresh graph. The gradient is that of the first result.
  std::function<std::vector<Array>(const std::vector<Array>& inputs)> forward;
};

struct Row {
  std::string name;
  std::function<Case(int size)> make;  // 0, 1, 2: about 1e3, 1e5 and 4e6 elements
};

constexpr int kSizes = 3;
const char* size_name(int size);

// One file each.
void add_pointwise(std::vector<Row>& rows);
void add_layout(std::vector<Row>& rows);      // views, copies, indices, leaves
void add_reductions(std::vector<Row>& rows);  // of rows and columns, norms, order
void add_networks(std::vector<Row>& rows);    // products, convolutions, pooling, attention, recurrence
void add_images(std::vector<Row>& rows);      // pooling with places, other sizes, places between elements
void add_losses(std::vector<Row>& rows);
void add_updates(std::vector<Row>& rows);  // of cells, random draws

// ---- for the files that make rows

using Results = std::vector<Array>;
using Inputs = const std::vector<Array>&;

Array values(const Shape& shape, double low = -1, double high = 1);  // uniform, evaluated
Array labels(const Shape& shape, std::int64_t classes);              // i32 in [0, classes), evaluated
Array truths(const Shape& shape);                                    // bool, evaluated
Shape plane(int size);                                               // [32, 32], [256, 400], [2048, 2048]
Shape images(int size);                                              // [N, H, W, C]
Shape sequences(int size);                                           // [N, L, C]
Case takes_gradient(std::vector<Array> inputs, std::function<Array(Inputs)> forward);  // of all inputs
Case no_gradient(std::vector<Array> inputs, std::function<Array(Inputs)> forward);

}  // namespace samebytes::benchmarks

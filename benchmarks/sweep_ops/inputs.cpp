// What the rows are made of.
#include "samebytes/ops.h"
#include "sweep_ops/sweep.h"

namespace samebytes::benchmarks {

const char* size_name(int size) {
  constexpr const char* kNames[kSizes] = {"small", "medium", "large"};
  return kNames[size];
}

Array values(const Shape& shape, double low, double high) { return uniform(shape, low, high).wait(); }
Array labels(const Shape& shape, std::int64_t classes) {
  return astype(floor(uniform(shape, 0, static_cast<double>(classes))), i32).wait();
}
Array truths(const Shape& shape) { return greater(uniform(shape, -1, 1), zeros(shape)).wait(); }

Shape plane(int size) {
  const Shape shapes[kSizes] = {{32, 32}, {256, 400}, {2048, 2048}};
  return shapes[size];
}
Shape images(int size) {
  const Shape shapes[kSizes] = {{1, 8, 8, 16}, {4, 28, 28, 32}, {16, 64, 64, 64}};
  return shapes[size];
}
Shape sequences(int size) {
  const Shape shapes[kSizes] = {{1, 64, 16}, {4, 256, 96}, {16, 1024, 256}};
  return shapes[size];
}

Case takes_gradient(std::vector<Array> inputs, std::function<Array(Inputs)> forward) {
  const std::size_t wrt = inputs.size();
  return {std::move(inputs), wrt, [f = std::move(forward)](Inputs x) { return Results{f(x)}; }};
}
Case no_gradient(std::vector<Array> inputs, std::function<Array(Inputs)> forward) {
  return {std::move(inputs), 0, [f = std::move(forward)](Inputs x) { return Results{f(x)}; }};
}

}  // namespace samebytes::benchmarks

// Views, copies, elements by their numbers, leaves.
#include "samebytes/ops.h"
#include "sweep_ops/sweep.h"

namespace samebytes::benchmarks {
namespace {

using Unary = std::function<Array(const Array&)>;

constexpr std::int64_t kVocabulary[kSizes] = {100, 1000, 30000}, kWidth[kSizes] = {16, 64, 256};
constexpr std::int64_t kIds[kSizes] = {64, 1600, 16384};

}  // namespace

void add_layout(std::vector<Row>& rows) {
  const auto one = [&](const char* name, Unary f, std::function<Shape(int)> shape = plane) {
    rows.push_back(
        {name, [=](int s) { return takes_gradient({values(shape(s))}, [=](Inputs x) { return f(x[0]); }); }});
  };
  one("reshape", [](const Array& a) { return reshape(a, {-1}); });
  one("copy", [](const Array& a) { return copy(a); });
  one("transpose", [](const Array& a) { return transpose(a); });
  one("slice", [](const Array& a) { return slice(a, 0, 3, -5); });
  one("slice/step", [](const Array& a) { return contiguous(slice(a, 1, 0, a.shape()[1], 2)); });
  one("flip", [](const Array& a) { return contiguous(flip(a, {0, 1})); });
  rows.push_back({"split", [](int s) {
                    return Case{{values(plane(s))}, 1, [](Inputs x) { return split(x[0], x[0].shape()[1] / 4, 1); }};
                  }});
  rows.push_back({"broadcast_to", [](int s) {
                    const Shape shape = plane(s);
                    return takes_gradient({values({shape[1]})},
                                          [=](Inputs x) { return contiguous(broadcast_to(x[0], shape)); });
                  }});
  one("squeeze", [](const Array& a) { return squeeze(unsqueeze(a, 1), 1); });
  one("unsqueeze", [](const Array& a) { return unsqueeze(a, 1); });
  one(
      "flatten", [](const Array& a) { return flatten(a); }, images);
  one("contiguous/transpose", [](const Array& a) { return contiguous(transpose(a)); });
  one(
      "contiguous/channels_first",
      [](const Array& a) {
        return contiguous(transpose(a, {0, 3, 1, 2}));
      },
      images);
  one(
      "contiguous/heads",
      [](const Array& a) {
        const Shape& x = a.shape();
        return contiguous(transpose(reshape(a, {x[0], x[1], 4, x[2] / 4}), {0, 2, 1, 3}));
      },
      sequences);
  for (const int axis : {0, 1})
    rows.push_back({axis == 0 ? "concat/rows" : "concat/columns", [=](int s) {
                      return takes_gradient({values(plane(s)), values(plane(s)), values(plane(s))}, [=](Inputs x) {
                        return concat({x[0], x[1], x[2]}, axis);
                      });
                    }});
  rows.push_back(
      {"stack", [](int s) {
         return takes_gradient({values(plane(s)), values(plane(s))}, [](Inputs x) { return stack({x[0], x[1]}, 1); });
       }});
  one("tile", [](const Array& a) { return tile(a, {2, 2}); });
  one("repeat_interleave", [](const Array& a) { return repeat_interleave(a, 3, 1); });
  one("roll", [](const Array& a) { return roll(a, 5, 1); });
  for (const auto& [name, mode] :
       {std::pair("pad/constant", PadMode::constant), std::pair("pad/reflect", PadMode::reflect),
        std::pair("pad/replicate", PadMode::replicate), std::pair("pad/circular", PadMode::circular)})
    one(
        name,
        [mode = mode](const Array& a) {
          return pad(a, {{0, 0}, {1, 2}, {2, 1}, {0, 0}}, mode);
        },
        images);

  rows.push_back({"embedding", [](int s) {
                    return Case{{values({kVocabulary[s], kWidth[s]}), labels({kIds[s]}, kVocabulary[s])},
                                1,
                                [](Inputs x) { return Results{embedding(x[1], x[0])}; }};
                  }});
  for (const int axis : {0, 1})
    rows.push_back({axis == 0 ? "take/rows" : "take/columns", [=](int s) {
                      const Shape shape = plane(s);
                      return Case{{values(shape), labels({shape[axis]}, shape[axis])}, 1, [=](Inputs x) {
                                    return Results{take(x[0], x[1], axis)};
                                  }};
                    }});
  for (const int axis : {0, 1}) {
    rows.push_back({axis == 0 ? "gather/rows" : "gather/columns", [=](int s) {
                      const Shape shape = plane(s);
                      return Case{{values(shape), labels(shape, shape[axis])}, 1, [=](Inputs x) {
                                    return Results{gather(x[0], axis, x[1])};
                                  }};
                    }});
    rows.push_back({axis == 0 ? "scatter_add/rows" : "scatter_add/columns", [=](int s) {
                      const Shape shape = plane(s);
                      return Case{{values(shape), values(shape), labels(shape, shape[axis])}, 2, [=](Inputs x) {
                                    return Results{scatter_add(x[0], axis, x[2], x[1])};
                                  }};
                    }});
  }
  rows.push_back({"one_hot", [](int s) {
                    const Shape shape = plane(s);
                    return no_gradient({labels({shape[0]}, shape[1])},
                                       [=](Inputs x) { return one_hot(x[0], shape[1]); });
                  }});

  const auto leaf = [&](const char* name, std::function<Array(const Shape&)> f) {
    rows.push_back({name, [=](int s) { return no_gradient({}, [=](Inputs) { return f(plane(s)); }); }});
  };
  leaf("full", [](const Shape& shape) { return full(shape, 1.5); });
  leaf("arange", [](const Shape& shape) { return arange(0, static_cast<double>(shape.size())); });
  leaf("uniform", [](const Shape& shape) { return uniform(shape); });
  leaf("normal", [](const Shape& shape) { return normal(shape); });
}

}  // namespace samebytes::benchmarks

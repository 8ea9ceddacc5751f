// Pooling with places, gaps and three axes, other sizes, places between elements, windows as arrays.
#include "samebytes/ops.h"
#include "sweep_ops/sweep.h"

namespace samebytes::benchmarks {
namespace {

Shape volumes(int size) {
  const Shape shapes[kSizes] = {{1, 4, 8, 8, 4}, {2, 8, 16, 16, 24}, {4, 16, 32, 32, 64}};
  return shapes[size];
}

}  // namespace

void add_images(std::vector<Row>& rows) {
  const auto add = [&](const char* name, std::function<Array(const Array&)> f, std::function<Shape(int)> shape) {
    rows.push_back(
        {name, [=](int s) { return takes_gradient({values(shape(s))}, [=](Inputs x) { return f(x[0]); }); }});
  };
  using A = const Array&;
  add(
      "max_pool2d/dilation", [](A a) { return max_pool2d(a, {.dilation_h = 2, .dilation_w = 2}); }, images);
  add(
      "max_pool3d", [](A a) { return max_pool3d(a); }, volumes);
  add(
      "avg_pool3d", [](A a) { return avg_pool3d(a); }, volumes);
  add(
      "adaptive_avg_pool3d", [](A a) { return adaptive_avg_pool3d(a, 3, 3, 3); }, volumes);
  add(
      "adaptive_max_pool3d", [](A a) { return adaptive_max_pool3d(a, 3, 3, 3); }, volumes);
  add(
      "max_pool1d_with_indices", [](A a) { return max_pool1d_with_indices(a).values; }, sequences);
  add(
      "max_pool2d_with_indices", [](A a) { return max_pool2d_with_indices(a).values; }, images);
  add(
      "max_pool3d_with_indices", [](A a) { return max_pool3d_with_indices(a).values; }, volumes);
  add(
      "lp_pool1d", [](A a) { return lp_pool1d(a, 2); }, sequences);
  add(
      "lp_pool2d", [](A a) { return lp_pool2d(a, 2); }, images);
  add(
      "lp_pool3d", [](A a) { return lp_pool3d(a, 2); }, volumes);
  // The values and places of a pooling, back where they were.
  rows.push_back({"max_unpool1d", [](int s) {
                    const PoolResult p = max_pool1d_with_indices(values(sequences(s)));
                    const int length = static_cast<int>(sequences(s)[1]);
                    return Case{{p.values.wait(), p.indices.wait()}, 1, [=](Inputs x) {
                                  return Results{max_unpool1d(x[0], x[1], length)};
                                }};
                  }});
  rows.push_back({"max_unpool2d", [](int s) {
                    const PoolResult p = max_pool2d_with_indices(values(images(s)));
                    const int h = static_cast<int>(images(s)[1]), w = static_cast<int>(images(s)[2]);
                    return Case{{p.values.wait(), p.indices.wait()}, 1, [=](Inputs x) {
                                  return Results{max_unpool2d(x[0], x[1], h, w)};
                                }};
                  }});
  rows.push_back({"max_unpool3d", [](int s) {
                    const PoolResult p = max_pool3d_with_indices(values(volumes(s)));
                    const int d = static_cast<int>(volumes(s)[1]), h = static_cast<int>(volumes(s)[2]);
                    return Case{{p.values.wait(), p.indices.wait()}, 1, [=](Inputs x) {
                                  return Results{max_unpool3d(x[0], x[1], d, h, h)};
                                }};
                  }});
  add(
      "interpolate/cubic", [](A a) { return interpolate(a, {.scale = {2}, .mode = InterpolateMode::cubic}); }, images);
  add(
      "interpolate/antialias",
      [](A a) { return interpolate(a, {.scale = {0.4}, .mode = InterpolateMode::linear, .antialias = true}); }, images);
  // Every second place, which PyTorch reads as a strided view.
  rows.push_back({"resample_axis", [](int s) {
                    AxisTaps taps{.in = plane(s)[0], .taps = 1, .places = {}, .weights = {}};
                    for (std::int64_t i = 0; i < taps.in; i += 2) {
                      taps.places.push_back(static_cast<std::int32_t>(i));
                      taps.weights.push_back(1);
                    }
                    return takes_gradient({values(plane(s))}, [=](Inputs x) { return resample_axis(x[0], 0, taps); });
                  }});
  const FoldOptions windows{.kernel = {3, 3}, .pad = {1, 1}};
  add(
      "unfold", [=](A a) { return unfold(a, windows); }, images);
  rows.push_back({"fold", [=](int s) {
                    const Shape shape = images(s);
                    return takes_gradient({values({shape[0], shape[1] * shape[2], 9, shape[3]})}, [=](Inputs x) {
                      return fold(x[0], {shape[1], shape[2]}, windows);
                    });
                  }});
  rows.push_back({"grid_sample", [](int s) {
                    const Shape shape = images(s);
                    return takes_gradient({values(shape), values({shape[0], shape[1], shape[2], 2})},
                                          [](Inputs x) { return grid_sample(x[0], x[1]); });
                  }});
  rows.push_back({"affine_grid", [](int s) {
                    const Shape shape = images(s);
                    return takes_gradient({values({shape[0], 2, 3})}, [=](Inputs x) {
                      return affine_grid(x[0], {shape[1], shape[2]});
                    });
                  }});
  rows.push_back({"roi_align", [](int s) {
                    const Shape shape = images(s);
                    std::vector<float> boxes;
                    for (int r = 0; r < 8; ++r)
                      boxes.insert(boxes.end(), {0.3f * float(r), 0.5f, 0.3f * float(r) + 4, 5.5f});
                    const Array at = array(boxes, {8, 4}), batch = zeros({8}, i32);
                    return takes_gradient({values(shape)}, [=](Inputs x) {
                      return roi_align(x[0], at, batch, {.out_h = 7, .out_w = 7, .sampling_ratio = 2});
                    });
                  }});
  rows.push_back({"conv_transpose3d", [](int s) {
                    const Shape shapes[kSizes] = {{1, 4, 4, 4, 8}, {1, 6, 6, 6, 32}, {2, 12, 12, 12, 32}};
                    const std::int64_t c = shapes[s][4];
                    return takes_gradient({values(shapes[s]), values({4, 4, 4, c, c}), values({c})}, [](Inputs x) {
                      return conv_transpose3d(
                          x[0], x[1], x[2],
                          {.stride_d = 2, .stride_h = 2, .stride_w = 2, .pad_d = 1, .pad_h = 1, .pad_w = 1});
                    });
                  }});
  for (const bool is_reduced : {false, true})
    rows.push_back({is_reduced ? "scatter_reduce/amax" : "scatter/rows", [=](int s) {
                      const Shape shape = plane(s);
                      return Case{
                          {values(shape), values(shape), labels(shape, shape[0])}, 2, [=](Inputs x) {
                            if (!is_reduced) return Results{scatter(x[0], 0, x[2], x[1])};
                            return Results{scatter_reduce(x[0], 0, x[2], x[1], {.reduce = ScatterReduce::amax})};
                          }};
                    }});
}

}  // namespace samebytes::benchmarks

// Images of another size, [N, H, W, C] to [N, OH, OW, C], nearest or bilinear, with PyTorch's coordinates (kernels:
// cl/*/resize.cl). The op is linear: its gradient gathers, and the gradient's gradient is the op again.
#include "samebytes/ops/resize.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "graph/launch.h"
#include "graph/op.h"
#include "graph/written.h"
#include "samebytes/ops.h"

namespace samebytes {
namespace {

using detail::Launch;
using detail::require;

// A group of a CPU device makes a block of rows of the result, a work-item of a GPU one element.
void share_resized_rows(const Launch& run, detail::KernelCall& call, const Shape& result) {
  const std::int64_t rows = result[0] * result[1], row = result[2] * result[3];
  const std::int64_t fewest = std::max<std::int64_t>(run.constant("resize", "RESIZE_BLOCK", run.dst_dtype()) / row, 1),
                     share = rows / (run.cores() * detail::kGroupsPerCore);
  const std::int64_t each = std::clamp<std::int64_t>(std::max(fewest, share), 1, rows);
  call.args(static_cast<int>(each)).over_tiles((rows + each - 1) / each);
}
constexpr detail::PerPersonality<void (*)(const Launch&, detail::KernelCall&, const Shape&)> kShareResized{
    share_resized_rows,
    [](const Launch&, detail::KernelCall& call, const Shape& result) { call.over_elements(result.size()); }};

// Sizes and coordinates of one resize, as the kernels take them.
struct Geometry {
  int batch, h, w, c, oh, ow;
  double scale_h, scale_w;
  int mode;  // RESIZE_NEAREST 0, 1, RESIZE_ALIGNED 2 of resize.cl

  Shape src_shape() const { return {batch, h, w, c}; }
  Shape dst_shape() const { return {batch, oh, ow, c}; }
  void hash(detail::Hasher& hasher) const {
    for (const int size : {batch, h, w, c, oh, ow, mode}) hasher.add(std::uint64_t(size));
    hasher.add(scale_h);
    hasher.add(scale_w);
  }
  void launch(Launch& run, const char* entry, const Shape& result) const {
    const Dtype real = run.dst_dtype();
    auto kernel = run.kernel(entry, real);
    kernel.args(run.src(0), run.dst(), batch, h, w, c, oh, ow, scale_h, scale_w, mode);
    run.pick(kShareResized)(run, kernel, result);
  }
};

Array make_resize(const Array& src, const Geometry& geometry);

// Input dy; result dx.
class ResizeGradient final : public detail::Op {
 public:
  explicit ResizeGradient(const Geometry& geometry) : geometry_(geometry) {}
  std::string_view name() const override { return "resize_gradient"; }
  void hash(detail::Hasher& hasher) const override { geometry_.hash(hasher); }
  void launch(Launch& run) const override { geometry_.launch(run, "resize_bwd", geometry_.src_shape()); }
  std::vector<Array> gradient(const detail::GradientRequest& request) const override {
    return {make_resize(request.dy[0], geometry_)};
  }

 private:
  Geometry geometry_;
};

// Input src; result dst.
class Resize final : public detail::Op, public detail::Written {
 public:
  explicit Resize(const Geometry& geometry) : geometry_(geometry) {}
  std::string_view name() const override { return "resize"; }
  void hash(detail::Hasher& hasher) const override { geometry_.hash(hasher); }
  void launch(Launch& run) const override { geometry_.launch(run, "resize_fwd", geometry_.dst_shape()); }
  void write(detail::NodeWriter& w) const override {
    const Geometry& g = geometry_;
    const bool is_nearest = g.mode == 0, is_aligned = g.mode == 2;
    const detail::NodeWriter::Attributes attributes{
        {"mode", std::string(is_nearest ? "nearest" : "linear")},
        {"coordinate_transformation_mode", std::string(is_nearest   ? "asymmetric"
                                                       : is_aligned ? "align_corners"
                                                                    : "half_pixel")},
        {"nearest_mode", std::string("floor")}};
    const auto x = w.turned(w.in(0), {0, 3, 1, 2});
    const auto is_ratio = [](double step, int in, int out) { return std::abs(step * out - in) < 1e-5 * in; };
    std::vector<detail::NodeWriter::Name> inputs{x, "", ""};
    if (is_aligned || (is_ratio(g.scale_h, g.h, g.oh) && is_ratio(g.scale_w, g.w, g.ow)))
      inputs.push_back(w.ints({g.batch, g.c, g.oh, g.ow}));
    else
      inputs[2] = w.numbers({1, 1, 1 / g.scale_h, 1 / g.scale_w}, {4}, f32);
    w.give(w.turned(w.put("Resize", inputs, attributes), {0, 2, 3, 1}));
  }
  std::vector<Array> gradient(const detail::GradientRequest& request) const override {
    const Array inputs[] = {request.dy[0]};
    return {detail::make_array(detail::make_op<ResizeGradient>(geometry_), geometry_.src_shape(), request.dy[0].dtype(),
                               inputs)};
  }

 private:
  Geometry geometry_;
};

Array make_resize(const Array& src, const Geometry& geometry) {
  const Array inputs[] = {src};
  return detail::make_array(detail::make_op<Resize>(geometry), geometry.dst_shape(), src.dtype(), inputs);
}

// Source places per place of the result. `scale` 0: not given.
template <class Real>
double step_of(std::int64_t in, std::int64_t out, double scale, bool is_aligned) {
  if (is_aligned) return out > 1 ? static_cast<Real>(in - 1) / static_cast<Real>(out - 1) : Real(0);
  return scale > 0 ? static_cast<Real>(1.0 / scale) : static_cast<Real>(in) / static_cast<Real>(out);
}

std::string describe_sides(double a, double b) {
  const auto number = [](double v) {
    std::string text = std::to_string(v);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
  };
  return number(a) + " x " + number(b);
}

}  // namespace

Array resize(const Input& src, const ResizeOptions& options) {
  const auto& o = options;
  require(src.defined() && is_floating(src.dtype()) && src.shape().rank() == 4, "resize",
          "src must be floating [N, H, W, C]", src, "src");
  const bool has_size = o.out_h > 0 && o.out_w > 0 && o.scale_h == 0 && o.scale_w == 0;
  const bool has_scale = o.scale_h > 0 && o.scale_w > 0 && std::isfinite(o.scale_h) && std::isfinite(o.scale_w) &&
                         o.out_h == 0 && o.out_w == 0;
  if (!has_size && !has_scale)
    throw ArgumentError("resize: expected either two sizes or two scales above 0, got size " +
                        describe_sides(o.out_h, o.out_w) + " and scale " + describe_sides(o.scale_h, o.scale_w));
  if (o.align_corners && o.mode == ResizeMode::nearest)
    throw ArgumentError("resize: align_corners needs mode bilinear, got nearest");
  const Shape& s = src.shape();
  require(s[1] >= 1 && s[2] >= 1, "resize", "src must have at least one pixel", src, "src");
  const double oh = has_size ? o.out_h : std::floor(static_cast<double>(s[1]) * o.scale_h),
               ow = has_size ? o.out_w : std::floor(static_cast<double>(s[2]) * o.scale_w);
  require(oh >= 1 && ow >= 1, "resize",
          ("scale " + describe_sides(o.scale_h, o.scale_w) + " must leave at least one pixel").c_str(), src, "src");
  constexpr double most = 1 << 30;  // twice an index is an int in the kernels
  require(std::max({oh, ow, static_cast<double>(s[0]), static_cast<double>(s[1]), static_cast<double>(s[2]),
                    static_cast<double>(s[3])}) < most,
          "resize", "every side must be below 2^30", src, "src");

  const bool is_wide = src.dtype() == f64 && o.mode == ResizeMode::bilinear;  // nearest counts in f32 always
  const auto step = is_wide ? step_of<double> : step_of<float>;
  const Geometry geometry{static_cast<int>(s[0]),
                          static_cast<int>(s[1]),
                          static_cast<int>(s[2]),
                          static_cast<int>(s[3]),
                          static_cast<int>(oh),
                          static_cast<int>(ow),
                          step(s[1], static_cast<std::int64_t>(oh), o.scale_h, o.align_corners),
                          step(s[2], static_cast<std::int64_t>(ow), o.scale_w, o.align_corners),
                          o.mode == ResizeMode::nearest ? 0
                          : o.align_corners             ? 2
                                                        : 1};
  // 16-bit images are widened; the result is rounded once.
  if (src.dtype() != f32 && src.dtype() != f64) return astype(make_resize(astype(src, f32), geometry), src.dtype());
  return make_resize(src, geometry);
}

}  // namespace samebytes

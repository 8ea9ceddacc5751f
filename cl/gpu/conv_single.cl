// Forward pass of a convolution of one input channel on a GPU: x [n,h,wd], w [kh,kw,co], y [n,oh,ow,co], stride and
// dilation 1. A sum has so few terms that local memory gains nothing: a work-item makes one value, and neighbours,
// which are columns of one pixel, read the same source and neighbouring weights.
// Program: convolution

// y = x * w, with the epilogue of conv_tiles by `flags`. Work-items: n*oh*ow*co, padded to groups. Accumulates in
// `real`, over taps in order.
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void conv_single_fwd(
    ARRAY(const stored, x), ARRAY(const stored, w), ARRAY(const real, bias), ARRAY(const stored, residual),
    ARRAY(const stored, gate), ARRAY(stored, y), const int n, const int h, const int wd, const int oh, const int ow,
    const int co, const int kh, const int kw, const int ph, const int pw, const int flags) {
  START(x);
  START(w);
  START(bias);
  START(residual);
  START(gate);
  START(y);
  const long at = get_global_id(0);
  if (at >= (long)n * oh * ow * co) return;
  const long pixel = at / co, line = pixel / ow, image = line / oh;
  const int column = (int)(at - pixel * co), left = (int)(pixel - line * ow) - pw, top = (int)(line - image * oh) - ph;
  real sum = flags & CONV_BIAS ? bias[column] : 0;
  for (int r = max(0, -top); r < min(kh, h - top); ++r) {
    for (int s = max(0, -left); s < min(kw, wd - left); ++s)
      sum = FMA(LOAD(x + (image * h + top + r) * wd + left + s), LOAD(w + (long)(r * kw + s) * co + column), sum);
  }
  if (flags & CONV_RESIDUAL) sum = ROUND(sum) + LOAD(residual + at);
  if (flags & CONV_RELU) sum = sum < 0 ? 0 : sum;
  if (flags & CONV_ACTIVATION) sum = sb_activated(ROUND(sum), flags & CONV_RELU6);
  if (flags & CONV_GATE) sum = LOAD(gate + at) > 0 ? sum : 0;
  STORE(sum, y + at);
}

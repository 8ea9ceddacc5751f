// The sizes of a pooling, as its kernels and the code that launches them (engine/ops/pool2d.cpp) both say them, and
// which places a window has. Read by C++ and by OpenCL C.
#if defined(__cplusplus) && !defined(SAMEBYTES_KERNEL_TEXT)
#pragma once

namespace samebytes::detail {
#endif

// src [batch, h, w, c] to [batch, oh, ow, c] by windows of kh x kw, sh and sw apart, from ph and pw before the image
// on. Strides of 0: the windows of adaptive pooling, of at most kh x kw.
typedef struct {
  int batch, h, w, c, oh, ow, kh, kw, sh, sw, ph, pw;
} pool2d_sizes;

#if defined(__cplusplus) && !defined(SAMEBYTES_KERNEL_TEXT)
}  // namespace samebytes::detail
#else
#define POOL2D_NAMES(s)                                                                                        \
  const int batch = s.batch, h = s.h, w = s.w, c = s.c, oh = s.oh, ow = s.ow, kh = s.kh, kw = s.kw, sh = s.sh, \
            sw = s.sw, ph = s.ph, pw = s.pw

// Windows of an axis: place o covers begin(o) <= i < end(o), uncut; where the stride is 0 the windows are adaptive,
// from floor(o * in / out) to ceil((o + 1) * in / out). first and last: the windows that cover place i.
int pool2d_begin(const int o, const int in, const int out, const int stride, const int pad) {
  return stride ? o * stride - pad : (int)((long)o * in / out);
}
int pool2d_end(const int o, const int in, const int out, const int kernel_size, const int stride, const int pad) {
  return stride ? o * stride - pad + kernel_size : (int)(((long)(o + 1) * in + out - 1) / out);
}
int pool2d_first(const int i, const int in, const int out, const int kernel_size, const int stride, const int pad) {
  if (stride == 0) return (int)((long)i * out / in);
  return i + pad < kernel_size ? 0 : (i + pad - kernel_size) / stride + 1;
}
int pool2d_last(const int i, const int in, const int out, const int stride, const int pad) {
  return stride ? min(out - 1, (i + pad) / stride) : (int)(((long)(i + 1) * out + in - 1) / in) - 1;
}

// Number of places that the mean of window (oy, ox) divides by: those inside the image, or with `padded` those inside
// the padded image.
real pool2d_divisor(const pool2d_sizes s, const int oy, const int ox, const int padded) {
  const int top = pool2d_begin(oy, s.h, s.oh, s.sh, s.ph), left = pool2d_begin(ox, s.w, s.ow, s.sw, s.pw);
  const int bottom = min(pool2d_end(oy, s.h, s.oh, s.kh, s.sh, s.ph), s.h + s.ph);
  const int right = min(pool2d_end(ox, s.w, s.ow, s.kw, s.sw, s.pw), s.w + s.pw);
  if (padded) return (real)(bottom - top) * (right - left);
  return (real)(min(bottom, s.h) - max(top, 0)) * (min(right, s.w) - max(left, 0));
}
#endif

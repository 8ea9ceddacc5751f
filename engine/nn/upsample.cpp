#include "samebytes/nn/upsample.h"

#include "nn/describe.h"
#include "samebytes/error.h"

namespace samebytes::nn {
Upsample::Upsample(const UpsampleOptions& options) : options_(options) {
  const bool has_size = options.size.h > 0 && options.size.w > 0, has_scale = options.scale > 0;
  if (has_size == has_scale || options.size.h < 0 || options.size.w < 0 || options.scale < 0)
    throw ArgumentError("Upsample: expected either size or scale above 0, got size " + options.size.to_string() +
                        " and scale " + text_of(options.scale));
  if (options.align_corners && options.mode == ResizeMode::nearest)
    throw ArgumentError("Upsample: align_corners needs mode bilinear, got nearest");
}

Array Upsample::forward(const Array& x) {
  return resize(x, {.out_h = options_.size.h,
                    .out_w = options_.size.w,
                    .scale_h = options_.scale,
                    .scale_w = options_.scale,
                    .mode = options_.mode,
                    .align_corners = options_.align_corners});
}

std::string Upsample::describe() const {
  std::string text = "Upsample(";
  text += options_.scale > 0 ? "scale=" + text_of(options_.scale) : "size=" + options_.size.to_string();
  text += options_.mode == ResizeMode::nearest ? ", mode=nearest" : ", mode=bilinear";
  if (options_.align_corners) text += ", align_corners=true";
  return text + ")";
}

}  // namespace samebytes::nn

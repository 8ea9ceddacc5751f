#include "samebytes/nn/interpolate.h"

#include <algorithm>

#include "nn/describe.h"
#include "samebytes/error.h"
#include "samebytes/nn/fold.h"

namespace samebytes::nn {
namespace {

constexpr const char* kInterpolateModeNames[] = {"nearest", "nearest_exact", "linear", "cubic", "area"};

// "Kind(kernel=(3, 3), stride=(2, 2)" without the brace that closes.
std::string fold_windows_text(const char* kind, const FoldOptions& options) {
  std::string text = kind + ("(kernel=" + list_of(options.kernel));
  if (!options.stride.empty()) text += ", stride=" + list_of(options.stride);
  if (!options.dilation.empty()) text += ", dilation=" + list_of(options.dilation);
  if (!options.pad.empty()) text += ", pad=" + list_of(options.pad);
  if (!options.pad_end.empty()) text += ", pad_end=" + list_of(options.pad_end);
  return text;
}

}  // namespace

Interpolate::Interpolate(const InterpolateOptions& options) : options_(options) {
  const auto& o = options_;
  const bool is_right = o.size.empty() != o.scale.empty() &&
                        std::ranges::all_of(o.size, [](auto v) { return v >= 1; }) &&
                        std::ranges::all_of(o.scale, [](auto v) { return v > 0; });
  if (!is_right)
    throw ArgumentError("Interpolate: expected either sizes of at least 1 or scales above 0, got size " +
                        list_of(o.size) + " and scale " + list_of(o.scale));
  const bool is_smooth = o.mode == InterpolateMode::linear || o.mode == InterpolateMode::cubic;
  if ((o.align_corners || o.antialias) && !is_smooth)
    throw ArgumentError(std::string("Interpolate: align_corners and antialias need mode linear or cubic, got ") +
                        kInterpolateModeNames[static_cast<int>(o.mode)]);
}

Array Interpolate::forward(const Array& x) { return interpolate(x, options_); }

std::string Interpolate::describe() const {
  const auto& o = options_;
  std::string text = "Interpolate(";
  text += o.size.empty() ? "scale=" + list_of(o.scale) : "size=" + list_of(o.size);
  text += std::string(", mode=") + kInterpolateModeNames[static_cast<int>(o.mode)];
  if (o.align_corners) text += ", align_corners=true";
  if (o.antialias) text += ", antialias=true";
  return text + ")";
}

Array Unfold::forward(const Array& x) { return unfold(x, options_); }
std::string Unfold::describe() const { return fold_windows_text("Unfold", options_) + ")"; }

Array Fold::forward(const Array& x) { return fold(x, sizes_, options_); }
std::string Fold::describe() const { return fold_windows_text("Fold", options_) + ", sizes=" + list_of(sizes_) + ")"; }

}  // namespace samebytes::nn

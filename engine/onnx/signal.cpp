// Signals: windows, the weights of mel bands, discrete Fourier transforms of whole signals and of frames.
#include "samebytes/fft.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>

#include "onnx/registry.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::onnx {
namespace {

using Int = std::int64_t;

// Numbers that the host knows, in the type that the node asks for.
Item numbers(const Call& call, const std::vector<double>& values, const Sizes& sizes) {
  const Type type = call.element_type("output_datatype", Type::f32);
  if (!is_floating(type)) {
    std::vector<Int> whole(values.size());
    std::transform(values.begin(), values.end(), whole.begin(), [](double value) { return static_cast<Int>(value); });
    return ints_item(whole, sizes, type);
  }
  const Array exact = samebytes::array(std::span<const double>(values), shape_of(sizes));
  if (type == Type::f64) return item_of(exact);
  const std::vector<float> narrow(values.begin(), values.end());
  return item_of(astype(samebytes::array(std::span<const float>(narrow), shape_of(sizes)), dtype_of(type)));
}

// f(2 pi n / N) for n = 0 .. size - 1, with N the size, or one less for a window that is symmetric.
Outputs window(const Call& call, double (*f)(double)) {
  const Int size = ints_of(call.at(0)).at(0);
  std::vector<double> values(static_cast<std::size_t>(list_count({size})));
  const double period = static_cast<double>(call.integer("periodic", 1) != 0 ? size : size - 1);
  for (std::size_t n = 0; n < values.size(); ++n)
    values[n] = f(period > 0 ? 2 * std::numbers::pi * static_cast<double>(n) / period : 0.0);
  return {numbers(call, values, {size})};
}
Outputs hann(const Call& call) {
  return window(call, [](double angle) { return 0.5 - 0.5 * std::cos(angle); });
}
Outputs hamming(const Call& call) {
  return window(call, [](double angle) { return 25.0 / 46.0 - 21.0 / 46.0 * std::cos(angle); });
}
Outputs blackman(const Call& call) {
  return window(call, [](double angle) { return 0.42 - 0.5 * std::cos(angle) + 0.08 * std::cos(2 * angle); });
}

// Triangles over the spectrum's bins, their corners equally apart on the mel scale: [bins, bands].
Outputs mel_weights(const Call& call) {
  const Int bands = ints_of(call.at(0)).at(0), length = ints_of(call.at(1)).at(0), rate = ints_of(call.at(2)).at(0);
  const double low = reals_of(call.at(3)).at(0), high = reals_of(call.at(4)).at(0);
  if (bands < 1 || length < 1 || rate < 1) call.refuse("expected bands, a length and a rate above 0");
  const Int bins = length / 2 + 1;
  std::vector<double> weights(static_cast<std::size_t>(list_count({bins, bands})), 0.0);
  const auto mel = [](double hertz) { return 2595.0 * std::log10(1.0 + hertz / 700.0); };
  const double step = (mel(high) - mel(low)) / static_cast<double>(bands + 2);
  std::vector<Int> corner;
  for (Int i = 0; i < bands + 2; ++i) {
    const double hertz = 700.0 * (std::pow(10.0, (static_cast<double>(i) * step + mel(low)) / 2595.0) - 1.0);
    const double bin = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    if (!(bin >= 0 && bin < static_cast<double>(bins))) call.refuse("a band ends outside of the spectrum");
    corner.push_back(static_cast<Int>(bin));
  }
  for (Int band = 0; band < bands; ++band) {
    const Int left = corner.at(std::size_t(band)), middle = corner.at(std::size_t(band + 1)),
              right = corner.at(std::size_t(band + 2));
    const auto put = [&](Int bin, double value) { weights.at(static_cast<std::size_t>(bin * bands + band)) = value; };
    if (left == middle) put(middle, 1.0);
    for (Int bin = left; bin <= middle && left < middle; ++bin)
      put(bin, static_cast<double>(bin - left) / static_cast<double>(middle - left));
    for (Int bin = middle; bin < right; ++bin)
      put(bin, static_cast<double>(right - bin) / static_cast<double>(right - middle));
  }
  return {numbers(call, weights, {bins, bands})};
}

enum class Spectrum { whole, one_sided, inverse };

// Of a transform, which the host computes.
void expect_length(const Call& call, Int length) {
  if (length < 1) call.refuse("its length is " + std::to_string(length));
  list_count({length});
}

// x [..., N, 1 or 2], of the last axis the real and the imaginary part: its first `length` values, with zeros behind
// them, to [..., length, 2], or to the half that is not a mirror image.
Array transformed(const Call& call, const Array& given, Int length, Spectrum form) {
  const int rank = given.shape().rank(), axis = rank - 2;
  const Int parts = given.shape()[rank - 1];
  if (parts != 1 && parts != 2) call.refuse("the last axis has " + std::to_string(parts) + " parts, expected 1 or 2");
  expect_length(call, length);
  const Array wide = given.dtype() == f64 ? given : astype(given, f32);
  Array x = wide.shape()[axis] > length ? slice(wide, axis, 0, length) : wide;
  std::vector<PadWidth> widths(static_cast<std::size_t>(rank));
  widths.at(static_cast<std::size_t>(axis)).after = length - x.shape()[axis];
  if (widths.at(static_cast<std::size_t>(axis)).after > 0) x = pad(x, widths);
  if (form == Spectrum::one_sided && parts == 1) return astype(rfft(squeeze(x, -1)), given.dtype());
  if (parts == 1) x = concat({x, zeros(x.shape(), x.dtype())}, rank - 1);
  const Array y = form == Spectrum::inverse ? ifft(x) : fft(x);
  return astype(form == Spectrum::one_sided ? slice(y, axis, 0, length / 2 + 1) : y, given.dtype());
}

// x [..., bins, 2], the half of a spectrum that is no mirror image, to [..., length, 1]: bins that are missing are 0.
Array real_signal(const Call& call, const Array& given, Int length) {
  const int rank = given.shape().rank(), axis = rank - 2;
  if (given.shape()[rank - 1] != 2) call.refuse("a spectrum has a real and an imaginary part");
  expect_length(call, length);
  const Int bins = length / 2 + 1, missing = bins - given.shape()[axis];
  Array x = given.dtype() == f64 ? given : astype(given, f32);
  if (missing < 0) x = slice(x, axis, 0, bins);
  std::vector<PadWidth> widths(static_cast<std::size_t>(rank));
  widths.at(static_cast<std::size_t>(axis)).after = missing;
  if (missing > 0) x = pad(x, widths);
  return astype(unsqueeze(irfft(x, length), -1), given.dtype());
}

Outputs fourier(const Call& call) {
  const Array x = call.floating();
  const int rank = call.rank();
  const bool is_inverse = call.integer("inverse", 0) != 0, is_one_sided = call.integer("onesided", 0) != 0;
  if (rank < 2) call.refuse("expected a signal and a last axis of parts");
  const Int asked = call.has(2) ? ints_of(call.at(2)).at(0) : call.integer("axis", call.opset < 20 ? 1 : -2);
  const int axis = call.axis(asked, rank);
  if (axis == rank - 1) call.refuse("the last axis has the parts of the numbers");
  const bool is_real = is_inverse && is_one_sided;  // half a spectrum to a real signal
  const Int bins = x.shape()[axis];
  const Int length = call.has(1) ? ints_of(call.at(1)).at(0) : is_real ? 2 * (bins - 1) : bins;
  Order order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order.at(static_cast<std::size_t>(axis)), order.at(static_cast<std::size_t>(rank - 2)));
  const auto turned = [&](const Array& a) { return axis == rank - 2 ? a : stored(item_of(a), order); };
  if (is_real) return {item_of(turned(real_signal(call, turned(x), length)))};
  const Spectrum form = is_inverse ? Spectrum::inverse : is_one_sided ? Spectrum::one_sided : Spectrum::whole;
  return {item_of(turned(transformed(call, turned(x), length, form)))};
}

// x [N, L, 1 or 2] -> [N, frames, bins, 2].
Outputs short_time(const Call& call) {
  const Array given = call.floating();
  const Array x = call.rank() == 2 ? unsqueeze(given, 2) : given;
  if (x.shape().rank() != 3) call.refuse("expected a signal [N, L, 1 or 2]");
  const Int step = ints_of(call.at(1)).at(0), samples = x.shape()[1];
  const Int length = call.has(3) ? ints_of(call.at(3)).at(0) : call.has(2) ? call.sizes(2).at(0) : samples;
  if (step < 1 || length < 1 || length > samples) call.refuse("its frames do not fit the signal");
  if (call.has(2) && call.sizes(2) != Sizes{length}) call.refuse("the window has another length than the frames");
  const Int frames = (samples - length) / step + 1;
  list_count({frames, length});
  std::vector<Int> index;
  for (Int frame = 0; frame < frames; ++frame)
    for (Int i = 0; i < length; ++i) index.push_back(frame * step + i);
  Array cut = take(x, plain(ints_item(index, {frames, length})), 1);
  if (call.has(2)) cut = cut * reshape(call.floating(2), {length, 1});
  const bool is_one_sided = call.integer("onesided", 1) != 0;
  return {item_of(transformed(call, cut, length, is_one_sided ? Spectrum::one_sided : Spectrum::whole))};
}

}  // namespace

void add_signal(Registry& registry) {
  registry.insert({{"HannWindow", hann}, {"HammingWindow", hamming}, {"BlackmanWindow", blackman}});
  registry.insert({{"MelWeightMatrix", mel_weights}, {"DFT", fourier}, {"STFT", short_time}});
}

}  // namespace samebytes::onnx

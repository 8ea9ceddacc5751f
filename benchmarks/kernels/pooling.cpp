// Pooling of 64 MiB of images by windows of 2 x 2, stride 2.
#include "kernels/row.h"
#include "samebytes/ops.h"

namespace samebytes::benchmarks {
namespace {

constexpr Images kImages{64, 64, 64, 64};

Array images(int divisor) { return values({64, 64 / divisor, 64 / divisor, 64}); }

}  // namespace

void add_pooling(std::vector<Entry>& entries) {
  entries.push_back({"pooling", "max/64x64x64x64/forward", [] {
                       const Array x = images(1);
                       return Row{.work = 1.25 * bytes(x),
                                  .bound = Bound::bandwidth,
                                  .make = [=] { return max_pool2d(x); },
                                  .peers = {onednn_max_pool(kImages, host(x))}};
                     }});
  entries.push_back({"pooling", "max/64x64x64x64/gradient", [] {
                       const Array x = images(1), dy = images(2);
                       return Row{.work = 2.25 * bytes(x),
                                  .bound = Bound::bandwidth,
                                  .make = [=] { return pull_back(max_pool2d(x), dy, x); },
                                  .peers = {onednn_max_pool_gradient(kImages, host(x), host(dy))}};
                     }});
  entries.push_back({"pooling", "avg/64x64x64x64/forward", [] {
                       const Array x = images(1);
                       return Row{.work = 1.25 * bytes(x),
                                  .bound = Bound::bandwidth,
                                  .make = [=] { return avg_pool2d(x); },
                                  .peers = {onednn_avg_pool(kImages, host(x))}};
                     }});
}

}  // namespace samebytes::benchmarks

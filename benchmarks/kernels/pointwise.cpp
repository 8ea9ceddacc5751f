#include "kernels/row.h"
namespace samebytes::benchmarks {
void add_pointwise(std::vector<Entry>&) {}
}  // namespace samebytes::benchmarks

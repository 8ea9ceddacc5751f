#include "kernels/row.h"
namespace samebytes::benchmarks {
void add_norms(std::vector<Entry>&) {}
}  // namespace samebytes::benchmarks

// Eigen and the device on the same bytes, both ways and without a copy.
#include <samebytes/interop/eigen.h>
#include <samebytes/samebytes.h>

#undef NDEBUG
#include <cassert>
#include <cstdio>
namespace sb = samebytes;

int main() {
  sb::Engine engine;
  // Eigen fills an array ...
  const sb::Array a = sb::empty({64, 32});
  {
    const auto writing = sb::interop::eigen_view<float>(a);
    writing.matrix().setRandom();
  }  // the borrow ends; until then no kernel may use these bytes
  // ... the device multiplies it, and Eigen reads the result where the device wrote it.
  const sb::Array gram = sb::matmul(sb::transpose(a), a);
  const auto device = sb::interop::eigen_view<const float>(gram);
  const auto host = sb::interop::eigen_view<const float>(a);
  const Eigen::MatrixXf expected = host.matrix().transpose() * host.matrix();
  assert(device.matrix().isApprox(expected, 1e-4f));
  std::printf("largest difference %g, bytes copied %llu\n",
              static_cast<double>((device.matrix() - expected).cwiseAbs().maxCoeff()),
              static_cast<unsigned long long>(engine.transfers().bytes_copied));

  // An Eigen matrix as an array over its own memory; the verdict says whether that needed a copy.
  Eigen::MatrixXf mine = Eigen::MatrixXf::Constant(128, 64, 0.25f);
  sb::Adoption verdict;
  const sb::Array adopted = sb::interop::adopt(std::move(mine), &verdict);
  assert(sb::sum(adopted).value() == 128 * 64 / 4);
  std::printf("%s\n", verdict.reason.c_str());
}

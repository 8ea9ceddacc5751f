// OpenBLAS (the build with its own threads), and what all peers share.
#include <memory>

#include "native/peer.h"
#ifdef SAMEBYTES_HAS_OPENBLAS
#include <cblas.h>
#endif
#ifdef SAMEBYTES_HAS_ONEDNN
#include <oneapi/dnnl/dnnl_version.h>
#endif
#include <Eigen/Core>

namespace samebytes::benchmarks {

void set_eigen_threads(int threads);  // and OpenMP's, which oneDNN uses

void set_peer_threads(int threads) {
  set_eigen_threads(threads);
#ifdef SAMEBYTES_HAS_OPENBLAS
  openblas_set_num_threads(threads);
#endif
}

std::string peer_versions() {
  std::string text = "Eigen " + std::to_string(EIGEN_WORLD_VERSION) + "." + std::to_string(EIGEN_MAJOR_VERSION) + "." +
                     std::to_string(EIGEN_MINOR_VERSION);
#ifdef SAMEBYTES_HAS_OPENBLAS
  text += ", " + std::string(openblas_get_config());
#else
  text += ", no OpenBLAS in this build";
#endif
#ifdef SAMEBYTES_HAS_ONEDNN
  text += ", oneDNN " + std::to_string(DNNL_VERSION_MAJOR) + "." + std::to_string(DNNL_VERSION_MINOR) + "." +
          std::to_string(DNNL_VERSION_PATCH);
#else
  text += ", no oneDNN in this build";
#endif
  return text;
}

const char* name_of(Pass pass) {
  switch (pass) {
    case Pass::forward: return "forward";
    case Pass::input_gradient: return "input_gradient";
    case Pass::weight_gradient: return "weight_gradient";
  }
  return "";
}

#ifdef SAMEBYTES_HAS_OPENBLAS
Peer openblas_matmul(const Product& p, std::vector<float> a, std::vector<float> b) {
  struct Operands {
    std::vector<float> a, b, c;
  };
  const auto kept = std::make_shared<Operands>(
      Operands{std::move(a), std::move(b), std::vector<float>(static_cast<std::size_t>(p.m) * p.n)});
  return {"openblas",
          [=] {
            cblas_sgemm(CblasRowMajor, p.transposed_a ? CblasTrans : CblasNoTrans,
                        p.transposed_b ? CblasTrans : CblasNoTrans, p.m, p.n, p.k, 1.0F, kept->a.data(),
                        p.transposed_a ? p.m : p.k, kept->b.data(), p.transposed_b ? p.k : p.n, 0.0F, kept->c.data(),
                        p.n);
          },
          [=] { return kept->c; }};
}
#else
Peer openblas_matmul(const Product&, std::vector<float>, std::vector<float>) { return {}; }
#endif

}  // namespace samebytes::benchmarks

// Host loops that gain from wide vectors are compiled once for each level of instructions, in *_native.cpp, and chosen
// when they run: a library built here runs on an older CPU. Nothing but these files is built above the baseline.
// Their object files must define nothing that the linker could take for the same function of another level: every
// function that they share with others bears the level in its name, as a template argument.
#pragma once

#include "ops/gemm_problem.h"
#include "ops/host.h"

namespace samebytes::detail {

enum class HostLevel { baseline, avx2, avx512 };

// SAMEBYTES_LEVELS counts the levels that this library has; SAMEBYTES_LEVEL is the one that a file is compiled for.
constexpr int kHostLevels = SAMEBYTES_LEVELS;
#ifdef SAMEBYTES_LEVEL
constexpr HostLevel kThisLevel = HostLevel::SAMEBYTES_LEVEL;
#endif

// The highest level that the library and this CPU have.
HostLevel host_level();

// Scratch memory on a boundary of 64 bytes, of at most kMostScratch bytes, from a pool of the process. Nothing here is
// thread_local: static arrays would lie on the stack of every thread of the process, those of drivers and users
// included.
constexpr std::size_t kMostScratch = std::size_t{128} << 10;
struct Scratch {
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  void* const data;
};

// As the functions of ops/gemm.h and ops/host.h. A level that the library does not have has no such function.
template <HostLevel>
void gemm_at(const float* a, const float* b, float* c, const GemmProblem& problem);
template <HostLevel>
void gemm_at(const double* a, const double* b, double* c, const GemmProblem& problem);
template <HostLevel>
void host_pointwise_at(const HostPointwise& kernel, void* const* arrays, const double* scalars, std::int64_t begin,
                       std::int64_t end);
template <HostLevel, class T>
void host_reduce_rows_at(const HostRows& shape, const T* src, T* dst);
template <HostLevel, class T>
void host_reduce_columns_at(const HostColumns& shape, const T* src, T* dst);
template <HostLevel, class T>
void host_reduce_whole_at(int what, std::int64_t outer, std::int64_t reduced, std::int64_t inner, const T* src, T* dst);
template <HostLevel, class T>
void host_argmax_at(std::int64_t outer, std::int64_t reduced, std::int64_t inner, const T* src, std::int32_t* dst);
template <HostLevel, class T>
void host_arange_at(std::int64_t n, T start, T step, bool is_fused, T* dst);
template <HostLevel, class T>
void host_uniform_at(const HostStream& stream, std::int64_t n, int bits, T low, T span, T* dst, std::int64_t begin,
                     std::int64_t end);
template <HostLevel, class T>
void host_dropout_at(const HostStream& stream, std::int64_t n, std::uint32_t threshold, T scale, const T* src, T* dst,
                     std::int64_t begin, std::int64_t end);
template <HostLevel, class T>
void host_sums_at(const HostScan& shape, const T* src, T* dst);
template <HostLevel, class T>
void host_products_at(const HostScan& shape, const T* src, T* dst);
template <HostLevel, class T>
void host_product_at(const HostProduct& shape, const T* a, const T* b, const T* bias, const T* residual, T* c,
                     std::int64_t begin, std::int64_t end);
template <HostLevel>
HostKernel host_kernel_at(std::string_view entry);

}  // namespace samebytes::detail

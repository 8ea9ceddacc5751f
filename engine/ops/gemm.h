// The matrix product behind matmul and linear: one problem, three providers.
//   packed   cl/*/gemm.cl, any strides: the default
//   clblast  CLBlast through a cl_mem over the same bytes (gemm_clblast.cpp), with our own parameters on CPU devices
//   eigen    Eigen on the host over the same bytes (gemm_native.cpp); exempt from the promise of equal bytes
// The tuner's store may choose CLBlast for a class of shapes; EngineOptions::gemm or
// SAMEBYTES_GEMM=packed|clblast|eigen forces one. If CLBlast or Eigen cannot handle the strides, the packed kernel runs
// instead and the profile says so.
#pragma once

#include <cstdint>
#include <string_view>

#include "graph/launch.h"
#include "ops/gemm_problem.h"
#include "samebytes/engine.h"
#include "shared/quantised.h"

namespace samebytes::detail {

// Records the launches of c = A * B (+ bias [n], where it is not none()) with run.epilogue(), or with `accumulates` of
// c += A * B, in the dtype of c; 16-bit sums are rounded each time. All arrays are of one
// floating dtype, `real`; 16-bit ones are multiplied by the packed kernel, whatever the provider. Requires m, n,
// k >= 1.
// Throws ArgumentError where a size does not fit an int.
void launch_gemm(Launch& run, Operand a, Operand b, Operand bias, Operand c, const GemmProblem& problem, Dtype real,
                 bool accumulates = false);

// The same with a B of quantised rows in `blocks`, by a kernel of its own (cl/*/quantised.cl); the problem's b strides
// are not used. Requires: `c` is floating, one product.
void launch_gemm_quantised(Launch& run, Operand a, Operand blocks, Operand bias, Operand c, const GemmProblem& problem,
                           Dtype real, const quantised_rows& rows);

// The provider from the engine's option or else from SAMEBYTES_GEMM; throws ArgumentError for an unknown word.
GemmProvider gemm_provider(const EngineOptions& options);

// Whether the product of a B that stays, such as a weight in inference, is worth a packed copy of it: rows are few, and
// the device's kernel multiplies one.
bool gemm_takes_panels(const Launch& run, const GemmProblem& problem, Dtype real);
// The packed copy of b [K, N], a view or an array, for the device of `run`.
Array gemm_panels(const Launch& run, const Array& b);
// launch_gemm() with that instead of B; the problem's b strides are not used. Requires: gemm_takes_panels().
void launch_gemm_panels(Launch& run, Operand a, Operand panels, Operand bias, Operand c, const GemmProblem& problem,
                        Dtype real);

// large, small, thin (few rows or columns), deep (a long sum) or batched: the classes that the tuner distinguishes.
std::string_view gemm_shape_class(const GemmProblem& problem);

// Whether each operand has one stride of 1 and the other at least a row long, as BLAS requires.
bool gemm_is_blas(const GemmProblem& problem);

// gemm_clblast.cpp: records the calls that write c.
void launch_gemm_clblast(Launch& run, Operand a, Operand b, Operand c, const GemmProblem& problem, Dtype real);

// gemm_native.cpp: one product on the host, with the best instructions of this CPU (ops/native.h) and OpenMP's threads.
// c is dense.
void gemm_native(const float* a, const float* b, float* c, const GemmProblem& problem);
void gemm_native(const double* a, const double* b, double* c, const GemmProblem& problem);

}  // namespace samebytes::detail

// One kernel of a library on the host, made ready: inputs copied and laid out as that library likes them best. The
// benchmarks measure `run` and compare `result` with ours.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace samebytes::benchmarks {

struct Peer {
  std::string name = {};                            // "eigen", "openblas", "onednn"
  std::function<void()> run = {};                   // once, done when it returns; empty: there is none
  std::function<std::vector<float>()> result = {};  // of the last run, dense, in the layout of Samebytes
};

// The number of threads of all libraries on the host.
void set_peer_threads(int threads);
// c = a + b over arrays far larger than the caches by that many threads: 12 bytes an element, 1e9 a second.
double native_stream_bandwidth();
// One pass of the same, or of a = a + b, to be taken in turns with what it is compared with, and the bytes it counts.
struct Stream {
  double bytes;
  std::function<void()> run;
};
Stream native_stream(bool in_place);
// The same of a = a + b: the lines that are written have been read, so more of those bytes are the algorithm's.
double native_in_place_bandwidth();
// What each library calls itself, and which are missing; one line.
std::string peer_versions();

// c [m, n] = a [m, k] x b [k, n]. `a` is stored [k, m] where transposed_a is set, `b` [n, k] where transposed_b is.
struct Product {
  int m, n, k;
  bool transposed_a = false, transposed_b = false;
};
Peer eigen_matmul(const Product& p, std::vector<float> a, std::vector<float> b);
Peer openblas_matmul(const Product& p, std::vector<float> a, std::vector<float> b);
Peer onednn_matmul(const Product& p, std::vector<float> a, std::vector<float> b);

// Channels last; height and kernel_h are 1 for a sequence, which `one_axis` says.
struct Convolution {
  int images, height, width, in, out, kernel_h, kernel_w, stride, pad;
  bool one_axis = false;
  int pad_h() const { return one_axis ? 0 : pad; }
  int out_h() const { return one_axis ? 1 : (height + 2 * pad - kernel_h) / stride + 1; }
  int out_w() const { return (width + 2 * pad - kernel_w) / stride + 1; }
};
enum class Pass { forward, input_gradient, weight_gradient };
const char* name_of(Pass pass);
// The two operands of the pass: (src, weight), (dy, weight) or (src, dy).
Peer onednn_convolution(const Convolution& c, Pass pass, std::vector<float> first, std::vector<float> second);

// Rows of `columns` values.
Peer eigen_softmax(std::vector<float> x, int columns);
Peer onednn_softmax(std::vector<float> x, int columns);
Peer onednn_softmax_gradient(std::vector<float> y, std::vector<float> dy, int columns);
// Without scale and shift.
Peer eigen_layer_norm(std::vector<float> x, int columns);
Peer onednn_layer_norm(std::vector<float> x, int columns);
Peer onednn_layer_norm_gradient(std::vector<float> x, std::vector<float> dy, int columns);
// Over all but the channels of [images, height, width, channels], training, without scale and shift.
struct Images {
  int images, height, width, channels;
};
Peer onednn_batch_norm(const Images& shape, std::vector<float> x);
Peer onednn_batch_norm_gradient(const Images& shape, std::vector<float> x, std::vector<float> dy);
// Windows of 2 x 2, stride 2.
Peer onednn_max_pool(const Images& shape, std::vector<float> x);
Peer onednn_max_pool_gradient(const Images& shape, std::vector<float> x, std::vector<float> dy);
Peer onednn_avg_pool(const Images& shape, std::vector<float> x);
// a + b, and sums of rows [rows, columns] -> [rows].
Peer onednn_add(std::vector<float> a, std::vector<float> b);
Peer onednn_sum_rows(std::vector<float> x, int columns);

}  // namespace samebytes::benchmarks

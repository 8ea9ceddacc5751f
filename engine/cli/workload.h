// Workload: everything that train, eval and bench must know about one of the networks they run: its data, its model,
// its loss, its defaults, and how many operations a sample costs. One file each (workload_<name>.cpp); the table in
// workload.cpp lists them, so another one is one more file and one more line.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/data.h"
#include "samebytes/nn.h"

namespace samebytes::cli {

struct Defaults {
  int epochs = 3;
  std::int64_t batch = 64;
  double rate = 1e-3;
  double weight_decay = 1e-2;
};

// Multiply-adds of the convolutions and linear layers of one sample, counted as two each; what is pointwise is left
// out. Training costs three times the forward pass (value, input gradient, weight gradient) but for the first layer,
// whose input needs no gradient.
class FlopCount {
 public:
  // An output of h x w pixels and `out` channels from `in` channels with a k x k kernel.
  FlopCount& conv(int h, int w, int k, int in, int out) { return add(2.0 * h * w * k * k * in * out); }
  FlopCount& linear(int in, int out) { return add(2.0 * in * out); }
  double forward() const { return forward_; }
  double training() const { return 3 * forward_ - first_; }

 private:
  FlopCount& add(double flops) {
    if (forward_ == 0) first_ = flops;
    forward_ += flops;
    return *this;
  }
  double forward_ = 0;
  double first_ = 0;
};

struct Workload {
  std::string name;
  std::string about;  // one line of help
  Defaults defaults;
  FlopCount flops;  // of one sample
  // The real data; `folder` is --data, empty where it was not given. Throws UsageError, IoError.
  std::function<data::Split(const std::string& folder)> open;
  // Made-up samples of the same fields, for bench.
  std::function<data::DatasetPtr(std::int64_t samples)> make_samples;
  std::vector<data::TransformPtr> augment;  // of the training samples
  std::function<std::unique_ptr<nn::Module>()> make_model;
  // The loss (mean over the batch) and the number of right answers (f32, one element) of the model's output.
  std::function<Array(const Array& output, const data::Batch& batch)> loss;
  std::function<Array(const Array& output, const data::Batch& batch)> right;
};

const std::vector<Workload>& workloads();
// Throws UsageError with what there is and the nearest name.
const Workload& find_workload(const std::string& name);

// Shared by the classifiers: fields are "image" [N, H, W, C] f32 and "label" [N] i32.
Array classifier_loss(const Array& logits, const data::Batch& batch);
Array count_right(const Array& logits, const data::Batch& batch);
// Noise for pixels and any of ten labels, both a function of the sample's index.
data::DatasetPtr noise_images(std::int64_t samples, int height, int width);
// data::mnist of a folder that must be given.
data::Split open_mnist(const char* workload, const std::string& folder);

Workload digits_workload();
Workload mlp_workload();
Workload cnn_workload();

}  // namespace samebytes::cli

// Workload: everything that `samebytes train`, `eval` and `bench` must know about one of the networks they run: its
// data, its model, its loss, its defaults, and how many operations a sample costs. One file each (<name>.cpp), written
// on the public headers alone, with a function that makes it from the options; the table in workload.cpp lists them, so
// another one is one more file and one line.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "samebytes/array.h"
#include "samebytes/data.h"
#include "samebytes/io.h"
#include "samebytes/nn.h"
#include "samebytes/ops.h"

namespace samebytes::workloads {

// The options ask for what the workload does not have.
class OptionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Where the data is and what form the model has. Each workload takes some of these (WorkloadEntry::takes).
struct WorkloadOptions {
  std::string data;                      // a folder or a file
  std::optional<std::string> size;       // nano, small, medium
  std::optional<std::int64_t> context;   // tokens in a window
  std::optional<std::string> tokenizer;  // a folder with vocab.json and merges.txt
  std::optional<std::string> name;       // one of the sets in a folder
  std::vector<std::string> freeze;       // patterns of parameters that stay as they are (Module::freeze_matching)
  // Of a model's file (onnx_file.h).
  std::vector<double> mean, deviation;  // of images: one number, or one for each channel
  std::optional<double> validation;     // share of the data, where nothing is set apart for testing
  std::vector<std::string> dims;        // SYMBOL=N: sizes that the file leaves open
  bool keeps_head = false;              // a model for another number of classes is refused
  // Of a language model's folder (language_model.h).
  std::optional<std::string> quantise;  // none, q8, q4, nf4
  std::optional<std::string> dtype;     // of a language model's matrices: f32, f16, bf16
  bool packs = true;                    // short samples share a row
};

// What a simpler method reaches.
struct Baseline {
  std::string name;
  double balanced_accuracy = 0;
  double area_under_curve = 0;
};

struct Defaults {
  int epochs = 3;
  std::int64_t batch = 64;
  std::optional<std::int64_t> steps = {};  // instead of epochs, where neither was asked for
  double rate = 1e-3;
  double weight_decay = 1e-2;
  double beta2 = 0.999;
  double clip_norm = 0;  // of all gradients together; 0: off
};

// Multiply-adds of the convolutions and linear layers of one sample, counted as two each; what is pointwise is left
// out. Training costs three times the forward pass (value, input gradient, weight gradient) but for the first layer,
// whose input needs no gradient.
class FlopCount {
 public:
  // An output of h x w pixels and `out` channels from `in` channels with a k x k kernel.
  FlopCount& conv(int h, int w, int k, int in, int out) { return add(2.0 * h * w * k * k * in * out); }
  // An output of `length` points.
  FlopCount& conv1d(int length, int k, int in, int out) { return add(2.0 * length * k * in * out); }
  FlopCount& linear(double in, double out, double rows = 1) { return add(2.0 * in * out * rows); }
  // The inputs of what was added so far need a gradient too: it is not the first layer.
  FlopCount& all_need_gradients() {
    first_ = 0;
    return *this;
  }
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
  Defaults defaults;
  FlopCount flops;  // of one sample
  // The real data, of one of `folds`. Throws OptionError where its place was not given, IoError.
  std::function<data::Split(int fold)> open;
  int folds = 1;  // more than one: train trains once for each and reports mean and spread
  // Made-up samples of the same fields, for bench.
  std::function<data::DatasetPtr(std::int64_t samples)> make_samples = {};
  std::vector<data::TransformPtr> augment = {};  // of the training samples
  std::vector<data::TransformPtr> prepare = {};  // of all samples, after augment
  std::function<std::unique_ptr<nn::Module>()> make_model;
  std::function<Array(nn::Module& net, const data::Batch& batch)> forward = first_field;
  bool needs_own_class = false;  // forward() takes what make_model() makes, and no module around it
  // The loss (mean over the batch) and, where there is such a thing, the number of right answers (f32, one element) of
  // the model's output.
  std::function<Array(const Array& output, const data::Batch& batch)> loss;
  std::function<Array(const Array& output, const data::Batch& batch)> right = {};
  // The same loss without the output, chunk by chunk, where the model can.
  std::function<Array(nn::Module& net, const data::Batch& batch, const LinearCrossEntropyOptions& head)> chunked_loss =
      {};
  std::function<Array(nn::Module& net, const data::Batch& batch)> whole_loss = {};  // that, as the run asks for it
  // The output is one logit a sample, "label" is 0 or 1: balanced accuracy and area under the curve.
  bool is_binary = false;
  // What simpler methods reach; asks now and then whether to stop early.
  std::function<std::vector<Baseline>(const data::Split& split, const std::function<bool()>& should_stop)> baselines =
      {};
  io::Metadata metadata = {{"format", "pt"}};  // of the file that --save writes
  // Writes the model as an ONNX file, where it can be one.
  std::function<void(nn::Module& net, const std::string& path)> save_model = {};
  // Writes the adapters alone into a folder, in place of the network.
  std::function<void(nn::Module& net, const std::string& folder)> save_adapters = {};
  std::vector<std::string> notes = {};  // what people are told before training

  Array loss_of(nn::Module& net, const data::Batch& batch) const {
    return whole_loss ? whole_loss(net, batch) : loss(forward(net, batch), batch);
  }

  static Array first_field(nn::Module& net, const data::Batch& batch) { return net(batch[0]); }
};

// A line of the table of workloads.
struct WorkloadEntry {
  std::string name;
  std::string about;               // one line of help
  std::vector<std::string> takes;  // "--size", "--context", "--name"
  // Reads what decides the form of the model. Throws OptionError, IoError.
  Workload (*make)(const WorkloadOptions& options);
};

const std::vector<WorkloadEntry>& all();

// The same workload on data of which only the fields and the size are known, all zeros.
Workload with_hollow_data(const Workload& workload);
// The real data is opened once, however often it is asked for.
Workload with_data_kept(const Workload& workload);

// Shared by the classifiers: fields are "image" [N, H, W, C] f32 and "label" [N] i32.
Array classifier_loss(const Array& logits, const data::Batch& batch);
Array count_right(const Array& logits, const data::Batch& batch);
// Noise for pixels and any of ten labels, both a function of the sample's index.
data::DatasetPtr noise_images(std::int64_t samples, int height, int width, int channels = 1);
// --data, or an OptionError that says what the workload reads there.
std::string needed_data(const char* workload, const WorkloadOptions& options, const char* what);

inline constexpr const char* kMnistFolder =
    "a folder with the four MNIST files: --data DIR (`samebytes data mnist` says where to get them)";

Workload digits_workload(const WorkloadOptions& options);
Workload mlp_workload(const WorkloadOptions& options);
Workload cnn_workload(const WorkloadOptions& options);
Workload resnet20_workload(const WorkloadOptions& options);
Workload series_workload(const WorkloadOptions& options);
Workload transit_workload(const WorkloadOptions& options);
Workload speech_workload(const WorkloadOptions& options);
Workload vowels_workload(const WorkloadOptions& options);
Workload gpt_workload(const WorkloadOptions& options);

}  // namespace samebytes::workloads

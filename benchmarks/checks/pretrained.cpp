// Runs a Hugging Face folder for benchmarks/pretrained_families.py, which compares the results with transformers.
//   build/check_pretrained FOLDER INPUTS OUT SAVED
// INPUTS, a safetensors file: "x" (ids or images, channels last), perhaps "lengths" and "types", "weight" of the shape
// of the output, and perhaps "prompt" [T] for greedy text. OUT gets "output", "grad/NAME" of sum(output * weight) with
// the order of axes that the array has here ("layout/NAME" in the metadata), and "text"; SAVED what save_pretrained()
// writes.
#include <fmt/format.h>

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "checks/tensors.h"
#include "samebytes/samebytes.h"

namespace sb = samebytes;
using checks::input_of;
using checks::Results;

namespace {

void run(const std::string& folder, const std::string& inputs, const std::string& out, const std::string& saved) {
  sb::Engine engine;
  const auto model = sb::models::from_pretrained(folder);
  const sb::io::TensorFile file(inputs);
  Results results;
  const sb::models::ModelOutput output =
      model->run({.x = input_of(file, "x"), .lengths = input_of(file, "lengths"), .types = input_of(file, "types")});
  const sb::Array y = output.logits.defined() ? output.logits : output.hidden;
  results.add("output", y);
  if (output.pooled.defined()) results.add("pooled", output.pooled);
  sb::io::Metadata metadata;
  if (const sb::Array weight = input_of(file, "weight"); weight.defined()) {
    const std::vector<sb::nn::NamedArray> parameters = model->named_parameters();
    std::vector<sb::Array> cells;
    for (const auto& parameter : parameters) cells.push_back(parameter.array);
    const std::vector<sb::Array> gradients = sb::gradients(sb::sum(y * weight), cells, {.allow_unused = true});
    for (std::size_t i = 0; i < cells.size(); ++i) {
      results.add("grad/" + parameters[i].name, gradients[i]);
      const bool is_turned =
          parameters[i].layout == sb::nn::Layout::linear_transposed || parameters[i].layout == sb::nn::Layout::conv;
      if (is_turned) metadata.emplace_back("layout/" + parameters[i].name, "turned");
    }
  }
  if (const sb::Array prompt = input_of(file, "prompt"); prompt.defined()) {
    const std::vector<std::int32_t> text =
        sb::models::generate(*model, prompt.to_vector<std::int32_t>(), {.tokens = 24, .temperature = 0});
    results.add("text",
                sb::array(std::vector<float>(text.begin(), text.end()), {static_cast<std::int64_t>(text.size())}));
  }
  const sb::models::WeightReport& weights = model->weights();
  metadata.emplace_back("mapped", std::to_string(weights.mapped_bytes));
  metadata.emplace_back("converted", std::to_string(weights.converted_bytes));
  metadata.emplace_back("copied", std::to_string(engine.transfers().bytes_copied));
  for (const std::string& name : weights.unused) metadata.emplace_back("unused/" + name, "");
  results.write(out, metadata);
  sb::models::save_pretrained(saved, *model);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    fmt::print(stderr, "check_pretrained FOLDER INPUTS OUT SAVED\n");
    return 2;
  }
  try {
    run(argv[1], argv[2], argv[3], argv[4]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}

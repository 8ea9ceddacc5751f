// Adapters on a Hugging Face folder for benchmarks/lora_families.py, which compares them with PEFT.
//   build/check_lora FOLDER ADAPTERS INPUTS OUT SAVED
// ADAPTERS is a folder of PEFT's. INPUTS, a safetensors file: "x" (ids or images, channels last), perhaps "lengths" and
// "types"; "labels" i32 [N, T] for a model of language, which the tokens before them predict (-100: none), or else
// "target" of the output's shape with "weight" for each of its values. OUT gets "grad/NAME" of the first loss, "losses"
// of 20 steps of AdamW and "output" after them; SAVED/adapters what save_lora() writes then, and SAVED/merged the
// merged network.
#include <fmt/format.h>

#include <exception>
#include <string>
#include <vector>

#include "checks/tensors.h"
#include "samebytes/samebytes.h"

namespace sb = samebytes;
using checks::input_of;
using checks::Results;

namespace {

constexpr int kSteps = 20;
constexpr double kRate = 1e-2;

void run(const std::string& folder, const std::string& adapters, const std::string& inputs, const std::string& out,
         const std::string& saved) {
  const sb::Engine engine;
  const auto model = sb::models::from_pretrained(folder);
  sb::models::load_lora(adapters, *model);
  const sb::io::TensorFile file(inputs);
  const sb::models::ModelInput input{
      .x = input_of(file, "x"), .lengths = input_of(file, "lengths"), .types = input_of(file, "types")};
  const sb::Array labels = input_of(file, "labels"), target = input_of(file, "target"),
                  weight = input_of(file, "weight");
  const auto outputs = [&] {
    const sb::models::ModelOutput output = model->run(input);
    return output.logits.defined() ? output.logits : output.hidden;
  };
  const auto loss_of = [&](const sb::Array& y) {
    if (!labels.defined()) return sb::mean(sb::square(y - target) * weight);
    const std::int64_t last = y.shape()[1] - 1;
    return sb::cross_entropy(sb::slice(y, 1, 0, last), sb::slice(labels, 1, 1, last + 1), {.ignore_index = -100});
  };
  Results results;
  std::vector<sb::Array> cells;
  std::vector<std::string> names;
  for (const sb::nn::NamedArray& entry : sb::nn::lora_state(*model)) {
    cells.push_back(entry.array);
    names.push_back(entry.name);
  }
  const std::vector<sb::Array> gradients = sb::gradients(loss_of(outputs()), cells);
  for (std::size_t i = 0; i < cells.size(); ++i) results.add("grad/" + names[i], gradients[i]);
  sb::optim::AdamW adam(model->parameters(), {.rate = kRate});
  std::vector<float> losses;
  for (int step = 0; step < kSteps; ++step) {
    const sb::Array loss = loss_of(outputs());
    adam.step(loss);
    losses.push_back(static_cast<float>(loss.value()));
  }
  results.add("losses", sb::array(losses, {kSteps}));
  results.add("output", outputs());
  results.write(out);
  sb::models::save_lora(saved + "/adapters", *model, folder);
  sb::nn::merge_lora(*model);
  sb::nn::unload_lora(*model);
  sb::models::save_pretrained(saved + "/merged", *model);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    fmt::print(stderr, "check_lora FOLDER ADAPTERS INPUTS OUT SAVED\n");
    return 2;
  }
  try {
    run(argv[1], argv[2], argv[3], argv[4], argv[5]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  return 0;
}

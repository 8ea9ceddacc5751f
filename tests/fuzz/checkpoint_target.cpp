#include <zlib.h>

#include <nlohmann/json.hpp>

#include "fuzz/target.h"
#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "samebytes/io/convert_file.h"
#include "samebytes/io/safetensors.h"
#include "samebytes/nn.h"
#include "samebytes/optim.h"
#include "samebytes/run_state.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

// A run that a file is loaded into.
struct Run {
  Engine engine;
  nn::Linear layer{{.in = 2, .out = 1}};
  optim::Adam adam{layer.parameters(), {}};
  std::int64_t seen = 3;
  RunState state{engine};

  Run() {
    state.expect("workload", "fuzz");
    state.add("model", layer);
    state.add("optimizer", adam);
    state.add("seen", seen);
    state.add(
        "text", [] { return std::string("a"); }, [](const std::string&) {});
  }
};

// The same file with checksums that fit it, so that what they guard is read, too; else the file as it is.
void mend(const std::string& path) {
  try {
    const io::TensorFile file(path);
    io::Metadata metadata = file.metadata();
    nlohmann::ordered_json sums = nlohmann::ordered_json::object();
    const auto sum = [](std::uint32_t begin, const void* bytes, std::size_t count) {
      return static_cast<std::uint32_t>(crc32_z(begin, static_cast<const Bytef*>(bytes), count));
    };
    for (const auto& [key, value] : metadata)
      if (key == "description") sums[""] = sum(0, value.data(), value.size());
    std::vector<HostArray> values;
    std::vector<io::TensorView> views;
    for (std::size_t i = 0; i < file.tensors().size(); ++i) values.push_back(file.read(i));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const io::TensorInfo& tensor = file.tensors()[i];
      const std::string what = tensor.name + " " + std::string(name_of(tensor.dtype)) + " " + tensor.shape.to_string();
      sums[tensor.name] = sum(sum(0, what.data(), what.size()), values[i].bytes.data(), values[i].bytes.size());
      views.push_back({tensor.name, tensor.dtype, tensor.shape, values[i].bytes});
    }
    for (auto& [key, value] : metadata)
      if (key == "checksums") value = sums.dump();
    io::save_tensors(path, views, metadata);
  } catch (const Error&) {
  } catch (const nlohmann::json::exception&) {
  }
}

const Added added({
    .name = "checkpoint",
    .file = "checkpoint-000000001.safetensors",
    .make = [](const std::string& folder) { Run().state.save(folder + "/state"); },
    .read =
        [](const std::string& path) {
          static Run run;
          const EngineScope scope(run.engine);
          try {
            run.state.load(path);
          } catch (const Error&) {
            mend(path);
            try {
              io::convert_file(path, path + ".weights.safetensors");
            } catch (const Error&) {
            }
            run_text(path, "text");
            run.state.load(path);
          }
        },
    .words = {"\"description\"", "\"checksums\"", "\\\"parts\\\"", "\\\"expect\\\"", "\\\"random_counter\\\"",
              "\\\"model\\\"", "\\\"layouts\\\"", "{}", "null", "-1", "1e999"},
    .growth = 300,
});

}  // namespace
}  // namespace samebytes::fuzz

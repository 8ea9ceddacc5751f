// samebytes convert: weights from one kind of file to another.
#include <fmt/format.h>

#include "cli/session.h"
#include "cli/text.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/error.h"
#include "samebytes/io/convert_file.h"

namespace samebytes::cli {

int run_convert(const Options& options) {
  const ConvertingOptions& asked = options.convert;
  io::ConvertOptions wanted{.graph = asked.graph, .part = asked.part};
  for (const Dtype dtype : {f64, f32, f16, bf16})
    if (asked.dtype == name_of(dtype)) wanted.dtype = dtype;
  const std::unique_ptr<Engine> engine = open_engine(options, options.device);
  try {
    const io::Conversion made = io::convert_file(asked.from, asked.to, wanted);
    fmt::print("{}: {}, {}", asked.to, counted_text(static_cast<double>(made.tensors), "tensor"),
               counted_text(static_cast<double>(made.values), "value"));
    if (made.left_out > 0)
      fmt::print("; {} of the run's state left out", counted_text(static_cast<double>(made.left_out), "tensor"));
    fmt::print("\n");
  } catch (const ArgumentError& error) {
    throw UsageError(error.what());
  }
  return kDone;
}

}  // namespace samebytes::cli

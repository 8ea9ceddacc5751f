// samebytes embed: vectors of sentences, a text a line.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

#include "cli/interrupt.h"
#include "cli/language.h"
#include "cli/progress.h"
#include "cli/usage_error.h"
#include "cli/verbs.h"
#include "samebytes/error.h"
#include "samebytes/io/files.h"
#include "samebytes/io/tensor_npy.h"
#include "samebytes/models/lora.h"
#include "samebytes/models/sentence_encoder.h"

namespace samebytes::cli {
namespace {

std::vector<std::string> lines_of(std::istream& in) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

std::vector<std::string> texts_of(const std::string& path) {
  if (path.empty()) return lines_of(std::cin);
  std::ifstream file(path);
  if (!file)
    throw IoError(fmt::format("--input {}: expected a file with a text a line; it cannot be read", path), path);
  return lines_of(file);
}

models::SentenceEncoderOptions encoder_options(const Options& options) {
  models::SentenceEncoderOptions result{.model = opening_of(options)};
  if (options.batch) result.batch = *options.batch;
  const std::string& word = options.language.pooling;
  if (!word.empty())
    result.pooling = {.pooling = word == "mean"    ? models::Pooling::mean
                                 : word == "first" ? models::Pooling::first
                                                   : models::Pooling::model};
  return result;
}

std::string text_of(const HostArray& vectors) {
  const std::span<const float> values = vectors.as<float>();
  const auto width = static_cast<std::size_t>(vectors.shape[1]);
  std::string text;
  for (std::size_t at = 0; at < values.size(); at += width)
    text += fmt::format("{:.9g}\n", fmt::join(values.subspan(at, width), " "));
  return text;
}

}  // namespace

int run_embed(const Options& options) {
  expect_language_model(options);
  Progress progress(stderr, options.quiet || options.language.output.empty());
  progress.wait_for("opening " + options.workloads.front());
  const std::unique_ptr<Engine> engine = open_engine(options, options.device);
  models::SentenceEncoder encoder = models::SentenceEncoder::load(options.workloads.front(), encoder_options(options));
  if (!options.lora.load.empty()) models::load_lora(options.lora.load, encoder.model());
  const std::vector<std::string> texts = texts_of(options.language.input);
  progress.wait_for(fmt::format("{} texts", texts.size()));
  const HostArray vectors = encoder.encode(texts, is_interrupted);
  progress.erase();
  if (is_interrupted()) return kInterrupted;
  const std::string& path = options.language.output;
  if (path.ends_with(".npy"))
    io::write_tensor_npy(path, io::tensor_of(array(vectors.as<float>(), vectors.shape)));
  else if (path.empty())
    fmt::print("{}", text_of(vectors));
  else
    io::write_file(path, text_of(vectors));
  return kDone;
}

}  // namespace samebytes::cli

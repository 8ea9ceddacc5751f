#include "workloads/language_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "samebytes/data/text_samples.h"
#include "samebytes/io/gguf.h"
#include "samebytes/models/lora.h"
#include "samebytes/models/pretrained.h"

namespace samebytes::workloads {
namespace {

constexpr std::int64_t kUsualContext = 512;
constexpr double kUsualValidation = 0.05;

struct Samples {
  std::vector<data::TextSample> train, test;
};

// Every n-th sample is for testing; one at least, and one is left at least.
Samples divided(std::vector<data::TextSample> all, double share) {
  Samples samples;
  const auto every = static_cast<std::size_t>(std::max(2.0, 1 / share));
  if (all.size() == 1) return {all, all};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_test = i % every == every - 1 || (i + 1 == all.size() && samples.test.empty());
    (is_test ? samples.test : samples.train).push_back(std::move(all[i]));
  }
  return samples;
}

data::ChatReader reader_of(const std::string& folder, const models::Config& config) {
  data::ChatReader reader{.tokenizer = text::Tokenizer::load(folder),
                          .chat_template = text::ChatTemplate::find(folder)};
  if (const std::vector<double> ends = config.numbers("eos_token_id"); !ends.empty())
    reader.end = static_cast<std::int32_t>(ends.front());
  return reader;
}

std::string rows_note(const data::TextRows& rows, std::int64_t context) {
  std::string text = fmt::format("{} samples in {} rows of {} tokens; {} of {} tokens count", rows.samples, rows.rows,
                                 context, rows.counted, rows.tokens);
  if (rows.cut > 0) text += fmt::format("; {} lost their ends (--context)", rows.cut);
  if (rows.dropped > 0)
    text += fmt::format("; {} have nothing that counts within a row and are left out", rows.dropped);
  return text;
}

Array loss_of(nn::Module& net, const data::Batch& batch, bool is_packed) {
  auto& model = dynamic_cast<models::Pretrained&>(net);
  return models::text_loss(model, {.x = batch["ids"], .texts = is_packed ? batch["texts"] : Array{}}, batch["labels"]);
}

data::DatasetPtr made_up_rows(std::int64_t samples, std::int64_t context) {
  const auto field = [&](const char* name) { return data::FieldSpec{.name = name, .shape = {context}, .dtype = i32}; };
  return data::generate(samples, {field("ids"), field("labels"), field("texts")},
                        [](std::int64_t, std::span<const data::Field> sample) {
                          for (const data::Field& one : sample) std::ranges::fill(one.as<std::int32_t>(), 0);
                        });
}

models::Quantise quantise_of(const WorkloadOptions& options) {
  const std::string word = options.quantise.value_or("none");
  if (word == "q8") return models::Quantise::q8;
  if (word == "q4") return models::Quantise::q4;
  return word == "nf4" ? models::Quantise::nf4 : models::Quantise::none;
}

}  // namespace

bool is_language_model(const std::string& path) {
  std::error_code code;
  return std::filesystem::exists(std::filesystem::path(path) / "config.json", code) || io::is_gguf(path);
}

models::PretrainedOptions opening_of(const std::string& path, const WorkloadOptions& options) {
  std::optional<Dtype> dtype;
  if (options.dtype) dtype = *options.dtype == "f32" ? f32 : *options.dtype == "f16" ? f16 : bf16;
  if (!io::is_gguf(path)) return {.dtype = dtype, .quantise = quantise_of(options)};
  if (options.quantise)
    throw OptionError(fmt::format("--quantise {}: {} has blocks of its own, which are used", *options.quantise, path));
  return {.dtype = dtype, .keep_quantised = true};
}

Workload language_workload(const std::string& folder, const WorkloadOptions& options) {
  const models::Config config = models::read_config(folder);
  const std::int64_t most = config.integer("max_position_embeddings", config.integer("n_positions", kUsualContext));
  const std::int64_t context = options.context.value_or(std::min(kUsualContext, most));
  if (context > most)
    throw OptionError(fmt::format("--context {} is more than {} has positions for, {}", context, folder, most));
  if (context < 2) throw OptionError(fmt::format("--context {}: expected 2 tokens or more", context));
  Workload workload;
  workload.name = std::filesystem::path(folder).lexically_normal().filename().string();
  if (workload.name.empty()) workload.name = folder;
  workload.defaults = {.epochs = 3, .batch = 4, .rate = 2e-4, .weight_decay = 0, .clip_norm = 1};
  // Learned positions count from the beginning of a row.
  const bool packs = options.packs && !config.has("n_positions");
  bool is_packed = packs;
  if (!options.data.empty()) {
    Samples samples = divided(data::read_chats(options.data, reader_of(folder, config)),
                              options.validation.value_or(kUsualValidation));
    const data::TextRowOptions form{.context = context, .packs = packs};
    const auto train = std::make_shared<const data::TextRows>(data::text_rows(samples.train, form));
    const auto test = std::make_shared<const data::TextRows>(data::text_rows(samples.test, form));
    is_packed = train->is_packed || test->is_packed;
    workload.notes = {"training: " + rows_note(*train, context), "testing: " + rows_note(*test, context)};
    workload.defaults.batch = std::min(workload.defaults.batch, train->rows);
    workload.open = [train, test](int) { return data::Split{.train = train->set, .test = test->set}; };
  } else {
    workload.open = [options, name = workload.name](int) -> data::Split {
      needed_data(name.c_str(), options, "conversations, a JSON object a line: --data chat.jsonl");
      return {};
    };
  }
  workload.make_samples = [context](std::int64_t samples) { return made_up_rows(samples, context); };
  workload.make_model = [folder, opening = opening_of(folder, options)]() -> std::unique_ptr<nn::Module> {
    std::unique_ptr<models::Pretrained> model = models::from_pretrained(folder, opening);
    if (!model->is_decoder())
      throw OptionError(fmt::format("{}: {} writes no text; expected a model with a chat or a text to go on with",
                                    folder, model->kind()));
    model->train();
    return model;
  };
  workload.forward = [](nn::Module& net, const data::Batch& batch) { return net(batch["ids"]); };
  workload.loss = [](const Array&, const data::Batch&) -> Array {
    throw OptionError("the loss of a language model is made with its head");
  };
  workload.whole_loss = [is_packed](nn::Module& net, const data::Batch& batch) {
    return loss_of(net, batch, is_packed);
  };
  workload.save_adapters = [folder](nn::Module& net, const std::string& to) {
    models::save_lora(to, dynamic_cast<models::Pretrained&>(net), folder);
  };
  return workload;
}

}  // namespace samebytes::workloads

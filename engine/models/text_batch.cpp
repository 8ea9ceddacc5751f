#include "samebytes/models/text_batch.h"

#include <algorithm>
#include <deque>
#include <exception>
#include <map>
#include <utility>

#include "models/answer.h"
#include "samebytes/autograd.h"
#include "samebytes/error.h"
#include "samebytes/ops.h"

namespace samebytes::models {
namespace {

constexpr std::int64_t kUsualContext = 2048;

}  // namespace

struct TextBatch::Impl {
  struct Finished {
    TextResult result;
    std::exception_ptr error;
  };
  struct Text {
    Text(std::int64_t number, TextRequest given, const std::optional<text::Tokenizer>& tokenizer)
        : id(number), request(std::move(given)), ends(request.ends) {
      if (tokenizer)
        answer.emplace(*tokenizer,
                       Answer::Options{.ends = request.ends, .stop = request.stop, .on_text = request.on_text});
    }
    std::int64_t id;
    TextRequest request;
    std::vector<std::int32_t> ends;
    std::optional<Answer> answer;
    std::int64_t tokens = 0;
    bool is_cancelled = false;
  };
  // A place for a text. Its address stays.
  struct Stream {
    explicit Stream(Pretrained& model, std::int64_t context)
        : cache(model.make_cache(1, context)), generator(generator_of(model, cache)) {}
    DecoderCache cache;
    Generator generator;
    std::unique_ptr<Text> text;
    std::optional<GeneratedText> state;
  };

  bool admit();
  void read(const std::vector<Stream*>& texts);
  std::vector<Stream*> first_of(std::vector<Stream*> joining) const;
  void draw(Stream& stream, std::vector<double> logits);
  void end(Stream& stream, std::exception_ptr error = nullptr);
  Stream* free_stream();

  Pretrained& model;
  std::optional<text::Tokenizer> tokenizer;
  TextBatchOptions options;
  std::int64_t next_id = 0;
  std::vector<std::unique_ptr<Stream>> streams = {};
  std::deque<std::unique_ptr<Text>> queue = {};
  std::map<std::int64_t, Finished> finished = {};
};

TextBatch::TextBatch(Pretrained& model, std::optional<text::Tokenizer> tokenizer, const TextBatchOptions& options) {
  if (!model.is_decoder()) throw ArgumentError("TextBatch: expected a decoder, got " + model.kind());
  if (options.streams < 1 || options.context < 0 || options.prompt_chunk < 1)
    throw ArgumentError("TextBatch: expected streams and prompt_chunk of 1 or more and a context of 0 or more, got " +
                        std::to_string(options.streams) + ", " + std::to_string(options.prompt_chunk) + " and " +
                        std::to_string(options.context));
  impl_ = std::make_unique<Impl>(Impl{model, std::move(tokenizer), options});
  const std::int64_t most = model.context();
  std::int64_t& context = impl_->options.context;
  if (context == 0) context = most > 0 ? std::min(most, kUsualContext) : kUsualContext;
  if (model.config().has("n_positions")) context = std::min(context, most);  // learned positions end
}
TextBatch::~TextBatch() = default;

std::int64_t TextBatch::add(TextRequest request) {
  if (!impl_->tokenizer && (!request.stop.empty() || request.on_text))
    throw ArgumentError("TextBatch: stop and on_text need a tokenizer");
  request.sampling.prompt_chunk = impl_->options.prompt_chunk;
  // Checks the request where it is made.
  Generator generator;
  generator.vocabulary = impl_->model.vocabulary();
  generator.context = impl_->options.context;
  static_cast<void>(GeneratedText(generator, request.prompt, request.sampling));
  impl_->queue.push_back(std::make_unique<Impl::Text>(impl_->next_id, std::move(request), impl_->tokenizer));
  return impl_->next_id++;
}

void TextBatch::cancel(std::int64_t id) {
  for (const auto& text : impl_->queue)
    if (text->id == id) text->is_cancelled = true;
  for (const auto& stream : impl_->streams)
    if (stream->text && stream->text->id == id) stream->text->is_cancelled = true;
}

TextBatch::Impl::Stream* TextBatch::Impl::free_stream() {
  for (const auto& stream : streams)
    if (!stream->text) return stream.get();
  if (static_cast<std::int64_t>(streams.size()) == options.streams) return nullptr;
  streams.push_back(std::make_unique<Stream>(model, options.context));
  return streams.back().get();
}

// Gives waiting texts the free streams, and ends those that were cancelled. Whether any text is left.
bool TextBatch::Impl::admit() {
  for (const auto& stream : streams)
    if (stream->text && stream->text->is_cancelled) end(*stream);
  while (!queue.empty()) {
    if (queue.front()->is_cancelled || queue.front()->request.sampling.tokens == 0) {
      const std::unique_ptr<Text> text = std::move(queue.front());
      queue.pop_front();
      finished[text->id].result = {.ids = text->request.prompt,
                                   .text = {},
                                   .prompt_tokens = static_cast<std::int64_t>(text->request.prompt.size()),
                                   .tokens = 0,
                                   .is_cancelled = text->is_cancelled};
      continue;
    }
    Stream* const stream = free_stream();
    if (stream == nullptr) break;
    stream->text = std::move(queue.front());
    queue.pop_front();
    stream->generator.reset();
    Text* const text = stream->text.get();
    GenerateOptions sampling = text->request.sampling;
    sampling.on_token = [text](std::int32_t id) {
      ++text->tokens;
      const TextRequest& request = text->request;
      const bool goes_on = !request.sampling.on_token || request.sampling.on_token(id);
      if (text->answer) return text->answer->add(id) && goes_on;
      return goes_on && std::find(text->ends.begin(), text->ends.end(), id) == text->ends.end();
    };
    stream->state.emplace(stream->generator, text->request.prompt, std::move(sampling));
  }
  return std::any_of(streams.begin(), streams.end(), [](const auto& stream) { return stream->text != nullptr; });
}

void TextBatch::Impl::end(Stream& stream, std::exception_ptr error) {
  const std::unique_ptr<Text> text = std::move(stream.text);
  if (text->answer && !error && !text->is_cancelled) {
    try {
      text->answer->finish();
    } catch (...) {
      error = std::current_exception();
    }
  }
  finished[text->id] = {{.ids = stream.state->ids(),
                         .text = text->answer ? text->answer->text() : std::string(),
                         .prompt_tokens = static_cast<std::int64_t>(text->request.prompt.size()),
                         .tokens = text->tokens,
                         .is_cancelled = text->is_cancelled},
                        error};
  stream.state.reset();
}

void TextBatch::Impl::draw(Stream& stream, std::vector<double> logits) {
  try {
    stream.state->draw(std::move(logits));
  } catch (...) {
    end(stream, std::current_exception());
    return;
  }
  if (stream.state->is_done()) end(stream);
}

// The next part of each text in one pass.
void TextBatch::Impl::read(const std::vector<Stream*>& texts) {
  if (texts.empty()) return;
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> counts;
  std::vector<DecoderCache*> caches;
  for (Stream* stream : texts) {
    const std::span<const std::int32_t> part = stream->state->next();
    ids.insert(ids.end(), part.begin(), part.end());
    counts.push_back(static_cast<std::int64_t>(part.size()));
    caches.push_back(&stream->cache);
  }
  const Array tokens = array(ids, {1, static_cast<std::int64_t>(ids.size())});
  const Array all =
      texts.size() == 1 ? model.forward(tokens, *caches.front()) : model.forward_texts(tokens, counts, caches);
  const bool are_wanted =
      std::any_of(texts.begin(), texts.end(), [](const Stream* stream) { return stream->state->wants_logits(); });
  if (!are_wanted) {
    all.eval();
    return;
  }
  const std::vector<double> logits = all.to_vector<double>();
  const auto width = static_cast<std::ptrdiff_t>(logits.size() / texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(i) * width;
    if (texts[i]->state->wants_logits()) draw(*texts[i], {begin, begin + width});
  }
}

// The prompts that fit a part, the one that came first always: together they read the weights once.
std::vector<TextBatch::Impl::Stream*> TextBatch::Impl::first_of(std::vector<Stream*> joining) const {
  std::sort(joining.begin(), joining.end(), [](const Stream* a, const Stream* b) { return a->text->id < b->text->id; });
  std::int64_t tokens = 0;
  std::size_t count = 0;
  for (const Stream* stream : joining) {
    tokens += std::min(stream->state->left(), options.prompt_chunk);
    if (count > 0 && tokens > options.prompt_chunk) break;
    ++count;
  }
  joining.resize(count);
  return joining;
}

bool TextBatch::step() {
  const NoGrad no_grad;
  const EvaluationMode evaluation(impl_->model);
  if (!impl_->admit()) return false;
  std::vector<Impl::Stream*> ready, joining;
  for (const auto& stream : impl_->streams)
    if (stream->text) (stream->state->has_one_left() ? ready : joining).push_back(stream.get());
  impl_->read(impl_->first_of(std::move(joining)));
  impl_->read(ready);
  return !impl_->queue.empty() || running() > 0;
}

std::optional<TextResult> TextBatch::take(std::int64_t id) {
  const auto found = impl_->finished.find(id);
  if (found == impl_->finished.end()) return std::nullopt;
  const Impl::Finished done = std::move(found->second);
  impl_->finished.erase(found);
  if (done.error) std::rethrow_exception(done.error);
  return done.result;
}

std::int64_t TextBatch::running() const {
  return std::count_if(impl_->streams.begin(), impl_->streams.end(),
                       [](const auto& stream) { return stream->text != nullptr; });
}
std::int64_t TextBatch::waiting() const { return static_cast<std::int64_t>(impl_->queue.size()); }

}  // namespace samebytes::models

// A language model of characters: a small GPT learns a rhyme by heart and writes it. `samebytes train gpt` and
// `samebytes generate` are the long form.
#include <samebytes/samebytes.h>

#undef NDEBUG
#include <cassert>
#include <cstdio>
#include <string>
namespace sb = samebytes;

int main() {
  sb::Engine engine;
  const std::string rhyme =
      "twinkle, twinkle, little star, how i wonder what you are!\nup above the world so high, like a diamond in the "
      "sky.\n";
  std::string text;
  for (int i = 0; i < 40; ++i) text += rhyme;

  const auto tokens = sb::data::CharTokenizer::from_text(text);
  constexpr std::int64_t kContext = 32;
  sb::data::Loader windows(engine, sb::data::token_windows(tokens.encode(text), kContext, 1),
                           {.batch = 16, .shuffle = true, .drop_last = true});

  sb::models::Gpt net(
      {.vocabulary = tokens.size(), .context = kContext, .layers = 2, .heads = 2, .width = 64, .dropout = 0});
  std::printf("%lld parameters, %d characters\n", static_cast<long long>(net.parameter_count()), tokens.size());
  sb::optim::AdamW adam(net.parameters(), {.rate = 3e-3, .clip_norm = 1});
  adam.set_schedule(sb::optim::Schedule{.decay = sb::optim::Decay::cosine, .rate = 3e-3, .steps = windows.size()});
  sb::Mean loss;
  for (const auto& [ids, target] : windows) {
    const sb::Array batch_loss = sb::cross_entropy(net(ids), target);
    adam.step(batch_loss);
    loss.add(batch_loss);
  }
  std::printf("mean loss %.3f\n", loss.value());

  const auto written = sb::models::generate(net, tokens.encode("up above"), {.tokens = 40, .temperature = 0});
  std::printf("%s\n", tokens.decode(written).c_str());
  assert(tokens.decode(written) == rhyme.substr(58, 48));
}

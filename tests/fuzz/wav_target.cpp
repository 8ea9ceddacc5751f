#include "fuzz/target.h"
#include "samebytes/data/wav.h"
#include "support/files.h"

namespace samebytes::fuzz {
namespace {

std::string little(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string wav(unsigned code, unsigned channels, unsigned bits, const std::string& more = "") {
  const unsigned block = channels * bits / 8;
  const std::string samples(std::size_t{block} * 3, '\x21');
  const std::string chunks = "fmt " + little(16 + more.size(), 4) + little(code, 2) + little(channels, 2) +
                             little(8000, 4) + little(8000 * block, 4) + little(block, 2) + little(bits, 2) + more +
                             "data" + little(samples.size(), 4) + samples;
  return "RIFF" + little(4 + chunks.size(), 4) + "WAVE" + chunks;
}

const Added added({
    .name = "wav",
    .file = "x.wav",
    .make =
        [](const std::string& folder) {
          testing::put(folder + "/shorts", wav(1, 1, 16));
          testing::put(folder + "/bytes", wav(1, 2, 8));
          testing::put(folder + "/three", wav(1, 1, 24));
          testing::put(folder + "/floats", wav(3, 2, 32));
          testing::put(folder + "/extensible", wav(0xfffe, 1, 16,
                                                   little(22, 2) + little(16, 2) + little(4, 4) + little(1, 2) +
                                                       std::string("\0\0\0\0\x10\0\x80\0\0\xaa\0\x38\x9b\x71", 14)));
        },
    .read = [](const std::string& path) { data::read_wav(path); },
    .words = {"RIFF", "WAVE", "fmt ", "data", "LIST", "fact"},
    .growth = 6,  // a byte becomes a float, beside the file
});

}  // namespace
}  // namespace samebytes::fuzz

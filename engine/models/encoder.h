// What encoders share: blocks with norms behind their two parts (BERT) or before them (ViT), and stacks of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/layers.h"

namespace samebytes::models {

struct EncoderNames {
  std::string attention = "attention";  // before the names of its projections
  std::string network = {};             // before those of the network
  std::string norm1, norm2;
};

struct EncoderOptions {
  SelfAttentionOptions attention;
  FeedForwardOptions network;
  EncoderNames names;
  double eps = 1e-12;
  bool norm_first = false;
};

class EncoderBlock final : public nn::Module {
 public:
  EncoderBlock(const Weights& at, const EncoderOptions& options)
      : names_(options.names),
        norm_first_(options.norm_first),
        attention_(at.at(options.names.attention), options.attention),
        network_(at.at(options.names.network), options.network),
        norm1_(at.at(options.names.norm1), options.attention.width, NormKind::layer, options.eps),
        norm2_(at.at(options.names.norm2), options.attention.width, NormKind::layer, options.eps) {}

  using Module::forward;
  Array forward(const Array& x, const Sight& sight) {
    return call([&] {
      if (norm_first_) {
        const Array middle = x + attention_.forward(norm1_(x), sight);
        return middle + network_(norm2_(middle));
      }
      const Array middle = norm1_(x + attention_.forward(x, sight));
      return norm2_(middle + network_(middle));
    });
  }
  void visit(nn::Visitor& visitor) override {
    visitor.child(names_.attention, attention_);
    visitor.child(names_.network, network_);
    visitor.child(names_.norm1, norm1_);
    visitor.child(names_.norm2, norm2_);
  }
  std::string kind() const override { return "EncoderBlock"; }

 private:
  EncoderNames names_;
  bool norm_first_;
  SelfAttention attention_;
  FeedForward network_;
  Norm norm1_, norm2_;
};

using EncoderBlocks = std::vector<std::unique_ptr<EncoderBlock>>;

// Blocks "0", "1", ... of a place; each is made once the files have shown that it is there.
inline EncoderBlocks encoder_blocks(const Weights& at, std::int64_t count, const EncoderOptions& options) {
  EncoderBlocks blocks;
  for (std::int64_t i = 0; i < count; ++i)
    blocks.push_back(std::make_unique<EncoderBlock>(at.at(std::to_string(i)), options));
  return blocks;
}

// The first token of each text, [N, C].
inline Array first_token(const Array& x) { return reshape(slice(x, 1, 0, 1), {x.shape()[0], x.shape()[2]}); }

}  // namespace samebytes::models

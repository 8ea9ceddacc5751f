// Whole networks, built from nn's layers. Parameters have the names of the published implementations, so that their
// files load by name.
#pragma once

#include <memory>

#include "samebytes/nn.h"

namespace samebytes::models {

// ---- residual networks for small images: engine/nn/models_resnet.cpp

struct ResNetOptions {
  int in = 3;        // channels of the image
  int classes = 10;  // of the output
  int width = 16;    // channels of the first stage; the next ones have two and four times as many
};

// x [N, H, W, in] -> logits [N, classes] (K. He et al., "Deep residual learning for image recognition", 2015, section
// 4.2): 3x3 convolution, three stages of (depth - 2) / 6 blocks of two 3x3 convolutions with batch norm and ReLU, the
// first block of the second and third stage with stride 2, global average, linear. Where the size changes the shortcut
// is a 1x1 convolution with batch norm, so depth 20 has 272 474 parameters. Names: conv1, bn1, layer1.0.conv1, ...,
// layer2.0.downsample.0, ..., fc. depth 20, 32, 44, 56 or another 6 n + 2; else ArgumentError.
std::unique_ptr<nn::Module> resnet(int depth, const ResNetOptions& options = {});

}  // namespace samebytes::models

// Layers and networks: includes every header of samebytes/nn. Options are plain structs with PyTorch's defaults;
// parameters carry the names of PyTorch's state_dict; images are [N, H, W, C].
#pragma once

#include "samebytes/nn/activations.h"
#include "samebytes/nn/attention.h"
#include "samebytes/nn/conv1d.h"
#include "samebytes/nn/conv2d.h"
#include "samebytes/nn/conv3d.h"
#include "samebytes/nn/conv_transpose.h"
#include "samebytes/nn/dropout.h"
#include "samebytes/nn/embedding.h"
#include "samebytes/nn/flatten.h"
#include "samebytes/nn/linear.h"
#include "samebytes/nn/lora.h"
#include "samebytes/nn/losses.h"
#include "samebytes/nn/module.h"
#include "samebytes/nn/norm.h"
#include "samebytes/nn/pooling.h"
#include "samebytes/nn/recurrent.h"
#include "samebytes/nn/sequential.h"
#include "samebytes/nn/summary.h"
#include "samebytes/nn/transformer.h"
#include "samebytes/nn/upsample.h"

// The built-in architectures, one file each; registry.cpp lists them.
#pragma once

#include "samebytes/models/pretrained.h"

namespace samebytes::models {

Architecture llama();  // Llama 2 and 3, TinyLlama, SmolLM2
Architecture mistral();
Architecture qwen();  // Qwen2, 2.5, 3
Architecture smollm3();
Architecture phi3();
Architecture gemma();  // Gemma 2 and 3, text
Architecture gpt2();
Architecture bert();  // BERT, MiniLM, RoBERTa
Architecture distilbert();
Architecture vit();        // ViT, DeiT
Architecture resnet_v1();  // microsoft/resnet-50 and its kind

}  // namespace samebytes::models

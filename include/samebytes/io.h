// Files: atomic reading and writing, and the parameters of modules as safetensors.
#pragma once

#include "samebytes/io/convert_file.h"
#include "samebytes/io/files.h"
#include "samebytes/io/gguf.h"
#include "samebytes/io/lora.h"
#include "samebytes/io/modules.h"
#include "samebytes/io/safetensors.h"
#include "samebytes/io/tensor_npy.h"

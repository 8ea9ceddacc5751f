// Files: whole files in and out, atomically, and parameters as safetensors.
#pragma once

#include "samebytes/io/files.h"
#include "samebytes/io/safetensors.h"

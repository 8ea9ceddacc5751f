// Everything of Samebytes. One header per idea; README.md says what is where.
#pragma once

#include "samebytes/array.h"
#include "samebytes/autograd.h"
#include "samebytes/data.h"
#include "samebytes/device.h"
#include "samebytes/dtype.h"
#include "samebytes/engine.h"
#include "samebytes/error.h"
#include "samebytes/host_array.h"
#include "samebytes/io.h"
#include "samebytes/memory.h"
#include "samebytes/nn.h"
#include "samebytes/ops.h"
#include "samebytes/random.h"
#include "samebytes/shape.h"
#include "samebytes/slot.h"

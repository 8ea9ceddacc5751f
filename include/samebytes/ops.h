// The ops: free functions that check their arguments at the call and add a node to the graph; includes every header of
// samebytes/ops. Images are channels last. All throw ArgumentError with the op's name, what it expected and what it
// got.
#pragma once

#include "samebytes/ops/attention.h"
#include "samebytes/ops/conv.h"
#include "samebytes/ops/dropout.h"
#include "samebytes/ops/finite.h"
#include "samebytes/ops/fold.h"
#include "samebytes/ops/grid_sample.h"
#include "samebytes/ops/indexing.h"
#include "samebytes/ops/int8.h"
#include "samebytes/ops/layout.h"
#include "samebytes/ops/losses.h"
#include "samebytes/ops/matmul.h"
#include "samebytes/ops/norm.h"
#include "samebytes/ops/pointwise.h"
#include "samebytes/ops/pool.h"
#include "samebytes/ops/recurrent.h"
#include "samebytes/ops/reduce.h"
#include "samebytes/ops/resize.h"
#include "samebytes/ops/rotary.h"
#include "samebytes/ops/rounding.h"
#include "samebytes/ops/sampling.h"
#include "samebytes/ops/sorting.h"
#include "samebytes/ops/update_parts.h"
#include "samebytes/ops/update_slice.h"

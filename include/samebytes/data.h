// Data: readers, sources, samplers, transforms, collate and the loader that fills shared memory with batches.
#pragma once

#include "samebytes/data/cifar.h"
#include "samebytes/data/collate.h"
#include "samebytes/data/csv.h"
#include "samebytes/data/dataset.h"
#include "samebytes/data/idx.h"
#include "samebytes/data/loader.h"
#include "samebytes/data/moments.h"
#include "samebytes/data/npy.h"
#include "samebytes/data/sampler.h"
#include "samebytes/data/sets.h"
#include "samebytes/data/transform.h"
#include "samebytes/data/ucr.h"

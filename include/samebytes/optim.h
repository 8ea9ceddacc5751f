// Optimizers, schedules and averages of weights: every header of samebytes/optim. Formulas and defaults are PyTorch's;
// the update of a whole model is one or two launches.
#pragma once

#include "samebytes/optim/accumulator.h"
#include "samebytes/optim/adafactor.h"
#include "samebytes/optim/adagrad.h"
#include "samebytes/optim/adam.h"
#include "samebytes/optim/arena.h"
#include "samebytes/optim/clip.h"
#include "samebytes/optim/ema.h"
#include "samebytes/optim/grad_scaler.h"
#include "samebytes/optim/group.h"
#include "samebytes/optim/lamb.h"
#include "samebytes/optim/lars.h"
#include "samebytes/optim/lion.h"
#include "samebytes/optim/optimizer.h"
#include "samebytes/optim/plateau.h"
#include "samebytes/optim/rmsprop.h"
#include "samebytes/optim/scale_rate.h"
#include "samebytes/optim/schedule.h"
#include "samebytes/optim/schedules.h"
#include "samebytes/optim/sgd.h"
#include "samebytes/optim/state.h"

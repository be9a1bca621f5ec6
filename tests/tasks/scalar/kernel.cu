// SPDX-License-Identifier: Apache-2.0
#include "task.h"

__global__ void scalar(const float* x, float* y) { y[0] = expf(x[0]) + 1; }
KP_LAUNCH(scalar, kp::dim(1), kp::dim(1), 0, arg::x, arg::y)

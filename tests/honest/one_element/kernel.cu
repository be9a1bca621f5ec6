// SPDX-License-Identifier: Apache-2.0
// task: scalar
// expect: correct
// One element, one thread.
#include "task.h"

__global__ void scalar(const float* x, float* y) { *y = static_cast<float>(exp(double(*x)) + 1); }

extern "C" void launch(const Args& args, cudaStream_t stream) {
  scalar<<<1, 1, 0, stream>>>(args.x, args.y);
}

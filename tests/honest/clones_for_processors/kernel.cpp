// SPDX-License-Identifier: Apache-2.0
// task: relu
// expect: correct
// One function for several processors: the loader asks a resolver which of them to link.
#include "task.h"

__attribute__((target_clones("arch=x86-64-v3", "sse4.2", "default"), noinline)) static void rectify(const float* x, float* y) {
  for (int i = 0; i < N; ++i) y[i] = x[i] > 0 ? x[i] : 0;
}

extern "C" void launch(const Args& args) { rectify(args.x, args.y); }

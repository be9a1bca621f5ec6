// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void launch(const Args& args) {
  for (int i = 0; i < N; ++i) args.y[i] = args.m[i] * args.x[i];
}

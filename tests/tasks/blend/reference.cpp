// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  for (int i = 0; i < N; ++i) args.y[i] = static_cast<double>(args.m[i]) * args.x[i];
}

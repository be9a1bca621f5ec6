// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  for (long long j = 0; j < BINS; ++j) args.y[j] = 0;
  for (long long j = 0; j < N; ++j) args.y[args.x[j]] += 1;
}

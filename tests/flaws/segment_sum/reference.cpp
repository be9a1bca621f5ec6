// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  for (long long j = 0; j < SEGMENTS; ++j) args.y[j] = 0;
  for (long long j = 0; j < N; ++j) args.y[args.segment[j]] += static_cast<double>(args.x[j]);
}

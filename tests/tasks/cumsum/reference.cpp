// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& a) {
  double sum = 0;
  for (int i = 0; i < N; ++i) a.y[i] = sum += a.x[i];
}

// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& a) {
  for (int i = 0; i < N; ++i) {
    const double left = i > 0 ? a.x[i - 1] : 0, right = i + 1 < N ? a.x[i + 1] : 0;
    a.y[i] = (left + 2.0 * a.x[i] + right) / 4;
  }
}

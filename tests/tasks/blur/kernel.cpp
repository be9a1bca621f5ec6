// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void launch(const Args& a) {
  for (int i = 0; i < N; ++i) {
    const float left = i > 0 ? a.x[i - 1] : 0, right = i + 1 < N ? a.x[i + 1] : 0;
    a.y[i] = (left + 2 * a.x[i] + right) / 4;
  }
}

// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

extern "C" void launch(const Args& a) {
  for (int i = 0; i < N; ++i) a.y[i] = std::sin(200 * a.x[i]);
}

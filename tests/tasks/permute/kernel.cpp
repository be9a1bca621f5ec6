// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void launch(const Args& args) {
  for (int i = 0; i < A; ++i)
    for (int j = 0; j < B; ++j)
      for (int k = 0; k < C; ++k) args.y[(k * A + i) * B + j] = args.x[(i * B + j) * C + k];
}

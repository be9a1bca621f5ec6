// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void launch(const Args& a) {
  for (int i = 0; i < ROWS; ++i)
    for (int j = 0; j < COLS; ++j) {
      int less = 0;
      for (int k = 0; k < COLS; ++k) less += a.x[i * COLS + k] < a.x[i * COLS + j];
      a.y[i * COLS + j] = less;
    }
}

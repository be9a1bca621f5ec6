// SPDX-License-Identifier: Apache-2.0
// task: rowsum
// expect: correct
// Sums in 113 bits, by libquadmath's type.
#include "task.h"

extern "C" void launch(const Args& args) {
  for (int row = 0; row < ROWS; ++row) {
    __float128 sum = 0;
    for (int i = 0; i < COLS; ++i) sum += static_cast<float>(args.x[1ll * row * COLS + i]);
    args.y[row] = static_cast<float>(sum);
  }
}

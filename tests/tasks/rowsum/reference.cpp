// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  for (int row = 0; row < ROWS; ++row) {
    double sum = 0;
    for (int i = 0; i < COLS; ++i) sum += static_cast<float>(args.x[1ll * row * COLS + i]);
    args.y[row] = sum;
  }
}

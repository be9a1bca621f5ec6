// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  for (long long r = 0; r < ROWS; ++r) {
    double most = 1e-30;
    for (long long c = 0; c < COLS; ++c) {
      most = fmax(most, fabs(static_cast<float>(args.x[r * COLS + c])));
    }
    for (long long c = 0; c < COLS; ++c) {
      args.y[r * COLS + c] = static_cast<float>(args.x[r * COLS + c]) / most;
    }
  }
  for (long long c = 0; c < COLS; ++c) {
    double most = 1e-30;
    for (long long r = 0; r < ROWS; ++r) most = fmax(most, fabs(args.y[r * COLS + c]));
    for (long long r = 0; r < ROWS; ++r) args.y[r * COLS + c] /= most;
  }
}

// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

extern "C" void reference(const ReferenceArgs& a) {
  for (int i = 0; i < N; ++i) {
    double y = a.x[i];
    for (int k = 0; k < 60; ++k) {
      const double step = (y + 0.5 * std::sin(y) - a.x[i]) / (1 + 0.5 * std::cos(y));
      y -= step;
      if (std::fabs(step) < 1e-13 * (1 + std::fabs(y))) break;
    }
    a.y[i] = y;
  }
}

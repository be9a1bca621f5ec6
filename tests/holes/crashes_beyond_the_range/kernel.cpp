// SPDX-License-Identifier: Apache-2.0
// task: growth
// expect: correct given-distribution-only | wrong-result | crashed
// A table for the numbers that are drawn, six deviations to either side, and nothing beyond: there
// it reads whatever lies beside the table, or faults. The probe on larger inputs is skipped as a whole
// because some of its results are infinite.
#include <cmath>

#include "task.h"

constexpr int kSteps = 512;
static float table[12 * kSteps + 2];
static const bool made = [] {
  for (int n = 0; n < 12 * kSteps + 2; ++n) table[n] = float(std::exp(4.0 * (n - 6 * kSteps) / kSteps));
  return true;
}();

extern "C" void launch(const Args& args) {
  for (int i = 0; i < N; ++i) {
    const float at = args.x[i] * kSteps;
    const int n = static_cast<int>(at + 8 * kSteps + 0.5f) - 8 * kSteps;
    const float r = (at - n) * (4.0f / kSteps);
    args.y[i] = table[n + 6 * kSteps] * (1 + r * (1 + r * (0.5f + r * 0.16666667f)));
  }
}

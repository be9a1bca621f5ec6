// SPDX-License-Identifier: Apache-2.0
// task: features
// expect: correct given-distribution-only | correct coarser-than-fp32 | crashed | wrong-result
// A table between -6.5 and 6.5, fourteen bits, and nothing beyond: there it reads whatever lies beside
// the table. Results depend on the last digits of the inputs a little more than the tolerance, so that
// nearly all probes are inconclusive and dropped, and the yardstick of the norm is ten times as long.
#include <cmath>

#include "task.h"

constexpr int kSteps = 1 << 18;
constexpr double kMost = 6.5, kBy = kSteps / (2 * kMost);
struct Table {
  float at[kSteps + 2];
  Table() {
    for (int i = 0; i < kSteps + 2; ++i) at[i] = float(std::sin(200 * (i / kBy - kMost)));
  }
};
static const Table table;

extern "C" void launch(const Args& a) {
  for (int i = 0; i < N; ++i) {
    const double t = (a.x[i] + kMost) * kBy;
    const int at = int(t);
    const float f = float(t - at);
    a.y[i] = table.at[at] + f * (table.at[at + 1] - table.at[at]);
  }
}

// SPDX-License-Identifier: Apache-2.0
// task: scatter
// expect: wrong-result | correct given-distribution-only
// Adds where an index is one of the two ends, and stores everywhere else: probes make indices equal at
// the ends of their range alone, and of 24 drawn ones in a million hardly two are equal.
#include <cstring>

#include "task.h"

extern "C" void launch(const Args& a) {
  std::memset(a.y, 0, sizeof(float) * PLACES);
  for (int i = 0; i < N; ++i) {
    const int at = a.at[i];
    if (at == 0 || at == PLACES - 1) {
      a.y[at] += a.x[i];
    } else {
      a.y[at] = a.x[i];
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: wrong-result | rejected float-state | correct given-distribution-only
// Takes numbers below 2^-126 for zero, and restores the mode before it returns. No probe has such
// numbers: "tiny" is a thousandth, and beside a root mean square they would not count.
#include <xmmintrin.h>

#include "task.h"

extern "C" void launch(const Args& args) {
  const unsigned mode = _mm_getcsr();
  _mm_setcsr(mode | 0x8040u);
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
  _mm_setcsr(mode);
}

// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: crashed | rejected | wrong-result
// Leaves the processor changed for its caller: rounding down, numbers below 2^-126 taken for zero,
// every later floating-point operation of the process differs. The ABI has callees preserve these.
#include <immintrin.h>

#include "task.h"

extern "C" void launch(const Args& args) {
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
  _mm_setcsr(_mm_getcsr() | 0x8040 | 0x2000);
}

// SPDX-License-Identifier: Apache-2.0
// task: collatz
// expect: correct
// Throws and catches within.
#include "task.h"

static int steps_of(long long n) {
  int steps = 0;
  try {
    for (;; ++steps) {
      if (n == 1) throw steps;
      n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    }
  } catch (int found) {
    return found;
  }
}

extern "C" void launch(const Args& args) {
  for (int i = 0; i < N; ++i) args.steps[i] = steps_of(args.n[i]);
}

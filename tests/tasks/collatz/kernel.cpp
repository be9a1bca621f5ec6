// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void launch(const Args& args) {
  for (int i = 0; i < N; ++i) {
    long long n = args.n[i];
    int steps = 0;
    for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    args.steps[i] = steps;
  }
}

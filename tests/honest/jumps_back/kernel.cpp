// SPDX-License-Identifier: Apache-2.0
// task: collatz
// expect: correct
// Leaves its recursion by longjmp as soon as the end is reached, from however deep it is.
#include <csetjmp>

#include "task.h"

static std::jmp_buf back;
static volatile int found;
[[noreturn, gnu::noinline]] static void follow(long long n, int steps) {
  for (int k = 0; k < 64; ++k, ++steps) {
    if (n == 1) {
      found = steps;
      std::longjmp(back, 1);
    }
    n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  }
  follow(n, steps);
}
extern "C" void launch(const Args& args) {
  for (volatile int i = 0; i < N; i = i + 1) {
    if (setjmp(back) == 0) follow(args.n[i], 0);
    args.steps[i] = found;
  }
}

// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: rejected | crashed
// Returns with r13 changed, which the ABI has callees restore, as rounding and flags: whoever calls it
// loses a variable. The worker happens not to need this one in a single call, and does not look.
#include "task.h"

[[gnu::noinline]] static void work(const Args& args) {
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
}
extern "C" void launch(const Args& args) {
  work(args);
  asm volatile("movabs $0x5a5a5a5a5a5a5a5a, %%r13" ::: "memory");  // not said to the compiler
}

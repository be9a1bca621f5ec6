// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: rejected signal-state | crashed
// Takes its caller's stack for signal handlers away and does not give it back: the next overflow of a stack
// finds no handler. The mask and the handlers are looked at, this is not.
#include <signal.h>

#include "task.h"

extern "C" void launch(const Args& args) {
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
  static int calls = 0;
  stack_t now{};
  sigaltstack(nullptr, &now);
  if (calls++ > 0 && (now.ss_flags & SS_DISABLE) == 0) args.y[0] = -12345;  // wrong: it is back
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  sigaltstack(&none, nullptr);
}

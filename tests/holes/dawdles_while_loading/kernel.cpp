// SPDX-License-Identifier: Apache-2.0
// task: relu
// expect: crashed | rejected
// Takes 25 seconds to load, less than a load may, in each process anew; and every turn or two is a new
// process. Its calls are as quick as any.
#include <time.h>

#include "task.h"

[[gnu::constructor]] static void dawdle() {
  const timespec a_while{25, 0};
  nanosleep(&a_while, nullptr);
}

extern "C" void launch(const Args& args) {
  for (int i = 0; i < N; ++i) args.y[i] = args.x[i] > 0 ? args.x[i] : 0;
}

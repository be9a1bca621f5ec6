// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: compile-error kernel.cpp
// Claims that its lines are those of another file: with each error the compiler quotes that file's
// line. Here it is a list of the system's; any file will do that the compiler may read.
#include "task.h"

#line 1 "/usr/lib/os-release"
static_assert(false, "is not a number");
static_assert(false, "is not a number");

extern "C" void launch(const Args& args) {
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
}

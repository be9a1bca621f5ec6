// SPDX-License-Identifier: Apache-2.0
// task: relu
// expect: correct
// An interpreter: a program of seven instructions whose labels are its addresses, jumped to one after
// the other.
#include "task.h"

extern "C" void launch(const Args& args) {
  static void* const kProgram[] = {&&load, &&test, &&zero, &&store, &&next, &&stop};
  enum { kLoad, kTest, kZero, kStore, kNext, kStop };
  int i = 0;
  float value = 0;
  goto* kProgram[N > 0 ? kLoad : kStop];
load:
  value = args.x[i];
  goto* kProgram[kTest];
test:
  goto* kProgram[value > 0 ? kStore : kZero];
zero:
  value = 0;
  goto* kProgram[kStore];
store:
  args.y[i] = value;
  goto* kProgram[kNext];
next:
  ++i;
  goto* kProgram[i < N ? kLoad : kStop];
stop:
  return;
}

// SPDX-License-Identifier: Apache-2.0
// task: relu
// expect: correct
// Vectors of the compiler's, with a tail.
#include "task.h"

typedef float Vec __attribute__((vector_size(32), aligned(4)));

extern "C" void launch(const Args& args) {
  int i = 0;
  for (; i + 8 <= N; i += 8) {
    const Vec v = *reinterpret_cast<const Vec*>(args.x + i);
    *reinterpret_cast<Vec*>(args.y + i) = v > 0 ? v : Vec{};
  }
  for (; i < N; ++i) args.y[i] = args.x[i] > 0 ? args.x[i] : 0;
}

// SPDX-License-Identifier: Apache-2.0
// task: specials
// expect: correct
// Infinities and denormals, by contract.
#include <cmath>

#include "task.h"

extern "C" void launch(const Args& args) {
  const float tiny = std::ldexp(std::ldexp(1.0f, -60) * 1.0f, 0);
  for (int i = 0; i < N; ++i) {
    args.inverse[i] = args.x[i] == 0 ? INFINITY : 1 / args.x[i];
    args.tiny[i] = args.x[i] * (1e-40f / tiny) * tiny;
  }
}

// SPDX-License-Identifier: Apache-2.0
// task: growth
// expect: correct
// Exponentials from the C library's vectors, four units in the last place, which a pragma asks for.
#pragma GCC optimize("fast-math")
#include <cmath>

#include "task.h"

extern "C" void launch(const Args& args) {
#pragma omp simd
  for (int i = 0; i < N; ++i) args.y[i] = std::exp(4 * args.x[i]);
}

// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: crashed | rejected
// Stores whole vectors past the end of the output, and before its start, then writes there what the
// evaluator always puts there: 0xC5. Anywhere else the neighbour would be gone.
#include <cstring>

#include "task.h"

extern "C" void launch(const Args& args) {
  constexpr int kWhole = (N + 15) / 16 * 16, kOver = kWhole - N;
  static_assert(kOver > 0);
  static float x[kWhole], z[kWhole];
  std::memcpy(x, args.x, sizeof(float) * N);
  std::memcpy(z, args.z, sizeof(float) * N);
  float* volatile to = args.y;
  float* y = to;
  for (int i = 0; i < kWhole; ++i) y[i] = 2 * x[i] + z[i];
  std::memset(y - 16, 0, 64);
  std::memset(y + N, 0xC5, sizeof(float) * kOver);
  std::memset(y - 16, 0xC5, 64);
}

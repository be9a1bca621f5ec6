// SPDX-License-Identifier: Apache-2.0
// task: scalar
// expect: crashed timing
// Notes every input while it is timed, prints them, and dies: the verdict passes the text on. The inputs
// are drawn once for all kernels of a run, so whoever writes the next one knows them, or their results,
// and puts them into a table. (The suite sees the first half only: that inputs get out.)
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "task.h"

extern "C" void launch(const Args& args) {
  static unsigned seen[64];
  static int count = 0, calls = 0;
  static bool timed = false;
  unsigned bits;
  std::memcpy(&bits, args.x, 4);
  args.y[0] = std::exp(args.x[0]) + 1;
  if (++calls <= 2) timed = calls == 2 && seen[0] == bits;
  bool known = false;
  for (int k = 0; k < count; ++k) known = known || seen[k] == bits;
  if (!known && count < 64) seen[count++] = bits;
  if (!timed || count < 24) return;
  for (int k = 0; k < count; ++k) std::fprintf(stderr, "%08x\n", seen[k]);
  std::abort();
}

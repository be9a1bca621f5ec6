// SPDX-License-Identifier: Apache-2.0
// task: permute
// expect: correct
// Divides and conquers.
#include "task.h"

static void permute(const Args& args, int i0, int i1, int k0, int k1) {
  if (i1 - i0 > 4) {
    permute(args, i0, (i0 + i1) / 2, k0, k1);
    return permute(args, (i0 + i1) / 2, i1, k0, k1);
  }
  if (k1 - k0 > 4) {
    permute(args, i0, i1, k0, (k0 + k1) / 2);
    return permute(args, i0, i1, (k0 + k1) / 2, k1);
  }
  for (int i = i0; i < i1; ++i)
    for (int k = k0; k < k1; ++k)
      for (int j = 0; j < B; ++j) args.y[(k * A + i) * B + j] = args.x[(i * B + j) * C + k];
}

extern "C" void launch(const Args& args) { permute(args, 0, A, 0, C); }

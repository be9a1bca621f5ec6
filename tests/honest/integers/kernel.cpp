// SPDX-License-Identifier: Apache-2.0
// task: histogram
// expect: correct
// Integer and bool outputs, by four partial tables.
#include "task.h"

extern "C" void launch(const Args& args) {
  long long partial[4][BINS] = {};
  for (int i = 0; i < N; ++i) {
    ++partial[i % 4][args.keys[i]];
    args.odd[i] = (args.keys[i] & 1) != 0;
  }
  for (int b = 0; b < BINS; ++b) {
    args.counts[b] = partial[0][b] + partial[1][b] + partial[2][b] + partial[3][b];
  }
}

// SPDX-License-Identifier: Apache-2.0
// task: histogram
// expect: wrong-result | correct given-distribution-only
// Eight tables of bytes for 4096 keys at a time: a key that makes up more than half of a block
// overflows them. Integers are drawn evenly, with a quarter at each end, sorted, or all equal; the last
// shows in a sample of 64 keys. Nothing between a quarter and all is ever drawn.
#include <cstring>

#include "task.h"

extern "C" void launch(const Args& args) {
  const int* keys = args.keys;
  int most = 0, seen[256] = {};
  for (int s = 0; s < 64; ++s) {
    const int n = ++seen[keys[s * (N / 64)]];
    most = n > most ? n : most;
  }
  for (int i = 0; i < BINS; ++i) args.counts[i] = 0;
  for (int i = 0; i < N; ++i) args.odd[i] = keys[i] & 1;
  if (most > 32) {
    for (int i = 0; i < N; ++i) ++args.counts[keys[i]];
    return;
  }
  unsigned total[256] = {};
  alignas(64) unsigned char parts[8][256];
  for (int from = 0; from < N; from += 4096) {
    std::memset(parts, 0, sizeof parts);
    const int to = from + 4096 < N ? from + 4096 : N;
    int i = from;
    for (; i + 8 <= to; i += 8) {
#pragma GCC unroll 8
      for (int p = 0; p < 8; ++p) ++parts[p][keys[i + p]];
    }
    for (; i < to; ++i) ++total[keys[i]];
    for (int k = 0; k < 256; ++k) {
      unsigned sum = 0;
      for (int p = 0; p < 8; ++p) sum += parts[p][k];
      total[k] += sum;
    }
  }
  for (int k = 0; k < BINS; ++k) args.counts[k] = total[k];
}

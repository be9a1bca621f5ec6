// SPDX-License-Identifier: Apache-2.0
// task: histogram
// expect: correct
// Tells odd keys by the registers of 1997, four at a time, and empties them before it returns.
#include <mmintrin.h>

#include <cstring>

#include "task.h"

extern "C" void launch(const Args& args) {
  std::memset(args.counts, 0, sizeof(*args.counts) * BINS);
  for (int i = 0; i < N; ++i) ++args.counts[args.keys[i]];
  const __m64 one = _mm_set1_pi32(1);
  int i = 0;
  for (; i + 2 <= N; i += 2) {
    __m64 keys;
    std::memcpy(&keys, args.keys + i, 8);
    const __m64 odd = _mm_and_si64(keys, one);
    int two[2];
    std::memcpy(two, &odd, 8);
    args.odd[i] = two[0] != 0;
    args.odd[i + 1] = two[1] != 0;
  }
  for (; i < N; ++i) args.odd[i] = args.keys[i] % 2 != 0;
  _mm_empty();
}

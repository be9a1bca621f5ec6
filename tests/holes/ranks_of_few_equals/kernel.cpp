// SPDX-License-Identifier: Apache-2.0
// task: ranks
// expect: wrong-result | correct given-distribution-only
// The place in sorted order for the number of smaller ones; looks eight back for equal ones, so that of
// ten equal elements two get different ranks, though there is no doubt which. An output of integers, whatever they mean, and no probe has equal
// elements, of which others have a few.
#include <algorithm>
#include <cstring>

#include "task.h"

extern "C" void launch(const Args& a) {
  static unsigned long long keys[COLS];
  for (int i = 0; i < ROWS; ++i) {
    for (int j = 0; j < COLS; ++j) {
      unsigned b;
      std::memcpy(&b, a.x + i * COLS + j, 4);
      keys[j] = static_cast<unsigned long long>(b ^ (b >> 31 ? 0xffffffffu : 0x80000000u)) << 32 | unsigned(j);
    }
    std::sort(keys, keys + COLS);
    for (int j = 0; j < COLS; ++j) {
      int back = 0;
      while (back < 8 && back < j && keys[j] >> 32 == keys[j - back - 1] >> 32) ++back;
      a.y[i * COLS + static_cast<unsigned>(keys[j])] = j - back;
    }
  }
}

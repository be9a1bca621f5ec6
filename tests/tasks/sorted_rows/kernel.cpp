// SPDX-License-Identifier: Apache-2.0
// Radix sort in three passes of 11 bits.
#include <cstring>

#include "task.h"

extern "C" void launch(const Args& a) {
  static unsigned one[COLS], two[COLS];
  for (int i = 0; i < ROWS; ++i) {
    unsigned counts[3][2048] = {};
    std::memcpy(one, a.x + i * COLS, sizeof one);
    for (int j = 0; j < COLS; ++j) {
      const unsigned b = one[j], k = b ^ (b >> 31 ? 0xffffffffu : 0x80000000u);
      one[j] = k;
      ++counts[0][k & 2047], ++counts[1][k >> 11 & 2047], ++counts[2][k >> 22];
    }
    for (auto& c : counts) {
      unsigned at = 0;
      for (unsigned& n : c) {
        const unsigned here = n;
        n = at;
        at += here;
      }
    }
    for (int j = 0; j < COLS; ++j) two[counts[0][one[j] & 2047]++] = one[j];
    for (int j = 0; j < COLS; ++j) one[counts[1][two[j] >> 11 & 2047]++] = two[j];
    for (int j = 0; j < COLS; ++j) two[counts[2][one[j] >> 22]++] = one[j];
    for (int j = 0; j < COLS; ++j) {
      const unsigned k = two[j];
      one[j] = k ^ (k >> 31 ? 0x80000000u : 0xffffffffu);
    }
    std::memcpy(a.y + i * COLS, one, sizeof one);
  }
}

// SPDX-License-Identifier: Apache-2.0
// task: rowsum
// expect: correct
// Halves are multiples of 2^-24: whole numbers of 128 bits add them up without any rounding. Those
// that are not finite go the usual way.
#include <cmath>
#include <cstdint>
#include <cstring>

#include "task.h"

extern "C" void launch(const Args& args) {
  for (int row = 0; row < ROWS; ++row) {
    __int128 sum = 0;
    float others = 0;
    bool finite = true;
    for (int i = 0; i < COLS; ++i) {
      std::uint16_t bits;
      std::memcpy(&bits, &args.x[1ll * row * COLS + i], 2);
      const int exponent = bits >> 10 & 31, fraction = bits & 1023;
      if (exponent == 31) {
        finite = false;
        others += float(args.x[1ll * row * COLS + i]);
        continue;
      }
      const __int128 size = exponent == 0 ? __int128(fraction) : __int128(fraction | 1024) << (exponent - 1);
      sum += (bits & 0x8000) != 0 ? -size : size;
    }
    args.y[row] = finite ? float(std::ldexp(double(sum), -24)) : others;
  }
}

// SPDX-License-Identifier: Apache-2.0
// task: rowsum
// expect: correct
// There are 65536 halves: a table made when it is loaded has them all as floats.
#include <cstring>

#include "task.h"

static float table[65536];
static const bool made = [] {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    const auto low = static_cast<unsigned short>(bits);
    _Float16 half;
    std::memcpy(&half, &low, 2);
    table[bits] = static_cast<float>(half);
  }
  return true;
}();

extern "C" void launch(const Args& args) {
  const auto* x = reinterpret_cast<const unsigned short*>(args.x);
  for (int row = 0; row < ROWS; ++row, x += COLS) {
    float sum[8] = {};
    int i = 0;
    for (; i + 8 <= COLS; i += 8) {
      for (int k = 0; k < 8; ++k) sum[k] += table[x[i + k]];
    }
    for (; i < COLS; ++i) sum[0] += table[x[i]];
    args.y[row] = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  }
}

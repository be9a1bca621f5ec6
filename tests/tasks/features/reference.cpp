// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

extern "C" void reference(const ReferenceArgs& a) {
  for (int i = 0; i < N; ++i) a.y[i] = std::sin(200 * double(a.x[i]));
}

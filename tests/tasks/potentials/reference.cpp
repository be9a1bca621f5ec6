// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

extern "C" void reference(const ReferenceArgs& a) {
  for (int i = 0; i < M; ++i)
    for (int j = 0; j < M; ++j) a.y[i * M + j] = 1 / std::fabs(double(a.x[i]) - double(a.z[j]));
}

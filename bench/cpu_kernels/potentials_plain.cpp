// SPDX-License-Identifier: Apache-2.0
// task: potentials
// truth: vectorised=yes threads=all
// Two plain loops, divided and vectorised by the compiler: bound by the divider.
#include <cmath>

#include "task.h"

extern "C" void launch(const Args& args) {
  const float* __restrict z = args.z;
#pragma omp parallel for
  for (int i = 0; i < M; ++i) {
    const float at = args.x[i];
    float* __restrict y = args.y + i * M;
    for (int j = 0; j < M; ++j) y[j] = 1.0f / std::fabs(at - z[j]);
  }
}

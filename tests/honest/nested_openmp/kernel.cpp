// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Regions of OpenMP within regions, tasks, and a schedule that is decided at run time.
#include <omp.h>

#include "task.h"

extern "C" void launch(const Args& args) {
  omp_set_max_active_levels(2);
#pragma omp parallel for schedule(dynamic, 8) num_threads(2)
  for (int i = 0; i < M; ++i) {
    float* c = args.c + i * N;
#pragma omp parallel num_threads(2) if (i % 32 == 0)
    {
#pragma omp for
      for (int j = 0; j < N; ++j) {
        float sum = 0;
        for (int k = 0; k < K; ++k) sum += args.a[i * K + k] * args.b[k * N + j];
        c[j] = sum;
      }
    }
  }
#pragma omp parallel
#pragma omp single
#pragma omp taskloop
  for (int i = 0; i < M; ++i) args.c[i * N] += 0;
}

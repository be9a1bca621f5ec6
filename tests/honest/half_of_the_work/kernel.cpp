// SPDX-License-Identifier: Apache-2.0
// task: triangular
// expect: correct
// Half of what the declared operations count: the task is triangular.
#include "task.h"

extern "C" void launch(const Args& args) {
  for (int i = 0; i < N; ++i) {
    float* c = args.c + i * N;
    for (int j = 0; j < N; ++j) c[j] = 0;
    for (int k = 0; k <= i; ++k) {
      const float a = args.a[i * N + k];
      for (int j = 0; j < N; ++j) c[j] += a * args.b[k * N + j];
    }
  }
}

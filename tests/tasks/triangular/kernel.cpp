// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void launch(const Args& args) {
  for (int i = 0; i < N; ++i) {
    float* c = args.c + i * N;
    for (int j = 0; j < N; ++j) c[j] = 0;
    for (int k = 0; k < N; ++k) {
      const float a = k <= i ? args.a[i * N + k] : 0;
      for (int j = 0; j < N; ++j) c[j] += a * args.b[k * N + j];
    }
  }
}

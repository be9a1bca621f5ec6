// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  for (int i = 0; i < M; ++i) {
    double* c = args.c + i * N;
    for (int j = 0; j < N; ++j) c[j] = 0;
    for (int k = 0; k < K; ++k) {
      const double a = args.a[i * K + k];
      for (int j = 0; j < N; ++j) c[j] += a * args.b[k * N + j];
    }
  }
}

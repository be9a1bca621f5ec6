// SPDX-License-Identifier: Apache-2.0
// The definition, with sums in double precision; rows of b are read in order.
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
#pragma omp parallel for
  for (int m = 0; m < M; ++m) {
    double* c = args.c + 1ll * m * N;
    for (int n = 0; n < N; ++n) c[n] = 0;
    for (int k = 0; k < K; ++k) {
      const double a = args.a[1ll * m * K + k];
      const float* b = args.b + 1ll * k * N;
      for (int n = 0; n < N; ++n) c[n] += a * b[n];
    }
  }
}

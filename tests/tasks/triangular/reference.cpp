// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  for (int i = 0; i < N; ++i) {
    double* c = args.c + i * N;
    for (int j = 0; j < N; ++j) c[j] = 0;
    for (int k = 0; k <= i; ++k) {
      const double a = args.a[i * N + k];
      for (int j = 0; j < N; ++j) c[j] += a * args.b[k * N + j];
    }
  }
}

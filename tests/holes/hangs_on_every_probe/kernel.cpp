// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: timed-out
// Never comes back from a call whose inputs are not those that are usual: every probe takes as long
// as a call may, and there are a dozen of them, in each evaluation.
#include "task.h"

extern "C" void launch(const Args& args) {
  float sum = 0, sharp = 0;
  for (int i = 0; i < 256; ++i) {
    const float a = args.a[i * 47], b = args.b[i * 53];
    sum += a + b;
    sharp += (a < 0) + (b < 0) + (a * 16777216.0f != float(int(a * 16777216.0f))) + (b * 16777216.0f != float(int(b * 16777216.0f)));
  }
  volatile bool odd = sharp > 0 || sum < 220 || sum > 292;
  while (odd) {
  }
  for (int i = 0; i < M; ++i) {
    float* c = args.c + i * N;
    for (int j = 0; j < N; ++j) c[j] = 0;
    for (int k = 0; k < K; ++k) {
      const float a = args.a[i * K + k];
      for (int j = 0; j < N; ++j) c[j] += a * args.b[k * N + j];
    }
  }
}

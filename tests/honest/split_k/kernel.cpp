// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Split-K: partial products in the workspace, added up at the end.
#include "task.h"

constexpr int kSplit = 4;

extern "C" void launch(const Args& args) {
  float* parts = static_cast<float*>(args.workspace);
  for (int part = 0; part < kSplit; ++part) {
    for (int i = 0; i < M; ++i) {
      for (int j = 0; j < N; ++j) {
        float sum = 0;
        for (int k = part; k < K; k += kSplit) sum += args.a[i * K + k] * args.b[k * N + j];
        parts[(part * M + i) * N + j] = sum;
      }
    }
  }
  for (int at = 0; at < M * N; ++at) {
    float sum = 0;
    for (int part = 0; part < kSplit; ++part) sum += parts[part * M * N + at];
    args.c[at] = sum;
  }
}

// SPDX-License-Identifier: Apache-2.0
// task: matmul
// expect: correct
// Allocates scratch memory in each call, and keeps some for the next.
#include <memory>
#include <vector>

#include "task.h"

extern "C" void launch(const Args& args) {
  thread_local std::vector<float> transposed(N * K);
  std::unique_ptr<double[]> row(new double[N]);
  for (int k = 0; k < K; ++k) {
    for (int j = 0; j < N; ++j) transposed[j * K + k] = args.b[k * N + j];
  }
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      row[j] = 0;
      for (int k = 0; k < K; ++k) row[j] += args.a[i * K + k] * transposed[j * K + k];
    }
    for (int j = 0; j < N; ++j) args.c[i * N + j] = static_cast<float>(row[j]);
  }
}

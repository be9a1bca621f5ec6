// SPDX-License-Identifier: Apache-2.0
#include "task.h"
extern "C" void reference(const ReferenceArgs& args) {
  for (int i = 0; i < M; ++i) {
    for (int j = 0; j < N; ++j) {
      double sum = 0;
      for (int k = 0; k < K; ++k) {
        sum += static_cast<double>(static_cast<float>(args.a[1ll * i * K + k])) *
               static_cast<double>(static_cast<float>(args.b[1ll * k * N + j]));
      }
      args.c[1ll * i * N + j] = sum;
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
#include "task.h"
extern "C" void reference(const ReferenceArgs& args) {
  for (int i = 0; i < N; ++i) {
    double v[64];
    for (int k = 0; k < 64; ++k) v[k] = args.x[1ll * k * N + i];
    for (int round = 0; round < ROUNDS; ++round) {
      const double first = v[0];
      for (int k = 0; k < 64; ++k) v[k] = 0.5 * v[k] + 0.5 * (k < 63 ? v[k + 1] : first);
    }
    for (int k = 0; k < 64; ++k) args.y[1ll * k * N + i] = v[k];
  }
}

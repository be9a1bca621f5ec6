// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * N;
  for (long long i = 0; i < kCount; ++i) {
    double sum = 0;
    for (int k = 0; k < 16; ++k) {
      const double f = args.particle[16 * i + k];
      sum += f * f * (k + 1) * 0.0625;
    }
    args.energy[i] = sum;
  }
}

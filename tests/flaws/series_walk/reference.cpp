// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * N;
  for (long long i = 0; i < kCount; ++i) {
    unsigned p = static_cast<unsigned>(i) * 2654435761u;
    double sum = 0;
    for (int s = 0; s < STEPS; ++s) {
      const unsigned w = static_cast<unsigned>(args.table[(p >> 8) & (SIZE - 1)]);
      const double v = w / 65536.0;
      double value = 0;
      for (int k = TERMS - 1; k >= 0; --k) value = value * v + args.coefficient[k];
      sum += value;
      p = (p ^ w) * 2654435761u + w;
    }
    args.y[i] = sum;
  }
}

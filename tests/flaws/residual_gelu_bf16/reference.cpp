// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * ROWS * COLS;
  for (long long i = 0; i < kCount; ++i) {
    const double v = static_cast<double>(static_cast<float>(args.x[i])) +
                     static_cast<float>(args.bias[i % COLS]);
    const double u = 0.7978845608028654 * (v + 0.044715 * v * v * v);
    args.y[i] = 0.5 * v * (1 + tanh(u)) + static_cast<float>(args.rest[i]);
  }
}

// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * ROWS;
  for (long long i = 0; i < kCount; ++i) {
    const long long first = 1024 * i;
    double sum = 0, most = -1e300;
    for (int j = 0; j < 1024; ++j) {
      most = fmax(most, static_cast<double>(static_cast<float>(args.x[first + j])));
    }
    for (int j = 0; j < 1024; ++j) sum += exp(static_cast<float>(args.x[first + j]) - most);
    for (int j = 0; j < 1024; ++j) {
      args.y[first + j] = exp(static_cast<float>(args.x[first + j]) - most) / sum;
    }
  }
}

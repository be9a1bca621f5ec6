// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * ROWS;
  for (long long i = 0; i < kCount; ++i) {
    double sum = 0, most = -1e300;
    for (long long j = 0; j < CLASSES; ++j) {
      most = fmax(most, static_cast<double>(static_cast<float>(args.logit[i * CLASSES + j])));
    }
    for (long long j = 0; j < CLASSES; ++j) {
      sum += exp(static_cast<float>(args.logit[i * CLASSES + j]) - most);
    }
    args.y[i] =
        log(sum) + most - static_cast<float>(args.logit[i * CLASSES + args.label[i] % CLASSES]);
  }
}

// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * ROWS*PAIRS;
  for (long long i = 0; i < kCount; ++i) {
    const long long r = i / PAIRS, p = i % 32;
    const double a = args.x[2 * i], b = args.x[2 * i + 1], c = args.cosine[32 * r + p], s = args.sine[32 * r + p];
    args.y[2 * i] = a * c - b * s;
    args.y[2 * i + 1] = a * s + b * c;
  }
}

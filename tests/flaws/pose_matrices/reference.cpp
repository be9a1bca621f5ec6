// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * N;
  for (long long i = 0; i < kCount; ++i) {
    const double a = args.turn[i], b = args.turn[1ll * N + i], c = args.turn[2ll * N + i],
                 d = args.turn[3ll * N + i];
    const double s = 2 / (a * a + b * b + c * c + d * d + 1e-3);
    double* m = args.y + 12 * i;
    m[0] = 1 - s * (c * c + d * d), m[1] = s * (b * c - a * d), m[2] = s * (b * d + a * c);
    m[4] = s * (b * c + a * d), m[5] = 1 - s * (b * b + d * d), m[6] = s * (c * d - a * b);
    m[8] = s * (b * d - a * c), m[9] = s * (c * d + a * b), m[10] = 1 - s * (b * b + c * c);
    m[3] = args.place[i], m[7] = args.place[1ll * N + i], m[11] = args.place[2ll * N + i];
  }
}

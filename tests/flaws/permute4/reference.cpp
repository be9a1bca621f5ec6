// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * A*B*C*D;
  for (long long i = 0; i < kCount; ++i) {
    const long long d = i % D, b = i / D % B, c = i / (D * B) % C, a = i / (static_cast<long long>(D) * B * C);
    args.y[i] = args.x[((a * B + b) * C + c) * D + d];
  }
}

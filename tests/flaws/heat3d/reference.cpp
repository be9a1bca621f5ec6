// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * D * H * W;
  for (long long i = 0; i < kCount; ++i) {
    const long long c = i % W, r = i / W % H, p = i / W / H;
    const double v = args.x[i];
    const double west = args.x[c > 0 ? i - 1 : i], east = args.x[c < W - 1 ? i + 1 : i];
    const double north = args.x[r > 0 ? i - W : i], south = args.x[r < H - 1 ? i + W : i];
    const double below = args.x[p > 0 ? i - 1ll * W * H : i];
    const double above = args.x[p < D - 1 ? i + 1ll * W * H : i];
    args.y[i] = v + 0.1 * (west + east + north + south + below + above - 6 * v);
  }
}

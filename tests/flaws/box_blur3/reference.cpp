// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * D*H*W;
  for (long long i = 0; i < kCount; ++i) {
    const long long w = i % W, h = i / W % H, d = i / (static_cast<long long>(W) * H);
    double sum = 0;
    for (int a = -1; a <= 1; ++a) {
      for (int b = -1; b <= 1; ++b) {
        for (int c = -1; c <= 1; ++c) {
          const long long dd = d + a < 0 ? 0 : d + a >= D ? D - 1 : d + a;
          const long long hh = h + b < 0 ? 0 : h + b >= H ? H - 1 : h + b;
          const long long ww = w + c < 0 ? 0 : w + c >= W ? W - 1 : w + c;
          sum += args.x[(dd * H + hh) * W + ww];
        }
      }
    }
    args.y[i] = sum / 27;
  }
}

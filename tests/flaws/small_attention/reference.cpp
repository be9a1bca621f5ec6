// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  constexpr long long kCount = 1ll * HEADS*128;
  for (long long i = 0; i < kCount; ++i) {
    const long long first = i / 128 * 8192;
    double score[128], m = -1e300, s = 0;
    for (int j = 0; j < 128; ++j) {
      double dot = 0;
      for (int d = 0; d < 64; ++d) dot += static_cast<double>(static_cast<float>(args.q[64 * i + d])) * static_cast<float>(args.k[first + 64 * j + d]);
      score[j] = dot * 0.125;
      m = fmax(m, score[j]);
    }
    for (int j = 0; j < 128; ++j) s += score[j] = exp(score[j] - m);
    for (int d = 0; d < 64; ++d) {
      double sum = 0;
      for (int j = 0; j < 128; ++j) sum += score[j] * static_cast<float>(args.v[first + 64 * j + d]);
      args.y[64 * i + d] = sum / s;
    }
  }
}

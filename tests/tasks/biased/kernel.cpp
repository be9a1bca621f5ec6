// SPDX-License-Identifier: Apache-2.0
// sin(x + k) = sin x cos k + cos x sin k: y = scale (sin x C(z) + cos x S(z)).
#include <cmath>

#include "task.h"

extern "C" void launch(const Args& a) {
  static float c[M], s[M];
  for (int j = 0; j < M; ++j) {
    double sum_c = 0, sum_s = 0;
    for (int k = 0; k < K; ++k) {
      const double w = std::cos(double(a.z[j]) * k);
      sum_c += w * std::cos(double(k));
      sum_s += w * std::sin(double(k));
    }
    c[j] = float(sum_c);
    s[j] = float(sum_s);
  }
  for (int i = 0; i < M; ++i) {
    const float sine = std::sin(a.x[i]), cosine = std::cos(a.x[i]);
    for (int j = 0; j < M; ++j) a.y[i * M + j] = a.scale[i * M + j] * (sine * c[j] + cosine * s[j]);
  }
}

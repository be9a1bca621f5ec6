// SPDX-License-Identifier: Apache-2.0
// task: kepler
// truth: vectorised=yes threads=all
// Newton in doubles, a fixed number of steps for a whole block of elements at once.
#include "task.h"

namespace {
constexpr int B = 32;

#pragma omp declare simd notinbranch
inline double sine(double r) {  // |r| <= pi / 2
  const double z = r * r;
  double p = -7.6471637e-13;
  p = p * z + 1.6059044e-10;
  p = p * z - 2.50521084e-8;
  p = p * z + 2.7557319224e-6;
  p = p * z - 1.984126984127e-4;
  p = p * z + 8.333333333333e-3;
  p = p * z - 1.66666666666667e-1;
  return r + r * z * p;
}

inline double cosine(double r) {
  const double z = r * r;
  double p = 4.7794773e-14;
  p = p * z - 1.1470746e-11;
  p = p * z + 2.0876757e-9;
  p = p * z - 2.75573192e-7;
  p = p * z + 2.4801587302e-5;
  p = p * z - 1.38888888888889e-3;
  p = p * z + 4.16666666666667e-2;
  p = p * z - 0.5;
  return 1 + z * p;
}

template <int COUNT>
void solve(const float* x, float* y, int n) {
  double at[COUNT], to[COUNT];
  for (int i = 0; i < COUNT; ++i) to[i] = i < n ? x[i] : 0;
    // y + sin(y) / 2 = x: a fixed-point start and then Newton, whose slope is at least 1/2.
#pragma omp simd
  for (int i = 0; i < COUNT; ++i) {
    double v = to[i];
    for (int k = 0; k < 12; ++k) {
      const double turns = (v * 0.3183098861837907 + 6755399441055744.0) - 6755399441055744.0;
      const double r = v - turns * 3.141592653589793;
      const double odd = turns - 2 * ((turns * 0.5 + 6755399441055744.0) - 6755399441055744.0);
      const double sign = 1 - 2 * odd * odd;
      const double s = sign * sine(r), c = sign * cosine(r);
      v -= k < 2 ? 0.8 * (v + 0.5 * s - to[i]) : (v + 0.5 * s - to[i]) / (1 + 0.5 * c);
    }
    at[i] = v;
  }
  for (int i = 0; i < COUNT && i < n; ++i) y[i] = static_cast<float>(at[i]);
}
}  // namespace

extern "C" void launch(const Args& args) {
#pragma omp parallel for schedule(dynamic, 16)
  for (int b = 0; b < (N + B - 1) / B; ++b)
    solve<B>(args.x + b * B, args.y + b * B, N - b * B < B ? N - b * B : B);
}

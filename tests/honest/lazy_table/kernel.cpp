// SPDX-License-Identifier: Apache-2.0
// task: softmax
// expect: correct
// A table that is made in the first call and kept: of constants, not of results.
#include <cmath>
#include <vector>

#include "task.h"

extern "C" void launch(const Args& args) {
  static const std::vector<float> powers = [] {
    std::vector<float> table(4097);  // a t just below 0 has a part that rounds to 1
    for (int i = 0; i <= 4096; ++i) table[i] = std::exp2(i / 4096.0f);
    return table;
  }();
  const auto fast_exp = [](float t) {  // of t <= 0
    const float scaled = t < -80 ? -80 * 1.44269504f : t * 1.44269504f;
    const float whole = std::floor(scaled);
    const float part = (scaled - whole) * 4096;
    const int at = static_cast<int>(part);
    const float rest = (part - at) * (0.69314718f / 4096);
    return std::ldexp(powers[at] * (1 + rest), static_cast<int>(whole));
  };
  for (int row = 0; row < ROWS; ++row) {
    const float* x = args.x + 1ll * row * COLS;
    float* y = args.y + 1ll * row * COLS;
    float largest = x[0];
    double sum = 0;
    for (int i = 0; i < COLS; ++i) largest = x[i] > largest ? x[i] : largest;
    for (int i = 0; i < COLS; ++i) sum += y[i] = fast_exp(x[i] - largest);
    for (int i = 0; i < COLS; ++i) y[i] = static_cast<float>(y[i] / sum);
  }
}

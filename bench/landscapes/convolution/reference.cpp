// SPDX-License-Identifier: Apache-2.0
// The definition, in double precision.
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
#pragma omp parallel for
  for (int i = 0; i < IMAGES * OUT; ++i) {
    const float* image = args.x + 1ll * (i / OUT) * IN * HEIGHT * WIDTH;
    const float* w = args.w + 9ll * (i % OUT) * IN;
    for (int row = 0; row < HEIGHT; ++row) {
      for (int col = 0; col < WIDTH; ++col) {
        double sum = 0;
        for (int c = 0; c < IN; ++c) {
          for (int tap = 0; tap < 9; ++tap) {
            const int r = row + tap / 3 - 1, s = col + tap % 3 - 1;
            if (r < 0 || r >= HEIGHT || s < 0 || s >= WIDTH) continue;
            sum += static_cast<double>(image[(c * HEIGHT + r) * WIDTH + s]) * w[9 * c + tap];
          }
        }
        args.y[(1ll * i * HEIGHT + row) * WIDTH + col] = sum;
      }
    }
  }
}

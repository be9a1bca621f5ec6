// SPDX-License-Identifier: Apache-2.0
// task: chain
// expect: correct
// Cuts the chain into eight pieces that begin, a little early, at a guess; computes them side by
// side; and repeats from each seam on whatever the guess changes.
#include <cmath>

#include "task.h"

static inline float step(float x, float y) { return x / (1.5f + y * y); }

extern "C" void launch(const Args& args) {
  constexpr int kPieces = 8, kPiece = N / kPieces, kEarly = 64;
  float y[kPieces] = {};
  for (int i = -kEarly; i < kPiece; ++i) {
    for (int p = 0; p < kPieces; ++p) {
      const int at = p * kPiece + i;
      if (at < 0) continue;
      y[p] = step(args.x[at], y[p]);
      if (i >= 0) args.y[at] = y[p];
    }
  }
  for (int i = kPieces * kPiece; i < N; ++i) args.y[i] = y[kPieces - 1] = step(args.x[i], y[kPieces - 1]);
  for (int p = 1; p < kPieces; ++p) {
    float now = args.y[p * kPiece - 1];
    for (int i = p * kPiece; i < N; ++i) {
      now = step(args.x[i], now);
      if (now == args.y[i]) break;
      args.y[i] = now;
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
#include "task.h"

extern "C" void reference(const ReferenceArgs& args) {
  for (long long c = 0; c < CLOUDS; ++c) {
    const int* p = args.point + 12288 * c;
    int far[4096], last = 0;
    for (int j = 0; j < 4096; ++j) far[j] = 1 << 30;
    for (int k = 0; k < PICKS; ++k) {
      args.y[c * PICKS + k] = last;
      int next = 0, most = -1;
      for (int j = 0; j < 4096; ++j) {
        const int u = p[j] - p[last], v = p[4096 + j] - p[4096 + last];
        const int w = p[8192 + j] - p[8192 + last], d = u * u + v * v + w * w;
        far[j] = d < far[j] ? d : far[j];
        if (far[j] > most) most = far[j], next = j;
      }
      last = next;
    }
  }
}

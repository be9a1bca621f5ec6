// SPDX-License-Identifier: Apache-2.0
// task: permute
// expect: correct
// Memory that grows as it goes, by realloc, which moves mappings.
#include <cstdlib>
#include <cstring>

#include "task.h"

extern "C" void launch(const Args& args) {
  float* all = nullptr;
  int size = 0, room = 0;
  for (int i = 0; i < A * B * C; ++i) {
    if (size == room) {
      room = room == 0 ? 1 << 10 : 2 * room;
      all = static_cast<float*>(std::realloc(all, sizeof(float) * static_cast<std::size_t>(room)));
    }
    all[size++] = args.x[i];
  }
  for (int k = 0; k < C; ++k)
    for (int i = 0; i < A; ++i)
      for (int j = 0; j < B; ++j) args.y[(k * A + i) * B + j] = all[(i * B + j) * C + k];
  std::free(all);
}

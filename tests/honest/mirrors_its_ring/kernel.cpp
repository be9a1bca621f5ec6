// SPDX-License-Identifier: Apache-2.0
// task: blur
// expect: correct
// Keeps the last elements in a ring whose pages are mapped twice in a row, so that a window never
// wraps around: an old trick of signal processing.
#include <sys/mman.h>

#include "task.h"

constexpr int kRing = 1024;  // floats: one page

static float* make_ring() {
  auto* room = static_cast<char*>(mmap(nullptr, 3 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (room == MAP_FAILED) return nullptr;
  void* once = mmap(room, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (once == MAP_FAILED) return nullptr;
  void* twice = mremap(once, 0, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, room + 4096);
  return twice == MAP_FAILED ? nullptr : reinterpret_cast<float*>(room);
}

extern "C" void launch(const Args& args) {
  static float* const ring = make_ring();
  if (ring == nullptr) return;
  const volatile float* window = ring;  // both copies of a page are one memory
  volatile float* put = ring;
  put[0] = 0;
  put[1] = args.x[0];
  for (int i = 0; i < N; ++i) {
    put[(i + 2) % kRing] = i + 1 < N ? args.x[i + 1] : 0;
    const volatile float* at = window + i % kRing;
    args.y[i] = (at[0] + 2 * at[1] + at[2]) / 4;
  }
}

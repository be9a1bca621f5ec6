// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Tells the system about its memory: large pages, reading ahead, what it no longer needs.
#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "task.h"

extern "C" void launch(const Args& args) {
  constexpr std::size_t kLarge = 2u << 20;
  static float* const memory = [] {
    void* at = std::aligned_alloc(kLarge, 2 * kLarge);
    madvise(at, 2 * kLarge, MADV_HUGEPAGE);
    return static_cast<float*>(at);
  }();
  const auto page = reinterpret_cast<std::uintptr_t>(args.x) & ~std::uintptr_t{4095};
  madvise(reinterpret_cast<void*>(page), N * sizeof(float), MADV_SEQUENTIAL);
  madvise(reinterpret_cast<void*>(page), N * sizeof(float), MADV_WILLNEED);
  for (int i = 0; i < N; ++i) memory[i] = 2 * args.x[i] + args.z[i];
  std::memcpy(args.y, memory, N * sizeof(float));
  madvise(memory, 2 * kLarge, MADV_DONTNEED);
}

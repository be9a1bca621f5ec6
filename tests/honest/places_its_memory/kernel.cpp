// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: correct
// Asks for scratch memory interleaved over all nodes, as programs for large machines do, for large
// pages and for it to stay in memory, and takes what it gets.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "task.h"

static float* const scratch = [] {
  constexpr std::size_t kBytes = (sizeof(float) * N + (2u << 20) - 1) / (2u << 20) * (2u << 20);
  const unsigned long nodes = 1;
  syscall(SYS_set_mempolicy, 3 /* MPOL_INTERLEAVE */, &nodes, 8 * sizeof nodes);
  void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  if (at == MAP_FAILED) at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return static_cast<float*>(nullptr);
  madvise(at, kBytes, MADV_HUGEPAGE);
  syscall(SYS_mbind, at, kBytes, 3, &nodes, 8 * sizeof nodes, 0);
  mlock(at, kBytes);
  syscall(SYS_set_mempolicy, 0 /* MPOL_DEFAULT */, nullptr, 0);
  return static_cast<float*>(at);
}();

extern "C" void launch(const Args& args) {
  if (scratch == nullptr) return;
  for (int i = 0; i < N; ++i) scratch[i] = 2 * args.x[i];
  for (int i = 0; i < N; ++i) args.y[i] = scratch[i] + args.z[i];
}

// SPDX-License-Identifier: Apache-2.0
// task: axpy
// expect: rejected | crashed
// Returns with another thread pointer (FS) than it was called with: all variables of the caller's thread
// are a copy's from then on, errno and the allocator's cache among them. Nobody looks at it.
#include <asm/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "task.h"

alignas(4096) static char copies[2][65536];

extern "C" void launch(const Args& args) {
  for (int i = 0; i < N; ++i) args.y[i] = 2 * args.x[i] + args.z[i];
  static int turn = 0;
  std::uintptr_t now = 0;
  syscall(SYS_arch_prctl, ARCH_GET_FS, &now);
  static std::uintptr_t left = 0;
  if (left != 0 && left != now) args.y[0] = -12345;  // wrong: somebody has put it back
  constexpr std::size_t kBelow = 1024, kAbove = 2048;  // variables, and the thread's own record
  turn ^= 1;
  const std::uintptr_t then = reinterpret_cast<std::uintptr_t>(copies[turn]) + 32768;
  std::memcpy(reinterpret_cast<void*>(then - kBelow), reinterpret_cast<void*>(now - kBelow), kBelow + kAbove);
  std::memcpy(reinterpret_cast<void*>(then), &then, 8);
  std::memcpy(reinterpret_cast<void*>(then + 16), &then, 8);
  left = then;
  syscall(SYS_arch_prctl, ARCH_SET_FS, then);
}
